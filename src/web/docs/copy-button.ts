/** Adds copy buttons to code blocks, for the documentation pages and for Studio's documentation panel. */
const SHOWN_MS = 2_000;

export function copyButton(code: HTMLElement): HTMLButtonElement {
  const button = Object.assign(document.createElement("button"), { type: "button", className: "copy" });
  const label = (text: string) => {
    button.textContent = text;
  };
  label("Copy");
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(code.textContent ?? "");
      label("Copied");
    } catch {
      // Browsers block the clipboard on pages without https. The text is selected, so that the reader can copy it by keyboard.
      getSelection()?.selectAllChildren(code);
      label("Selected");
    }
    setTimeout(() => label("Copy"), SHOWN_MS);
  });
  return button;
}

/** Wraps each code block below the element in a frame with a copy button. */
export function addCopyButtons(root: ParentNode): void {
  for (const pre of root.querySelectorAll<HTMLPreElement>("pre")) {
    const code = pre.querySelector("code");
    if (!code) continue;
    const frame = Object.assign(document.createElement("div"), { className: "code" });
    pre.replaceWith(frame);
    frame.append(pre, copyButton(code));
  }
}
