/** Hook that tells if the sidebar shows only icons. The browser stores the choice. */
import { useCallback, useState } from "react";

const STORAGE_KEY = "studio.sidebar";

/** Reads the stored choice. If the browser blocks storage, the sidebar is full. */
function readCollapsed(): boolean {
  try {
    return localStorage.getItem(STORAGE_KEY) === "collapsed";
  } catch {
    return false;
  }
}

export function useCollapsed() {
  const [isCollapsed, setCollapsed] = useState(readCollapsed);
  const toggle = useCallback(() => {
    setCollapsed(!isCollapsed);
    try {
      if (isCollapsed) localStorage.removeItem(STORAGE_KEY);
      else localStorage.setItem(STORAGE_KEY, "collapsed");
    } catch {
      // If the browser blocks storage, the choice is lost when the page is closed.
    }
  }, [isCollapsed]);
  return { isCollapsed, toggle };
}
