/**
 * Editor for one part of a data source's definition, such as its hooks, as a form or as JSON text. Form and text change the same value, and
 * one button saves this value.
 */
import { type ReactNode, useCallback, useEffect, useId, useState } from "react";
import { ChangedElsewhereNotice } from "../shared/changed-elsewhere.js";
import { useFieldDraft } from "../shared/use-field-draft.js";
import { AccessRulesForm } from "./access-rules-form.js";
import { isEditableRuleList } from "./access-templates.js";
import type { ListFormProps } from "./form-parts.js";
import { HooksForm, isEditableHookList } from "./hooks-form.js";
import { IndexesForm, isEditableIndexList } from "./indexes-form.js";
import { InvalidListCounterContext } from "./use-rows.js";

interface DefinitionPart {
  label: string;
  hint: string;
  /** Renders the form for a value. Returns null if the form would lose parts of the value; the editor then shows it as JSON. */
  renderForm(
    value: unknown,
    formProps: Omit<ListFormProps<never>, "items" | "changeItems"> & { changeItems(items: unknown[]): void },
  ): ReactNode;
}

export const DEFINITION_PARTS = {
  accessRules: {
    label: "Access rules",
    hint: "What pages of the app can do. The first rule that matches a request decides; without a rule it is denied.",
    renderForm: (value, formProps) =>
      isEditableRuleList(value) ? <AccessRulesForm items={value} {...formProps} /> : null,
  },
  hooks: {
    label: "Hooks",
    hint: "Changes of values before they are stored, and messages that are sent afterwards.",
    renderForm: (value, formProps) => (isEditableHookList(value) ? <HooksForm items={value} {...formProps} /> : null),
  },
  indexes: {
    label: "Indexes",
    hint: "Columns that make a where or an order fast. A unique index keeps two entries from having equal values.",
    renderForm: (value, formProps) =>
      isEditableIndexList(value) ? <IndexesForm items={value} {...formProps} /> : null,
  },
} satisfies Record<string, DefinitionPart>;

export type DefinitionPartName = keyof typeof DEFINITION_PARTS;

function parseJsonOrUndefined(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Returns the index of the item that an error message names, such as 2 for "hooks[2]…". Returns null if the message names no item. */
function findItemIndex(field: DefinitionPartName, message: string | null): number | null {
  const start = `${field}[`;
  if (!message?.startsWith(start)) return null;
  return Number.parseInt(message.slice(start.length), 10);
}

interface ViewSwitchProps {
  name: string;
  isJson: boolean;
  setJson: (isJson: boolean) => void;
}

function ViewSwitch({ name, isJson, setJson }: ViewSwitchProps) {
  const group = useId();
  return (
    <fieldset className="segments">
      <legend className="unseen">View of {name}</legend>
      {(["form", "json"] as const).map((view) => (
        <label key={view}>
          <input
            type="radio"
            name={group}
            value={view}
            checked={isJson === (view === "json")}
            onChange={() => setJson(view === "json")}
          />
          {view === "json" ? "JSON" : "Form"}
        </label>
      ))}
    </fieldset>
  );
}

interface JsonTextProps {
  field: DefinitionPartName;
  text: string;
  fault: string | null;
  setText: (text: string) => void;
}

function JsonText({ field, text, fault, setText }: JsonTextProps) {
  return (
    <textarea
      id={field}
      className="mono"
      aria-label={`${DEFINITION_PARTS[field].label} as JSON`}
      rows={Math.min(14, text.split("\n").length + 1)}
      spellCheck={false}
      value={text}
      aria-invalid={fault !== null}
      aria-describedby={`${field}-fault ${field}-hint`}
      onChange={(event) => setText(event.target.value)}
    />
  );
}

interface DefinitionFieldProps {
  field: DefinitionPartName;
  storedValue: unknown;
  columns: readonly string[];
  /** Saves the value. Returns the service's error message, or null if the service has saved the value. */
  saveValue: (value: unknown) => Promise<string | null>;
  onDirtyChange: (field: string, isDirty: boolean) => void;
  renderBelow?: ((text: string) => ReactNode) | undefined;
}

export function DefinitionField({
  field,
  storedValue,
  columns,
  saveValue,
  onDirtyChange,
  renderBelow,
}: DefinitionFieldProps) {
  const part: DefinitionPart = DEFINITION_PARTS[field];
  // Number of lists in the form that contain an invalid row. The draft lacks such rows, so the person can save only if this
  // number is 0.
  const [invalidListCount, setInvalidListCount] = useState(0);
  const fieldDraft = useFieldDraft(JSON.stringify(storedValue, null, 2), { hasInvalidText: invalidListCount > 0 });
  const { draft: text, isDirty, isChangedElsewhere } = fieldDraft;
  const [isJson, setJson] = useState(false);
  const [fault, setFault] = useState<string | null>(null);
  // React key of the form. A new key makes React render a new form, without the invalid rows that the person has typed.
  const [formKey, setFormKey] = useState(0);
  const discard = () => {
    setFault(null);
    setFormKey((key) => key + 1);
    fieldDraft.replaceByStoredValue();
  };
  const changeInvalidListCount = useCallback((change: 1 | -1) => setInvalidListCount((count) => count + change), []);
  useEffect(() => onDirtyChange(field, isDirty), [onDirtyChange, field, isDirty]);
  // A change of the text removes the error message, which describes the previous text.
  const setText = (next: string) => {
    setFault(null);
    fieldDraft.setDraft(next);
  };
  const item = findItemIndex(field, fault);
  const formProps = {
    columns,
    getItemFault: (index: number) => (index === item ? fault : null),
    changeItems: (value: unknown[]) => setText(JSON.stringify(value, null, 2)),
  };
  const form = isJson ? null : part.renderForm(parseJsonOrUndefined(text), formProps);
  const submit = async () => {
    const value = parseJsonOrUndefined(text);
    if (value === undefined) return setFault("The text is not valid JSON.");
    const saveFault = await saveValue(value);
    setFault(saveFault);
    if (saveFault === null) fieldDraft.markSaved(text);
  };
  return (
    <section className="definition-part" data-field={field} aria-labelledby={`${field}-title`}>
      <div className="row">
        <h3 id={`${field}-title`} className="grow">
          {part.label}
        </h3>
        <ViewSwitch name={part.label} {...{ isJson, setJson }} />
      </div>
      <p id={`${field}-hint`} className="hint">
        {part.hint}
      </p>
      <InvalidListCounterContext key={formKey} value={changeInvalidListCount}>
        {form ?? <JsonText {...{ field, text, fault, setText }} />}
      </InvalidListCounterContext>
      {!isJson && !form && <p className="hint">The form cannot show this value. Change it as JSON.</p>}
      <p id={`${field}-fault`} className="fault" role="alert">
        {form && item !== null ? null : fault}
      </p>
      <ChangedElsewhereNotice label={part.label} field={{ ...fieldDraft, replaceByStoredValue: discard }} />
      <p className="row">
        <button
          type="button"
          className="primary"
          disabled={!isDirty || isChangedElsewhere || invalidListCount > 0}
          onClick={() => void submit()}
        >
          Save {part.label.toLowerCase()}
        </button>
        {isDirty && (
          <button type="button" className="quiet" onClick={discard}>
            Discard
          </button>
        )}
      </p>
      {renderBelow?.(text)}
    </section>
  );
}
