/** Hook for the draft of a field. Until the person edits it, the draft follows the stored value, which other people may change. */
import { useState } from "react";

export interface FieldDraft<Value> {
  draft: Value;
  setDraft(next: Value | ((draft: Value) => Value)): void;
  isDirty: boolean;
  /** True if another person has changed the stored value during this person's edit, and the new value differs from the draft. */
  isChangedElsewhere: boolean;
  replaceByStoredValue(): void;
  keepDraft(): void;
  /** Call this after a save, with the saved value. */
  markSaved(savedValue: Value): void;
}

/** Stored value from which the person started to edit. `version` is null after a save, until the saved value has been read. */
interface DraftBase<Value> {
  version: string | null;
  value: Value;
}

const isSameJson = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);

interface FieldDraftOptions {
  /** Text that changes when the stored value changes, such as its time of change. Pass it if the value itself cannot be read. */
  version?: string;
  /** True if the form contains invalid text, which is not part of the draft. The draft then counts as edited. */
  hasInvalidText?: boolean;
}

export function useFieldDraft<Value>(
  storedValue: Value,
  { version = JSON.stringify(storedValue), hasInvalidText = false }: FieldDraftOptions = {},
): FieldDraft<Value> {
  const [base, setBase] = useState<DraftBase<Value>>({ version, value: storedValue });
  const [draft, setDraft] = useState(storedValue);
  const isDirty = hasInvalidText || !isSameJson(draft, storedValue);
  const isEdited = hasInvalidText || !isSameJson(draft, base.value);
  const isOutdated = base.version !== version;
  const resetBase = () => setBase({ version, value: storedValue });
  if (isOutdated && (base.version === null || !isEdited || !isDirty)) {
    resetBase();
    if (!isEdited) setDraft(storedValue);
  }
  return {
    draft,
    setDraft,
    isDirty,
    isChangedElsewhere: isOutdated && base.version !== null && isEdited && isDirty,
    replaceByStoredValue() {
      resetBase();
      setDraft(storedValue);
    },
    keepDraft: resetBase,
    markSaved: (savedValue) => setBase({ version: null, value: savedValue }),
  };
}
