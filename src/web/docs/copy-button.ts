/** Adds copy buttons to code blocks, for the documentation pages and for Studio's documentation panel. */
import { copyText } from "../copy-text.js";

const FEEDBACK_DURATION_MS = 2_000;

export function createCopyButton(code: HTMLElement): HTMLButtonElement {
  const button = Object.assign(document.createElement("button"), { type: "button", className: "copy" });
  const showLabel = (text: string) => {
    button.textContent = text;
  };
  showLabel("Copy");
  button.addEventListener("click", async () => {
    try {
      await copyText(code.textContent ?? "");
      showLabel("Copied");
    } catch {
      // The browser blocks the clipboard. The button then selects the code, so that the reader can copy it by keyboard.
      getSelection()?.selectAllChildren(code);
      showLabel("Selected");
    }
    setTimeout(() => showLabel("Copy"), FEEDBACK_DURATION_MS);
  });
  return button;
}

/** Adds a frame with a copy button around each code block inside the element. */
export function addCopyButtons(root: ParentNode): void {
  for (const pre of root.querySelectorAll<HTMLPreElement>("pre")) {
    const code = pre.querySelector("code");
    if (!code) continue;
    const frame = Object.assign(document.createElement("div"), { className: "code" });
    pre.replaceWith(frame);
    frame.append(pre, createCopyButton(code));
  }
}
