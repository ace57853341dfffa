/** Fields for the value of a condition in a numbered row: its type, and an input for that type. */
import { type TypedValue, VALUE_KINDS, type ValueKind } from "./typed-value.js";

interface ValueFieldsProps extends TypedValue {
  /** Number of the row, counted from 1. */
  number: number;
  /** True if only texts are allowed: the field for the type is left out. */
  isText?: boolean;
  put: (part: Partial<TypedValue>) => void;
}

export function ValueFields({ value, kind, number, isText = false, put }: ValueFieldsProps) {
  const choose = (next: ValueKind) =>
    put({ kind: next, ...(next === "boolean" && { value: String(value !== "false") }) });
  return (
    <>
      {!isText && (
        <select
          aria-label={`Type of value ${number}`}
          value={kind}
          onChange={({ target }) => choose(target.value as ValueKind)}
        >
          {VALUE_KINDS.map(([name, words]) => (
            <option key={name} value={name}>
              {words}
            </option>
          ))}
        </select>
      )}
      {kind === "boolean" ? (
        <select aria-label={`Value ${number}`} value={value} onChange={({ target }) => put({ value: target.value })}>
          <option value="true">Yes</option>
          <option value="false">No</option>
        </select>
      ) : (
        <input
          className="mono"
          aria-label={`Value ${number}`}
          value={value}
          onChange={({ target }) => put({ value: target.value })}
        />
      )}
    </>
  );
}
