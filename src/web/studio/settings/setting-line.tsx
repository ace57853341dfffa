/** Row of one setting: its value, and buttons to save and delete it. For a protected setting, the row only accepts a new value. */
import Trash2 from "icon:trash-2";
import { useId, useLayoutEffect, useRef, useState } from "react";
import { ChangedElsewhereNotice } from "../shared/changed-elsewhere.js";
import type { ConfirmFunction } from "../shared/confirm.js";
import { formatAge, formatExactTime } from "../shared/format.js";
import type { SettingDetails } from "../shared/model.js";
import { useFieldDraft } from "../shared/use-field-draft.js";
import { confirmPublicSecret } from "./public-secret.js";
import { type EditableSettingText, formatSettingText, getSettingTier, parseSettingText } from "./setting-value.js";
import { SettingReaders } from "./settings-use.js";
import type { SettingsState } from "./use-settings.js";
import { ValueInput } from "./value-input.js";

const ICON_PIXELS = 15;
const EMPTY_VALUE: EditableSettingText = { isPlainText: true, text: "" };
/** CSS selector of the text area or input for the value, within the row of a setting. */
const VALUE_SELECTOR = ".value-input :is(textarea, input)";

export interface SettingLineProps {
  appId: number;
  findPersonName: (userId: number | null) => string | null;
  settingKey: string;
  /**
   * Stored value. Undefined for a protected setting, because Studio cannot read its value. Also undefined if another person has deleted the
   * setting while this person edits it.
   */
  value: unknown;
  settingDetails: SettingDetails | undefined;
  settings: SettingsState;
  confirm: ConfirmFunction;
  onDirtyChange: (name: string, dirty: boolean) => void;
  onSettingRemoved: (name: string) => void;
}

export function SettingLine(props: SettingLineProps) {
  const {
    appId,
    settingKey,
    value,
    settingDetails,
    settings,
    confirm,
    onDirtyChange,
    onSettingRemoved,
    findPersonName,
  } = props;
  const isSecret = getSettingTier(settingKey) === "protected";
  const storedText = value === undefined ? EMPTY_VALUE : formatSettingText(value);
  // Studio cannot read a protected setting's value, so it compares the setting's time of change to notice another person's change.
  const field = useFieldDraft(storedText, isSecret ? { version: String(settingDetails?.updatedAt) } : {});
  const { draft, setDraft, isDirty: dirty } = field;
  const [fault, setFault] = useState<string | null>(null);
  const [isSaved, setSaved] = useState(false);
  const faultId = useId();
  const row = useRef<HTMLLIElement>(null);
  const saveButton = useRef<HTMLButtonElement>(null);
  useLayoutEffect(() => {
    onDirtyChange(settingKey, dirty);
    return () => onDirtyChange(settingKey, false);
  }, [settingKey, dirty, onDirtyChange]);

  const changeText = (next: EditableSettingText) => {
    setDraft(next);
    setSaved(false);
  };
  const saveSetting = async () => {
    const result = parseSettingText(draft);
    if ("fault" in result) return setFault(result.fault);
    if (!(await confirmPublicSecret(confirm, settingKey, result.value))) return;
    const saveFault = await settings.setValue(settingKey, result.value);
    setFault(saveFault);
    if (saveFault !== null) return;
    field.markSaved(draft);
    setSaved(true);
    // Moves the focus to the field. The button that has the focus becomes hidden after the save.
    if ([saveButton.current, document.body].includes(document.activeElement as HTMLElement))
      row.current?.querySelector<HTMLElement>(VALUE_SELECTOR)?.focus();
  };
  const removeSetting = async () => {
    const text = "Actions and pages can no longer read this setting.";
    if (
      !(await confirm({ title: `Delete ${settingKey}?`, explanation: text, confirmLabel: "Delete", isDangerous: true }))
    )
      return;
    const removeFault = await settings.removeSetting(settingKey);
    setFault(removeFault);
    if (removeFault === null) onSettingRemoved(settingKey);
  };
  return (
    <li ref={row} className={dirty ? "setting edited" : "setting"} data-key={settingKey}>
      <div className="setting-name">
        <code>{settingKey}</code>
        {settingDetails && getSettingTier(settingKey) === "private" && (
          <label className="hint check" title="Checked: a run fails if its result or its error contains this value.">
            <input
              type="checkbox"
              checked={settingDetails.secret}
              onChange={async ({ target }) => setFault(await settings.markAsSecret(settingKey, target.checked))}
            />
            secret
          </label>
        )}
        {settingDetails?.updatedAt && (
          <span className="hint" title={formatExactTime(settingDetails.updatedAt)}>
            set {formatAge(settingDetails.updatedAt)}
            {settingDetails.updatedBy !== null && ` by ${findPersonName(settingDetails.updatedBy)}`}
          </span>
        )}
        <SettingReaders appId={appId} name={settingKey} />
      </div>
      <div>
        <ValueInput {...{ isSecret, fault, faultId }} label={settingKey} value={draft} onChange={changeText} />
        <p id={faultId} className="fault" role="alert">
          {fault}
        </p>
        <ChangedElsewhereNotice label={settingKey} field={field} />
      </div>
      <div className="row">
        <span className="saved" role="status">
          {isSaved && !dirty && "Saved"}
        </span>
        <button
          ref={saveButton}
          type="button"
          className="primary save"
          disabled={!dirty || field.isChangedElsewhere}
          onClick={() => void saveSetting()}
        >
          {isSecret ? "Replace" : "Save"}
        </button>
        <button
          type="button"
          className="quiet icon"
          title="Delete"
          aria-label={`Delete ${settingKey}`}
          onClick={() => void removeSetting()}
        >
          <Trash2 size={ICON_PIXELS} aria-hidden />
        </button>
      </div>
    </li>
  );
}
