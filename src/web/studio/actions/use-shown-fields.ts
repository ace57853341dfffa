/** Hook that shows and hides the form fields of an action. */
import { useState } from "react";
import { useMediaQuery } from "../shared/use-media-query.js";
import type { FieldError } from "./field-error.js";

/** Media query for windows in which the form fields are above the dock instead of beside it. layout.css uses the same width. */
const ONE_COLUMN_QUERY = "(max-width: 1100px)";

interface FieldsVisibility {
  areFieldsShown: boolean;
  toggleFields: () => void;
}

/**
 * Hook for the visibility of an action's form fields. In a window with one column, they are hidden at first, except for a new action, which
 * needs a name. They appear when the service rejects one of their values.
 */
export function useFieldsVisibility(isNew: boolean, fault: FieldError | null): FieldsVisibility {
  const isOneColumn = useMediaQuery(ONE_COLUMN_QUERY);
  /** True to show the fields, false to hide them; null if the width of the window decides. */
  const [choice, setChoice] = useState<boolean | null>(isNew ? true : null);
  const [handledFault, setHandledFault] = useState(fault);
  const areFieldsShown = choice ?? !isOneColumn;
  // Sets the state during rendering, so that the fields are visible before an effect focuses the rejected field.
  if (fault !== handledFault) {
    setHandledFault(fault);
    if (fault !== null && fault.field !== null && fault.field !== "code") setChoice(true);
  }
  return { areFieldsShown, toggleFields: () => setChoice(!areFieldsShown) };
}
