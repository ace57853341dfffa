/** Whether the sidebar shows icons only. The browser stores it, so that it outlives the visit. */
import { useCallback, useState } from "react";

const KEY = "studio.sidebar";

/** A browser may forbid storage: the sidebar is whole then. */
function read(): boolean {
  try {
    return localStorage.getItem(KEY) === "collapsed";
  } catch {
    return false;
  }
}

export function useCollapsed() {
  const [isCollapsed, setCollapsed] = useState(read);
  const toggle = useCallback(() => {
    setCollapsed(!isCollapsed);
    try {
      if (isCollapsed) localStorage.removeItem(KEY);
      else localStorage.setItem(KEY, "collapsed");
    } catch {
      // The choice holds for this visit.
    }
  }, [isCollapsed]);
  return { isCollapsed, toggle };
}
