/**
 * Message that another person has changed a value while this person edits it. The person chooses the changed value or
 * the edited value.
 */
import type { FieldDraft } from "./use-field-draft.js";

interface ChangedElsewhereProps {
  label: string;
  field: Pick<FieldDraft<unknown>, "isChangedElsewhere" | "replaceByStoredValue" | "keepDraft">;
}

export function ChangedElsewhereNotice({ label, field }: ChangedElsewhereProps) {
  if (!field.isChangedElsewhere) return null;
  return (
    <p className="notice banner" role="alert">
      <span className="grow">{label} changed elsewhere while you edited it.</span>
      <button type="button" onClick={field.replaceByStoredValue}>
        Take theirs
      </button>
      <button type="button" onClick={field.keepDraft}>
        Go on with mine
      </button>
    </p>
  );
}
