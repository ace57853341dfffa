/** Hook that returns `isCollapsed` (true if the sidebar shows only icons) and a function that toggles it. The browser stores the choice. */
import { useCallback, useState } from "react";

const STORAGE_KEY = "studio.sidebar";

/** Returns true if the person has chosen the sidebar with only icons. If the browser blocks storage, the sidebar is full. */
function readIsCollapsed(): boolean {
  try {
    return localStorage.getItem(STORAGE_KEY) === "collapsed";
  } catch {
    return false;
  }
}

export function useCollapsedSidebar() {
  const [isCollapsed, setCollapsed] = useState(readIsCollapsed);
  const toggle = useCallback(() => {
    setCollapsed(!isCollapsed);
    try {
      if (isCollapsed) localStorage.removeItem(STORAGE_KEY);
      else localStorage.setItem(STORAGE_KEY, "collapsed");
    } catch {
      // Ignores that the browser blocks storage: the choice is then lost when the page is closed.
    }
  }, [isCollapsed]);
  return { isCollapsed, toggle };
}
