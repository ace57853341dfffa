/** Hook that reports to Studio's frame whether a form has unsaved changes. A form that the page no longer shows has none. */
import { useLayoutEffect } from "react";
import type { Navigation } from "../shell/studio-route.js";

export function useUnsavedChanges(setDirty: Navigation["setDirty"], isDirty: boolean): void {
  // A layout effect runs before the browser draws the page. So a click that leaves the page always gets the current
  // value of `isDirty`.
  useLayoutEffect(() => {
    setDirty(isDirty);
    return () => setDirty(false);
  }, [setDirty, isDirty]);
}
