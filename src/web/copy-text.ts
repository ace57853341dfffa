/** Copies a text to the clipboard, also on pages that were loaded without HTTPS. Browsers offer no `navigator.clipboard` there. */

/** Copies by the command "copy", which needs a selection and works only shortly after a click or key press. @throws Error if it fails */
function copyByCommand(text: string): void {
  // If a modal dialog is open, elements outside of it cannot be selected. So the text is added to the dialog.
  const parent = [...document.querySelectorAll("dialog[open]")].at(-1) ?? document.body;
  const selected = document.createElement("span");
  selected.textContent = text;
  Object.assign(selected.style, { position: "fixed", opacity: "0", whiteSpace: "pre", userSelect: "text" });
  const setClipboard = (event: ClipboardEvent) => {
    event.clipboardData?.setData("text/plain", text);
    event.preventDefault();
    event.stopImmediatePropagation();
  };
  const selection = getSelection();
  const earlierRanges = Array.from({ length: selection?.rangeCount ?? 0 }, (_, index) => selection!.getRangeAt(index));
  parent.append(selected);
  addEventListener("copy", setClipboard, true);
  try {
    selection?.selectAllChildren(selected);
    if (!document.execCommand("copy")) throw new Error("the browser does not allow copying");
  } finally {
    removeEventListener("copy", setClipboard, true);
    selected.remove();
    selection?.removeAllRanges();
    for (const range of earlierRanges) selection?.addRange(range);
  }
}

/** Copies a text to the clipboard. @throws Error if the browser does not allow it */
export async function copyText(text: string): Promise<void> {
  if (navigator.clipboard) await navigator.clipboard.writeText(text);
  else copyByCommand(text);
}
