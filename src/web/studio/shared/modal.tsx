/** Modal dialog of the browser. When it closes, the focus returns to the element that had it before. */
import { type ComponentProps, useEffect, useRef } from "react";

/** Moves the focus to an element. If it was removed, such as the button of a deleted row, moves the focus to the content of the page. */
function returnFocus(element: Element | null): void {
  const isFocusable = element instanceof HTMLElement && element.isConnected && element !== document.body;
  (isFocusable ? element : document.getElementById("content"))?.focus();
}

export function ModalDialog({ className = "", ...props }: ComponentProps<"dialog">) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const previousFocus = document.activeElement;
    dialog.current?.showModal();
    // Elements behind the dialog can receive the focus only after the dialog has been removed.
    return () => queueMicrotask(() => returnFocus(previousFocus));
  }, []);
  return <dialog ref={dialog} className={`dialog ${className}`} {...props} />;
}
