/** Documentation page in the browser: adds a copy button to each block of code. The page works without it. */
import "./docs.css";

const SHOWN_MS = 2_000;

function copyButton(code: HTMLElement): HTMLButtonElement {
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
      // Browsers refuse the clipboard on pages without https: the selected text can be copied by keyboard.
      getSelection()?.selectAllChildren(code);
      label("Selected");
    }
    setTimeout(() => label("Copy"), SHOWN_MS);
  });
  return button;
}

for (const pre of document.querySelectorAll<HTMLPreElement>("main pre")) {
  const code = pre.querySelector("code");
  if (!code) continue;
  const frame = Object.assign(document.createElement("div"), { className: "code" });
  pre.replaceWith(frame);
  frame.append(pre, copyButton(code));
}
