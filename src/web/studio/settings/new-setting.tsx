/** Form for a new setting. It shows the tier (public, private or protected) that follows from the typed key. */
import { type FormEvent, useId, useLayoutEffect, useRef, useState } from "react";
import type { ConfirmFunction } from "../shared/confirm.js";
import { useNewResourceForm } from "../shared/use-new-values.js";
import { confirmPublicSecret } from "./public-secret.js";
import { type EditableSettingText, getSettingTier, parseSettingText } from "./setting-value.js";
import type { SettingsState } from "./use-settings.js";
import { ValueInput } from "./value-input.js";

const TIER_TEXTS = {
  public: "public: everyone, also the app's pages",
  private: "private: editors, API tokens and server actions",
  protected: "protected: only server actions; Studio and the API never return the value",
};

const EMPTY_VALUE: EditableSettingText = { isPlainText: true, text: "" };

/** Name of this form in the list of setting keys with unsaved changes. Unique, because no setting has the key "". */
export const NEW_ROW_NAME = "";

interface NewSettingFormProps {
  confirm: ConfirmFunction;
  settings: SettingsState;
  onDirtyChange: (name: string, dirty: boolean) => void;
}

export function NewSettingForm({ settings, confirm, onDirtyChange }: NewSettingFormProps) {
  const { values: key, setValues: setKey, clearSaved: clearKey } = useNewResourceForm("");
  const { values: value, setValues: setValue, clearSaved: clearValue } = useNewResourceForm(EMPTY_VALUE);
  const [fault, setFault] = useState<string | null>(null);
  const [addedKey, setAddedKey] = useState<string | null>(null);
  const form = useRef<HTMLFormElement>(null);
  const keyInput = useRef<HTMLInputElement>(null);
  const id = useId();
  const tier = getSettingTier(key);
  const isStored = (name: string) =>
    Object.hasOwn(settings.valuesByKey ?? {}, name) || Object.hasOwn(settings.detailsByKey, name);
  const isTaken = isStored(key);

  const dirty = key !== "" || value.text !== "";
  useLayoutEffect(() => {
    onDirtyChange(NEW_ROW_NAME, dirty);
    return () => onDirtyChange(NEW_ROW_NAME, false);
  }, [dirty, onDirtyChange]);

  const submit = async (event: FormEvent) => {
    event.preventDefault();
    const result = parseSettingText(value);
    if ("fault" in result) return setFault(result.fault);
    if (!(await confirmPublicSecret(confirm, key, result.value))) return;
    const saveFault = await settings.setValue(key, result.value);
    setFault(saveFault);
    if (saveFault !== null) return;
    clearKey(key);
    clearValue(value);
    setAddedKey(key);
    // Moves the focus to the field of the key. The button that has the focus becomes disabled when the form is empty.
    const { activeElement } = document;
    if (activeElement === document.body || form.current?.contains(activeElement)) keyInput.current?.focus();
  };
  return (
    <form ref={form} className="new-setting" onSubmit={submit}>
      <div className="setting-name">
        <input
          ref={keyInput}
          aria-label="Key of the new setting"
          className="mono"
          placeholder="key, _key or __key"
          autoComplete="off"
          spellCheck={false}
          value={key}
          onChange={(event) => setKey(event.target.value)}
        />
        <span className="hint" data-tier={key === "" ? undefined : tier}>
          {key === "" ? "The underscores at the start of the key decide who can read the value." : TIER_TEXTS[tier]}
        </span>
      </div>
      <div>
        <ValueInput
          label="Value of the new setting"
          value={value}
          onChange={setValue}
          isSecret={tier === "protected"}
          fault={fault}
          faultId={id}
        />
        <p id={id} className="fault" role="alert">
          {fault ?? (isTaken ? "This key is set already; adding it replaces its value." : null)}
        </p>
      </div>
      <div className="row">
        <span className="saved" role="status">
          {addedKey !== null && !dirty && isStored(addedKey) && `Added ${addedKey}`}
        </span>
        <button type="submit" className="primary" disabled={key === ""}>
          Add
        </button>
      </div>
    </form>
  );
}
