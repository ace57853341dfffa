/** Hook that asks before a page with unsaved changes is left: for another page or item, by the browser's Back, or by closing the tab. */
import { useBlocker, useRouter } from "@tanstack/react-router";
import { useCallback, useEffect, useRef } from "react";
import type { Confirm } from "../shared/confirm.js";

const LEAVE = {
  title: "Leave without saving?",
  text: "What you changed here would be lost.",
  yes: "Discard changes",
  danger: true,
};

export interface UnsavedChanges {
  /** Tells that leaving the open item would lose changes. */
  setDirty(dirty: boolean): void;
  /** Asks the person if changes would be lost. @returns true if the page may be left */
  mayLeave(): Promise<boolean>;
}

export function useUnsavedChanges(confirm: Confirm): UnsavedChanges {
  const router = useRouter();
  const isDirty = useRef(false);
  const setDirty = useCallback((dirty: boolean) => {
    isDirty.current = dirty;
  }, []);
  const mayLeave = useCallback(async () => !isDirty.current || (await confirm(LEAVE)), [confirm]);
  // The next item starts without changes.
  useEffect(
    () => router.subscribe("onBeforeNavigate", ({ pathChanged }) => pathChanged && setDirty(false)),
    [router, setDirty],
  );
  useBlocker({
    shouldBlockFn: async ({ current, next }) => current.pathname !== next.pathname && !(await mayLeave()),
    enableBeforeUnload: () => isDirty.current,
  });
  return { setDirty, mayLeave };
}
