/** Inputs for the value of a condition: a select for the value's type, and an input for a value of this type. */
import { SCALAR_VALUE_KIND_LABELS, type ScalarValueKind, type TypedValue } from "./typed-value.js";

interface ValueFieldsProps extends TypedValue {
  /** Number of the condition's row in its labels. The first row has the number 1. */
  rowNumber: number;
  /** True if the value must be a text. The select for the type is then hidden. */
  isText?: boolean;
  changeValue: (part: Partial<TypedValue>) => void;
}

export function ValueFields({ typedText, kind, rowNumber, isText = false, changeValue }: ValueFieldsProps) {
  const chooseKind = (next: ScalarValueKind) =>
    changeValue({ kind: next, ...(next === "boolean" && { typedText: String(typedText !== "false") }) });
  return (
    <>
      {!isText && (
        <select
          aria-label={`Type of value ${rowNumber}`}
          value={kind}
          onChange={({ target }) => chooseKind(target.value as ScalarValueKind)}
        >
          {SCALAR_VALUE_KIND_LABELS.map(([name, words]) => (
            <option key={name} value={name}>
              {words}
            </option>
          ))}
        </select>
      )}
      {kind === "boolean" ? (
        <select
          aria-label={`Value ${rowNumber}`}
          value={typedText}
          onChange={({ target }) => changeValue({ typedText: target.value })}
        >
          <option value="true">Yes</option>
          <option value="false">No</option>
        </select>
      ) : (
        <input
          className="mono"
          aria-label={`Value ${rowNumber}`}
          value={typedText}
          onChange={({ target }) => changeValue({ typedText: target.value })}
        />
      )}
    </>
  );
}
