/** Hook for the columns that the person has hidden in the table of runs. The browser stores them. */
import { useCallback, useMemo, useState } from "react";
import { useMedia } from "../shared/use-narrow.js";
import { HIDDEN_BY_DEFAULT, HIDDEN_IN_MEDIUM_WINDOWS, RUN_COLUMNS, type RunColumn } from "./run-columns.js";

const STORAGE_KEY = "studio.runs.hidden-columns";

/** Reads the stored columns; null if the person has not chosen any. Browsers can block storage, and earlier releases may have stored other values. */
function readHiddenColumns(): readonly string[] | null {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(STORAGE_KEY) ?? "null");
    return Array.isArray(stored) ? stored.filter((key) => typeof key === "string") : null;
  } catch {
    return null;
  }
}

export interface ColumnsState {
  shownColumns: readonly RunColumn[];
  toggle: (key: string) => void;
}

export function useColumns(): ColumnsState {
  const [chosen, setChosen] = useState(readHiddenColumns);
  const isMedium = useMedia("(min-width: 701px) and (max-width: 1000px)");
  const hidden = chosen ?? (isMedium ? HIDDEN_IN_MEDIUM_WINDOWS : HIDDEN_BY_DEFAULT);
  const toggle = useCallback(
    (key: string) => {
      const next = hidden.includes(key) ? hidden.filter((hiddenKey) => hiddenKey !== key) : [...hidden, key];
      setChosen(next);
      try {
        localStorage.setItem(STORAGE_KEY, JSON.stringify(next));
      } catch {
        // If the browser blocks storage, the choice is lost when the page is closed.
      }
    },
    [hidden],
  );
  const shownColumns = useMemo(
    () => RUN_COLUMNS.filter(({ key, isFixed }) => isFixed || !hidden.includes(key)),
    [hidden],
  );
  return { shownColumns, toggle };
}
