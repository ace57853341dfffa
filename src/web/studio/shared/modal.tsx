/** Modal dialog of the browser. When it closes, it returns the focus to the element that had it before. */
import { type ComponentProps, useEffect, useRef } from "react";

/** Returns the focus, unless that element was removed, such as the button of a deleted row. */
function giveFocusBack(to: Element | null): void {
  const stays = to instanceof HTMLElement && to.isConnected && to !== document.body;
  (stays ? to : document.getElementById("content"))?.focus();
}

export function Modal({ className = "", ...props }: ComponentProps<"dialog">) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const before = document.activeElement;
    dialog.current?.showModal();
    // Elements below the dialog can only receive the focus after the dialog was removed.
    return () => queueMicrotask(() => giveFocusBack(before));
  }, []);
  return <dialog ref={dialog} className={`dialog ${className}`} {...props} />;
}
