/** Hook for the columns that the person has hidden in the table of runs. The browser stores them. */
import { useCallback, useMemo, useState } from "react";
import { HIDDEN_BY_DEFAULT, RUN_COLUMNS, type RunColumn } from "./run-columns.js";

const STORAGE_KEY = "studio.runs.hidden-columns";

/** Reads the stored columns. Browsers can block storage, and earlier releases may have stored other values. */
function readHiddenColumns(): readonly string[] {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(STORAGE_KEY) ?? "null");
    return Array.isArray(stored) ? stored.filter((key) => typeof key === "string") : HIDDEN_BY_DEFAULT;
  } catch {
    return HIDDEN_BY_DEFAULT;
  }
}

export interface ColumnsState {
  shownColumns: readonly RunColumn[];
  toggle: (key: string) => void;
}

export function useColumns(): ColumnsState {
  const [hidden, setHidden] = useState(readHiddenColumns);
  const toggle = useCallback((key: string) => {
    setHidden((old) => {
      const next = old.includes(key) ? old.filter((hiddenKey) => hiddenKey !== key) : [...old, key];
      try {
        localStorage.setItem(STORAGE_KEY, JSON.stringify(next));
      } catch {
        // If the browser blocks storage, the choice is lost when the page is closed.
      }
      return next;
    });
  }, []);
  const shownColumns = useMemo(
    () => RUN_COLUMNS.filter(({ key, isFixed }) => isFixed || !hidden.includes(key)),
    [hidden],
  );
  return { shownColumns, toggle };
}
