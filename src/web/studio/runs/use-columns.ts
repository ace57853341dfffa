/** Hook that returns the columns to show in the table of runs, and changes the person's choice. The browser stores the choice. */
import { useCallback, useEffect, useMemo, useState } from "react";
import { useMediaQuery } from "../shared/use-media-query.js";
import {
  COLUMNS_HIDDEN_BY_DEFAULT,
  COLUMNS_HIDDEN_IN_MEDIUM_WINDOWS,
  RUN_COLUMNS,
  type RunColumn,
} from "./run-columns.js";

const STORAGE_KEY = "studio.runs.hidden-columns";

/** Choices of the person by the key of a column: true to show the column, false to hide it. */
type ColumnChoices = Readonly<Record<string, unknown>>;

/** Reads the stored choices. Returns no choices if the browser blocks storage. */
function readColumnChoices(): ColumnChoices {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(STORAGE_KEY) ?? "{}");
    // Earlier releases of Studio stored an array with the keys of the hidden columns.
    if (Array.isArray(stored))
      return Object.fromEntries([...COLUMNS_HIDDEN_BY_DEFAULT, ...stored].map((key) => [key, !stored.includes(key)]));
    return { ...(stored as object) };
  } catch {
    return {};
  }
}

export interface RunColumnsState {
  shownColumns: readonly RunColumn[];
  toggleColumn: (key: string) => void;
}

export function useRunColumns(): RunColumnsState {
  const [choices, setChoices] = useState(readColumnChoices);
  const isMedium = useMediaQuery("(min-width: 701px) and (max-width: 1000px)");
  const hiddenByDefault = isMedium ? COLUMNS_HIDDEN_IN_MEDIUM_WINDOWS : COLUMNS_HIDDEN_BY_DEFAULT;
  const toggleColumn = useCallback(
    (key: string) => setChoices((last) => ({ ...last, [key]: !(last[key] ?? !hiddenByDefault.includes(key)) })),
    [hiddenByDefault],
  );
  useEffect(() => {
    try {
      localStorage.setItem(STORAGE_KEY, JSON.stringify(choices));
    } catch {
      // Ignores that the browser blocks storage: the choices are then lost when the page is closed.
    }
  }, [choices]);
  const shownColumns = useMemo(
    () => RUN_COLUMNS.filter(({ key, isFixed }) => isFixed || (choices[key] ?? !hiddenByDefault.includes(key))),
    [choices, hiddenByDefault],
  );
  return { shownColumns, toggleColumn };
}
