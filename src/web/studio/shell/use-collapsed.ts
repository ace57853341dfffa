/** Hook that tells if the sidebar shows only icons. The browser stores the choice. */
import { useCallback, useState } from "react";

const KEY = "studio.sidebar";

/** Reads the stored choice. If the browser blocks storage, the sidebar is full. */
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
      // If the browser blocks storage, the choice is lost when the page is closed.
    }
  }, [isCollapsed]);
  return { isCollapsed, toggle };
}
