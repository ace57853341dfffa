/** Modal dialog of the browser. When it closes, the focus returns to where it was. */
import { type ComponentProps, useEffect, useRef } from "react";

/** What opened it may be gone, as the button that deletes its own row is. */
function giveFocusBack(to: Element | null): void {
  const stays = to instanceof HTMLElement && to.isConnected && to !== document.body;
  (stays ? to : document.getElementById("content"))?.focus();
}

export function Modal({ className = "", ...props }: ComponentProps<"dialog">) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const before = document.activeElement;
    dialog.current?.showModal();
    // What stands under the dialog cannot take the focus before the dialog has left the page.
    return () => queueMicrotask(() => giveFocusBack(before));
  }, []);
  return <dialog ref={dialog} className={`dialog ${className}`} {...props} />;
}
