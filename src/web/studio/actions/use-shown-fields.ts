/** Hook that opens and closes the fields of an action. */
import { useState } from "react";
import { useMediaQuery } from "../shared/use-narrow.js";
import type { FieldError } from "./field-fault.js";

/** Windows in which the fields are above the dock and not beside it. layout.css uses the same width. */
const ONE_COLUMN = "(max-width: 1100px)";

interface ShownFields {
  showsFields: boolean;
  toggleFields: () => void;
}

/**
 * In one column, the fields are closed at first, so that the dock is reached at once. They open when the service rejects the value of a
 * field. A new action needs a name, so its fields are open.
 */
export function useShownFields(isNew: boolean, fault: FieldError | null): ShownFields {
  const isOneColumn = useMediaQuery(ONE_COLUMN);
  /** Choice of the person; null if the width of the window decides. */
  const [choice, setChoice] = useState<boolean | null>(isNew ? true : null);
  const [handledFault, setHandledFault] = useState(fault);
  const showsFields = choice ?? !isOneColumn;
  // This is set while rendering, because a field receives the focus in an effect and must be visible then.
  if (fault !== handledFault) {
    setHandledFault(fault);
    if (fault !== null && fault.field !== null && fault.field !== "code") setChoice(true);
  }
  return { showsFields, toggleFields: () => setChoice(!showsFields) };
}
