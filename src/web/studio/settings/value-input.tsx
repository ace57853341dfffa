/** Input for the value of a setting, as text or as JSON. The characters of a secret are hidden. */
import type { TypedValue } from "./setting-value.js";

interface ValueInputProps {
  label: string;
  value: TypedValue;
  onChange: (value: TypedValue) => void;
  secret?: boolean;
  fault: string | null;
  faultId: string;
}

export function ValueInput({ label, value, onChange, secret = false, fault, faultId }: ValueInputProps) {
  const { plain, text } = value;
  const inputAttributes = {
    "aria-label": label,
    "aria-invalid": fault !== null,
    "aria-describedby": faultId,
    spellCheck: false,
  };
  const rows = Math.min(12, Math.max(1, text.split("\n").length));
  return (
    <div className="value-input">
      <select
        aria-label={`Form of ${label}`}
        value={plain ? "text" : "json"}
        onChange={(event) => onChange({ plain: event.target.value === "text", text })}
      >
        <option value="text">Text</option>
        <option value="json">JSON</option>
      </select>
      {secret && plain ? (
        <input
          {...inputAttributes}
          type="password"
          autoComplete="new-password"
          placeholder="New value"
          value={text}
          onChange={(event) => onChange({ plain, text: event.target.value })}
        />
      ) : (
        <textarea
          {...inputAttributes}
          className="mono"
          placeholder={plain ? "Value" : '{"key": "value"}'}
          rows={rows}
          value={text}
          onChange={(event) => onChange({ plain, text: event.target.value })}
        />
      )}
    </div>
  );
}
