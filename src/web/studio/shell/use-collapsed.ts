/** Hook that returns whether the sidebar shows only icons. The browser stores the person's choice. */
import { useCallback, useState } from "react";

const STORAGE_KEY = "studio.sidebar";

/** Returns true if the person has chosen the sidebar with only icons. If the browser blocks storage, the sidebar is full. */
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
