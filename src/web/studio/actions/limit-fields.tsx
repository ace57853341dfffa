/** Form fields for the limits of an action: concurrent runs, debounce of starts, and maximum run time. */
import type { ConcurrencyPolicy } from "../../../data/action-types.js";
import { type FieldAttributes, FormField } from "../shared/field.js";
import type { ActionFieldsProps } from "./fields-props.js";

const CONCURRENCY_POLICY_OPTIONS: [value: ConcurrencyPolicy | "", label: string][] = [
  ["", "No limit"],
  ["queue", "One more waits"],
  ["skip", "One more is skipped"],
  ["cancel", "One more cancels the oldest"],
];

interface NumberInputProps {
  label: string;
  value: string;
  placeholder: string;
  onChange: (value: string) => void;
  fieldAttributes?: FieldAttributes;
}

function NumberInput({ label, value, placeholder, onChange, fieldAttributes }: NumberInputProps) {
  return (
    <input
      {...fieldAttributes}
      {...(!fieldAttributes && { "aria-label": label })}
      type="number"
      min={1}
      step={1}
      placeholder={placeholder}
      value={value}
      onChange={(event) => onChange(event.target.value)}
    />
  );
}

function ConcurrencyField({ draft: { concurrency }, fault, changeDraft }: ActionFieldsProps) {
  const { policy, limit, key } = concurrency;
  const changeConcurrency = (part: Partial<typeof concurrency>) =>
    changeDraft({ concurrency: { ...concurrency, ...part } });
  const isSet = policy !== "";
  return (
    <FormField
      name="concurrency"
      label="Runs at once"
      fault={fault}
      hint={
        isSet
          ? "Runs of the draft and of the live version are counted separately. With a property of the payload, the limit applies to runs with the same value."
          : ""
      }
    >
      {(fieldAttributes) => (
        <>
          <select
            {...fieldAttributes}
            value={policy}
            onChange={(event) => changeConcurrency({ policy: event.target.value as ConcurrencyPolicy | "" })}
          >
            {CONCURRENCY_POLICY_OPTIONS.map(([value, label]) => (
              <option key={value} value={value}>
                {label}
              </option>
            ))}
          </select>
          {isSet && (
            <div className="row">
              <NumberInput
                label="At most"
                value={limit}
                placeholder="1"
                onChange={(value) => changeConcurrency({ limit: value })}
              />
              <input
                aria-label="Property of the payload"
                className="mono"
                spellCheck={false}
                placeholder="order.id"
                value={key}
                onChange={(event) => changeConcurrency({ key: event.target.value })}
              />
            </div>
          )}
        </>
      )}
    </FormField>
  );
}

function DebounceField({ draft: { debounce }, fault, changeDraft }: ActionFieldsProps) {
  const { delayMs, maxWaitMs, manual } = debounce;
  const changeDebounce = (part: Partial<typeof debounce>) => changeDraft({ debounce: { ...debounce, ...part } });
  const isSet = delayMs !== "";
  return (
    <FormField
      name="debounce"
      label="Debounce, ms"
      fault={fault}
      hint={isSet ? "Log events within this time become one run, with the last event." : ""}
    >
      {(fieldAttributes) => (
        <>
          <NumberInput
            label="Debounce, ms"
            value={delayMs}
            placeholder="none"
            onChange={(value) => changeDebounce({ delayMs: value })}
            fieldAttributes={fieldAttributes}
          />
          {isSet && (
            <div className="row">
              <NumberInput
                label="Longest wait, ms"
                value={maxWaitMs}
                placeholder="longest wait"
                onChange={(value) => changeDebounce({ maxWaitMs: value })}
              />
              <label>
                <input
                  type="checkbox"
                  checked={manual}
                  onChange={(event) => changeDebounce({ manual: event.target.checked })}
                />{" "}
                also on demand
              </label>
            </div>
          )}
        </>
      )}
    </FormField>
  );
}

/**
 * Form fields for the limits of an action. Hidden for an action that runs only in browsers, unless it has a limit. The
 * service rejects a limit for such an action, so the person must be able to remove it.
 */
export function LimitFields(props: ActionFieldsProps) {
  const { draft, fault, changeDraft } = props;
  const { environment, concurrency, debounce, timeoutMs } = draft;
  const isUnset = concurrency.policy === "" && debounce.delayMs === "" && timeoutMs === "";
  if (environment === "client" && isUnset) return null;
  return (
    <fieldset className="limits">
      <legend>Limits</legend>
      <ConcurrencyField {...props} />
      <DebounceField {...props} />
      <FormField name="timeoutMs" label="Time limit, ms" fault={fault}>
        {(fieldAttributes) => (
          <NumberInput
            label="Time limit, ms"
            value={timeoutMs}
            placeholder="the service's"
            onChange={(value) => changeDraft({ timeoutMs: value })}
            fieldAttributes={fieldAttributes}
          />
        )}
      </FormField>
    </fieldset>
  );
}
