/**
 * Hook for the values of a form that creates something. After a save, the form becomes empty, unless the person has typed during the save.
 */
import { useState } from "react";

export interface NewResourceForm<Values> {
  values: Values;
  setValues(next: Values | ((values: Values) => Values)): void;
  /** Empties the form if it still contains the saved values. Call this after a save. */
  clearSaved(savedValues: Values): void;
}

export function useNewResourceForm<Values>(initial: Values): NewResourceForm<Values> {
  const [values, setValues] = useState(initial);
  return {
    values,
    setValues,
    clearSaved: (savedValues) => setValues((now) => (Object.is(now, savedValues) ? initial : now)),
  };
}
