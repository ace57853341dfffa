/** Editor of one notification, with a preview. The person can publish the notification immediately or at a chosen time. */
import { useId, useState } from "react";
import { asApiError } from "../shared/api.js";
import { ChangedElsewhereNotice } from "../shared/changed-elsewhere.js";
import type { ConfirmFunction } from "../shared/confirm.js";
import { EditorFields } from "../shared/editor-fields.js";
import { formatExactTime } from "../shared/format.js";
import type { Notification, NotificationInput } from "../shared/model.js";
import { padToTwoDigits, type TimeOfDay, TimeOfDayFields } from "../shared/time-of-day.js";
import { useFieldDraft } from "../shared/use-field-draft.js";
import { useUnsavedChanges } from "../shared/use-unsaved-changes.js";
import {
  draftToNotification,
  type NotificationDraft,
  notificationToDraft,
  type PublicationChoice,
} from "./notification-draft.js";
import { describeRecipients } from "./recipients.js";
import { RecipientsField } from "./recipients-field.js";

interface NotificationEditorProps {
  /** Notification as the service has stored it; null for a new one. */
  notification: Notification | null;
  /** True if the notification was deleted elsewhere, such as by another person or in another tab, while it was open. */
  isDeleted: boolean;
  confirm: ConfirmFunction;
  saveNotification: (input: NotificationInput) => Promise<void>;
  removeNotification: () => Promise<void>;
  goBack: () => void;
  setDirty: (isDirty: boolean) => void;
}

interface TextFieldProps {
  label: string;
  value: string;
  onChange: (value: string) => void;
  rows?: number;
  hint?: string;
}

function TextField({ label, value, onChange, rows, hint }: TextFieldProps) {
  const id = useId();
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      {rows ? (
        <textarea id={id} rows={rows} value={value} onChange={(event) => onChange(event.target.value)} />
      ) : (
        <input id={id} value={value} onChange={(event) => onChange(event.target.value)} />
      )}
      <p className="hint">{hint}</p>
    </div>
  );
}

/** Time of day that the form shows before the person has chosen one. */
const DEFAULT_TIME = "09:00";

const PUBLICATION_OPTIONS: [PublicationChoice, string][] = [
  ["draft", "Keep as a draft"],
  ["published", "Publish now"],
  ["scheduled", "Publish at"],
];

/** Fields for a date and a time of day. `localTime` has the form "2026-01-31T09:00". Without a date, it is "T09:00" or "". */
function DateTimeFields({
  localTime,
  changeLocalTime,
}: {
  localTime: string;
  changeLocalTime: (localTime: string) => void;
}) {
  const [date = "", time = DEFAULT_TIME] = localTime.split("T");
  const [hour = 0, minute = 0] = time.split(":").map(Number);
  const changeTime = (part: Partial<TimeOfDay>) => {
    const next = { hour, minute, ...part };
    changeLocalTime(`${date}T${padToTwoDigits(next.hour)}:${padToTwoDigits(next.minute)}`);
  };
  return (
    <>
      <input
        aria-label="Date"
        className="when"
        type="date"
        value={date}
        onChange={({ target }) => changeLocalTime(`${target.value}T${time}`)}
      />
      <TimeOfDayFields {...{ hour, minute, changeTime }} />
    </>
  );
}

function PublicationFields({
  draft,
  changeDraft,
}: {
  draft: NotificationDraft;
  changeDraft: (part: Partial<NotificationDraft>) => void;
}) {
  return (
    <div className="field">
      <span className="field-label" aria-hidden="true">
        When
      </span>
      <div className="row">
        <select
          aria-label="When"
          className="when"
          value={draft.publication}
          onChange={(event) => changeDraft({ publication: event.target.value as PublicationChoice })}
        >
          {PUBLICATION_OPTIONS.map(([name, label]) => (
            <option key={name} value={name}>
              {label}
            </option>
          ))}
        </select>
        {draft.publication === "scheduled" && (
          <DateTimeFields localTime={draft.orderAt} changeLocalTime={(orderAt) => changeDraft({ orderAt })} />
        )}
        <label className="check">
          <input
            type="checkbox"
            checked={draft.sendsPush}
            onChange={(event) => changeDraft({ sendsPush: event.target.checked })}
          />
          Also send to devices (Web Push)
        </label>
      </div>
    </div>
  );
}

function NotificationPreview({ title, message, scope }: NotificationDraft) {
  return (
    <aside className="notification-preview" aria-label="Preview">
      <h3>Preview</h3>
      <div className="notification-card">
        <b>{title || "Title"}</b>
        <p>{message || "Message"}</p>
      </div>
      <p className="hint">{describeRecipients(scope)}</p>
    </aside>
  );
}

export function NotificationEditor({
  notification,
  isDeleted,
  confirm,
  saveNotification,
  removeNotification,
  goBack,
  setDirty,
}: NotificationEditorProps) {
  const field = useFieldDraft(notificationToDraft(notification));
  const { draft, setDraft, isDirty } = field;
  useUnsavedChanges(setDirty, isDirty);
  const [fault, setFault] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const [areRecipientsFaulty, setRecipientsFaulty] = useState(false);
  const changeDraft = (part: Partial<NotificationDraft>) => setDraft((old) => ({ ...old, ...part }));

  const runAndShowError = async (request: () => Promise<void>) => {
    setBusy(true);
    setFault(null);
    await request().catch((error: unknown) => {
      setFault(error instanceof SyntaxError ? "Recipients must be valid JSON." : asApiError(error).message);
    });
    setBusy(false);
  };
  const onRemove = async () => {
    const question = {
      title: "Delete this notification?",
      explanation: "Users who have not seen it will not receive it.",
      confirmLabel: "Delete",
      isDangerous: true,
    };
    if (await confirm(question)) await runAndShowError(removeNotification);
  };
  const label = draft.publication === "published" && notification?.status !== "published" ? "Publish" : "Save";
  return (
    <article className="reader" aria-label="Notification">
      <div className="row">
        <button type="button" className="link narrow-only" onClick={goBack}>
          ← Notifications
        </button>
        <h2 className="grow">{notification ? `Notification ${notification.id}` : "New notification"}</h2>
        {notification && <span className={`chip ${notification.status}`}>{notification.status}</span>}
      </div>
      {notification?.publishedAt && <p className="hint">published {formatExactTime(notification.publishedAt)}</p>}
      <div className="notification-editor">
        {/* The first save replaces this editor by another. Text typed during the save would be lost. */}
        <EditorFields isDisabled={busy && notification === null}>
          <TextField label="Title" value={draft.title} onChange={(title) => changeDraft({ title })} />
          <TextField label="Message" rows={4} value={draft.message} onChange={(message) => changeDraft({ message })} />
          <TextField
            label="Opens"
            value={draft.navigate}
            onChange={(navigate) => changeDraft({ navigate })}
            hint="A page of the app, such as /orders/7."
          />
          <RecipientsField
            scope={draft.scope}
            onChange={(scope) => changeDraft({ scope })}
            onFaultyChange={setRecipientsFaulty}
          />
          <PublicationFields draft={draft} changeDraft={changeDraft} />
          <p className="fault" role="alert">
            {fault}
          </p>
          <p className="notice" role="status">
            {isDeleted && "This notification was deleted elsewhere."}
          </p>
          <ChangedElsewhereNotice label="This notification" field={field} />
          <div className="row">
            <button
              type="button"
              className="primary"
              disabled={busy || isDeleted || field.isChangedElsewhere || areRecipientsFaulty}
              onClick={() =>
                void runAndShowError(async () =>
                  saveNotification(draftToNotification(draft, notification)).then(() => field.markSaved(draft)),
                )
              }
            >
              {label}
            </button>
            {notification && (
              <button type="button" className="quiet danger-text" onClick={() => void onRemove()}>
                Delete
              </button>
            )}
          </div>
        </EditorFields>
        <NotificationPreview {...draft} />
      </div>
    </article>
  );
}
