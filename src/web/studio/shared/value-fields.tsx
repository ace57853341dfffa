/** Inputs for the value of a condition: a choice of its type, and an input for this type. */
import { type TypedValue, VALUE_KINDS, type ValueKind } from "./typed-value.js";

interface ValueFieldsProps extends TypedValue {
  /** Number of the condition's row in labels, counted from 1. */
  rowNumber: number;
  /** True if the value must be a text. The choice of the type is then hidden. */
  isText?: boolean;
  changeValue: (part: Partial<TypedValue>) => void;
}

export function ValueFields({ value, kind, rowNumber, isText = false, changeValue }: ValueFieldsProps) {
  const choose = (next: ValueKind) =>
    changeValue({ kind: next, ...(next === "boolean" && { value: String(value !== "false") }) });
  return (
    <>
      {!isText && (
        <select
          aria-label={`Type of value ${rowNumber}`}
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
        <select
          aria-label={`Value ${rowNumber}`}
          value={value}
          onChange={({ target }) => changeValue({ value: target.value })}
        >
          <option value="true">Yes</option>
          <option value="false">No</option>
        </select>
      ) : (
        <input
          className="mono"
          aria-label={`Value ${rowNumber}`}
          value={value}
          onChange={({ target }) => changeValue({ value: target.value })}
        />
      )}
    </>
  );
}
