/** Hook for the columns that the person has shown or hidden in the table of runs. The browser stores these choices. */
import { useCallback, useEffect, useMemo, useState } from "react";
import { useMedia } from "../shared/use-narrow.js";
import { HIDDEN_BY_DEFAULT, HIDDEN_IN_MEDIUM_WINDOWS, RUN_COLUMNS, type RunColumn } from "./run-columns.js";

const STORAGE_KEY = "studio.runs.hidden-columns";

/** True for each column that the person shows, false for each one that the person hides. The window's width decides about columns without a choice. */
type Choices = Readonly<Record<string, unknown>>;

/** Reads the stored choices. Browsers can block storage. */
function readChoices(): Choices {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(STORAGE_KEY) ?? "{}");
    // Earlier releases stored a list of all hidden columns.
    if (Array.isArray(stored))
      return Object.fromEntries([...HIDDEN_BY_DEFAULT, ...stored].map((key) => [key, !stored.includes(key)]));
    return { ...(stored as object) };
  } catch {
    return {};
  }
}

export interface ColumnsState {
  shownColumns: readonly RunColumn[];
  toggle: (key: string) => void;
}

export function useColumns(): ColumnsState {
  const [choices, setChoices] = useState(readChoices);
  const isMedium = useMedia("(min-width: 701px) and (max-width: 1000px)");
  const hidden = isMedium ? HIDDEN_IN_MEDIUM_WINDOWS : HIDDEN_BY_DEFAULT;
  const toggle = useCallback(
    (key: string) => setChoices((last) => ({ ...last, [key]: !(last[key] ?? !hidden.includes(key)) })),
    [hidden],
  );
  useEffect(() => {
    try {
      localStorage.setItem(STORAGE_KEY, JSON.stringify(choices));
    } catch {
      // If the browser blocks storage, the choices are lost when the page is closed.
    }
  }, [choices]);
  const shownColumns = useMemo(
    () => RUN_COLUMNS.filter(({ key, isFixed }) => isFixed || (choices[key] ?? !hidden.includes(key))),
    [choices, hidden],
  );
  return { shownColumns, toggle };
}
