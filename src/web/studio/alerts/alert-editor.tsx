/** Editor of one alert: its condition, its recipients, its current state, and the messages that the service has sent for it. */
import { keepPreviousData } from "@tanstack/react-query";
import { type ReactNode, useId, useState } from "react";
import { ReadAlertDeliveries } from "../documents.js";
import { asApiError } from "../shared/api.js";
import { ChangedElsewhereNotice } from "../shared/changed-elsewhere.js";
import type { ConfirmFunction } from "../shared/confirm.js";
import { EditorFields } from "../shared/editor-fields.js";
import { formatExactTime, formatTime } from "../shared/format.js";
import type { ActionSummary, Alert, AlertInput } from "../shared/model.js";
import { useFieldDraft } from "../shared/use-field-draft.js";
import { createQueryOptions, useResource } from "../shared/use-resource.js";
import { useUnsavedChanges } from "../shared/use-unsaved-changes.js";
import {
  ALERT_CHANNEL_LABELS,
  ALERT_CONDITION_LABELS,
  type AlertDraft,
  alertDraftToInput,
  alertToDraft,
} from "./alert-draft.js";

/** HTML attributes that connect an input with its error message for screen readers. */
interface ErrorAttributes {
  id: string;
  "aria-invalid": boolean;
  "aria-describedby": string;
}

interface LabelledFieldProps {
  label: string;
  hint?: string | undefined;
  fault?: string | null;
  children: (errorAttributes: ErrorAttributes) => ReactNode;
}

function LabelledField({ label, hint, fault = null, children }: LabelledFieldProps) {
  const id = useId();
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      {children({ id, "aria-invalid": fault !== null, "aria-describedby": `${id}-fault` })}
      <p id={`${id}-fault`} className="fault" role="alert">
        {fault}
      </p>
      <p className="hint">{hint}</p>
    </div>
  );
}

/** Form fields whose name an error message of the service can begin with. */
const ALERT_FIELDS = ["name", "failures", "of", "minutes", "to", "setting"] as const;
type FieldName = (typeof ALERT_FIELDS)[number];

/** Returns the name of the form field with which the error message begins, or null if it begins with none. */
const findFieldName = (message: string | null): FieldName | null =>
  ALERT_FIELDS.find((name) => message !== null && (message.startsWith(`${name} `) || message.startsWith(`${name}[`))) ??
  null;

/** True if the form shows this field. The service can also reject a hidden number, because the form always sends all numbers. */
function isFieldShown(name: FieldName, { condition, channel }: AlertDraft): boolean {
  switch (name) {
    case "failures":
    case "of":
      return condition === "failed";
    case "minutes":
      return condition === "silent" || condition === "queued";
    case "to":
      return channel === "email";
    case "setting":
      return channel !== "email";
    default:
      return true;
  }
}

interface AlertFieldsProps {
  draft: AlertDraft;
  changeDraft: (part: Partial<AlertDraft>) => void;
  getFieldFault: (field: FieldName) => string | null;
}

function ChoiceField<T extends string>(props: {
  label: string;
  value: T;
  options: readonly [T, string][];
  onChoose: (value: T) => void;
}) {
  return (
    <LabelledField label={props.label}>
      {(errorAttributes) => (
        <select {...errorAttributes} value={props.value} onChange={(event) => props.onChoose(event.target.value as T)}>
          {props.options.map(([value, words]) => (
            <option key={value} value={value}>
              {words}
            </option>
          ))}
        </select>
      )}
    </LabelledField>
  );
}

interface NumberFieldProps {
  label: string;
  value: string;
  fault: string | null;
  onChange: (value: string) => void;
}

function NumberField({ label, value, fault, onChange }: NumberFieldProps) {
  return (
    <LabelledField label={label} fault={fault}>
      {(errorAttributes) => (
        <input
          {...errorAttributes}
          type="number"
          min={1}
          value={value}
          onChange={(event) => onChange(event.target.value)}
        />
      )}
    </LabelledField>
  );
}

function ConditionFields({
  draft,
  changeDraft,
  getFieldFault,
  actions,
}: AlertFieldsProps & { actions: ActionSummary[] }) {
  const { condition, actionId, failures, of, minutes } = draft;
  const actionOptions: [string, string][] = [
    ["", "Every action of the app"],
    ...actions.map(({ id, name }): [string, string] => [String(id), name]),
  ];
  // If the list lacks the alert's action, for example because it is not loaded yet, the select shows this action by its ID.
  if (!actionOptions.some(([id]) => id === actionId)) actionOptions.push([actionId, `Action ${actionId}`]);
  return (
    <>
      <ChoiceField
        label="Condition"
        value={condition}
        options={ALERT_CONDITION_LABELS}
        onChoose={(next) => changeDraft({ condition: next })}
      />
      {condition !== "queued" && (
        <ChoiceField
          label="Action"
          value={actionId}
          options={actionOptions}
          onChoose={(next) => changeDraft({ actionId: next })}
        />
      )}
      {isFieldShown("failures", draft) && (
        <div className="row pair">
          <NumberField
            label="Failures"
            value={failures}
            fault={getFieldFault("failures")}
            onChange={(next) => changeDraft({ failures: next })}
          />
          <NumberField
            label="Of the last runs"
            value={of}
            fault={getFieldFault("of")}
            onChange={(next) => changeDraft({ of: next })}
          />
        </div>
      )}
      {isFieldShown("minutes", draft) && (
        <NumberField
          label="Minutes"
          value={minutes}
          fault={getFieldFault("minutes")}
          onChange={(next) => changeDraft({ minutes: next })}
        />
      )}
    </>
  );
}

function RecipientFields({ draft, changeDraft, getFieldFault }: AlertFieldsProps) {
  const { channel, to, setting } = draft;
  const isMail = channel === "email";
  const hints = {
    webhook: 'Key of a protected setting that contains {"url", "secret"}.',
    slack: "Key of a protected setting that contains the URL of the webhook.",
  };
  return (
    <>
      <ChoiceField
        label="Send by"
        value={channel}
        options={ALERT_CHANNEL_LABELS}
        onChoose={(next) => changeDraft({ channel: next })}
      />
      <LabelledField
        label={isMail ? "Addresses" : "Setting"}
        hint={channel === "email" ? "Separated by commas." : hints[channel]}
        fault={getFieldFault(isMail ? "to" : "setting")}
      >
        {(errorAttributes) =>
          isMail ? (
            <input {...errorAttributes} value={to} onChange={(event) => changeDraft({ to: event.target.value })} />
          ) : (
            <input
              {...errorAttributes}
              className="mono"
              value={setting}
              onChange={(event) => changeDraft({ setting: event.target.value })}
            />
          )
        }
      </LabelledField>
      <label className="check">
        <input
          type="checkbox"
          checked={draft.enabled}
          onChange={(event) => changeDraft({ enabled: event.target.checked })}
        />
        Alert is on
      </label>
    </>
  );
}

/** Interval between reads of the sent messages, whose status can change. */
const REFRESH_INTERVAL_MS = 10_000;

function AlertStatus({ appId, alert }: { appId: number; alert: Alert }) {
  // Reads the messages again when the alert's state changes, because the service stores a message at each change.
  const state = alert.firing.map(({ firedAt }) => firedAt).join(" ");
  const { value, fault } = useResource({
    ...createQueryOptions(ReadAlertDeliveries, { appId, id: alert.id }, state),
    refetchInterval: REFRESH_INTERVAL_MS,
    placeholderData: keepPreviousData,
  });
  return (
    <aside aria-label="Status of the alert">
      <h3>Now</h3>
      {alert.firing.length === 0 && <p className="hint">Not firing.</p>}
      <ul>
        {alert.firing.map(({ actionName, firedAt, reason }) => (
          <li key={`${actionName} ${firedAt}`}>
            <b>{actionName ?? "the app"}</b>: {reason} <time dateTime={firedAt}>since {formatExactTime(firedAt)}</time>
          </li>
        ))}
      </ul>
      <h3>Sent messages</h3>
      <p className="fault" role="alert">
        {fault}
      </p>
      {value?.deliveries.length === 0 && <p className="hint">None yet.</p>}
      <ul>
        {value?.deliveries.map(({ id, status, text, detail, createdAt }) => (
          <li key={id}>
            <time dateTime={createdAt}>{formatTime(createdAt)}</time> {text}{" "}
            <span className={`chip ${status}`}>{status}</span>
            <span className="hint"> {detail}</span>
          </li>
        ))}
      </ul>
    </aside>
  );
}

interface AlertEditorProps {
  appId: number;
  /** Alert as the service has stored it; null for a new alert. */
  alert: Alert | null;
  /** True if this alert was deleted elsewhere, such as by another person or in another tab, while it was open. */
  isDeleted: boolean;
  actions: ActionSummary[];
  confirm: ConfirmFunction;
  saveAlert: (input: AlertInput) => Promise<void>;
  sendTestMessage: () => Promise<void>;
  removeAlert: () => Promise<void>;
  goBack: () => void;
  setDirty: (isDirty: boolean) => void;
}

export function AlertEditor(props: AlertEditorProps) {
  const { appId, alert, isDeleted, actions, confirm, saveAlert, sendTestMessage, removeAlert, goBack, setDirty } =
    props;
  const field = useFieldDraft(alertToDraft(alert));
  const { draft, setDraft, isDirty } = field;
  useUnsavedChanges(setDirty, isDirty);
  const [fault, setFault] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const changeDraft = (part: Partial<AlertDraft>) => {
    // The error message describes the rejected value, so it disappears when the person changes the form.
    setFault(null);
    setDraft((old) => ({ ...old, ...part }));
  };
  const namedField = findFieldName(fault);
  // Shows the error at the field that it names, or below the form if that field is hidden.
  const faultyField = namedField !== null && isFieldShown(namedField, draft) ? namedField : null;
  const getFieldFault = (name: FieldName) => (name === faultyField ? fault : null);

  const runAndShowError = async (request: () => Promise<void>) => {
    setBusy(true);
    setFault(null);
    await request().catch((error: unknown) => setFault(asApiError(error).message));
    setBusy(false);
  };
  const onRemove = async () => {
    const question = {
      title: "Delete this alert?",
      explanation: "Its recipients get no more messages.",
      confirmLabel: "Delete",
      isDangerous: true,
    };
    if (await confirm(question)) await runAndShowError(removeAlert);
  };
  return (
    <article className="reader" aria-label="Alert">
      <div className="row">
        <button type="button" className="link narrow-only" onClick={goBack}>
          ← Alerts
        </button>
        <h2 className="grow">{alert ? alert.name : "New alert"}</h2>
      </div>
      <div className="notification-editor">
        {/* The first save replaces this editor by another. Text typed during the save would be lost. */}
        <EditorFields isDisabled={busy && alert === null}>
          <LabelledField label="Name" fault={getFieldFault("name")}>
            {(errorAttributes) => (
              <input
                {...errorAttributes}
                value={draft.name}
                onChange={(event) => changeDraft({ name: event.target.value })}
              />
            )}
          </LabelledField>
          <ConditionFields {...{ draft, changeDraft, getFieldFault, actions }} />
          <RecipientFields {...{ draft, changeDraft, getFieldFault }} />
          <p className="fault" role="alert">
            {faultyField === null && fault}
          </p>
          <p className="notice" role="status">
            {isDeleted && "This alert was deleted elsewhere."}
          </p>
          <ChangedElsewhereNotice label="This alert" field={field} />
          <div className="row">
            <button
              type="button"
              className="primary"
              disabled={busy || isDeleted || field.isChangedElsewhere}
              onClick={() =>
                void runAndShowError(() => saveAlert(alertDraftToInput(draft)).then(() => field.markSaved(draft)))
              }
            >
              {alert ? "Save" : "Create"}
            </button>
            {alert && (
              <>
                <button
                  type="button"
                  disabled={busy || isDeleted}
                  onClick={() => void runAndShowError(sendTestMessage)}
                >
                  Send a test
                </button>
                <button type="button" className="quiet danger-text" onClick={() => void onRemove()}>
                  Delete
                </button>
              </>
            )}
          </div>
        </EditorFields>
        {alert && <AlertStatus appId={appId} alert={alert} />}
      </div>
    </article>
  );
}
