/** Input for the value of a setting, as text or as JSON. Hides the characters of a secret, like a password field. */
import type { EditableSettingText } from "./setting-value.js";

interface ValueInputProps {
  label: string;
  value: EditableSettingText;
  onChange: (value: EditableSettingText) => void;
  isSecret?: boolean;
  fault: string | null;
  faultId: string;
}

export function ValueInput({ label, value, onChange, isSecret = false, fault, faultId }: ValueInputProps) {
  const { isPlainText, text } = value;
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
        value={isPlainText ? "text" : "json"}
        onChange={(event) => onChange({ isPlainText: event.target.value === "text", text })}
      >
        <option value="text">Text</option>
        <option value="json">JSON</option>
      </select>
      {isSecret && isPlainText ? (
        <input
          {...inputAttributes}
          type="password"
          autoComplete="new-password"
          placeholder="New value"
          value={text}
          onChange={(event) => onChange({ isPlainText, text: event.target.value })}
        />
      ) : (
        <textarea
          {...inputAttributes}
          className="mono"
          placeholder={isPlainText ? "Value" : '{"key": "value"}'}
          rows={rows}
          value={text}
          onChange={(event) => onChange({ isPlainText, text: event.target.value })}
        />
      )}
    </div>
  );
}
