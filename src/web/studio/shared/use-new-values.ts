/** Hook for the values of a form that creates something. A save clears them, unless the person has changed them meanwhile. */
import { useState } from "react";

export interface NewValues<Values> {
  values: Values;
  setValues(next: Values | ((values: Values) => Values)): void;
  /** Call this after a save, with the saved values. */
  clear(saved: Values): void;
}

export function useNewValues<Values>(initial: Values): NewValues<Values> {
  const [values, setValues] = useState(initial);
  return {
    values,
    setValues,
    clear: (saved) => setValues((now) => (Object.is(now, saved) ? initial : now)),
  };
}
