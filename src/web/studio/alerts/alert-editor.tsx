/** One alert: when it fires, whom it tells, what it fires for now, and what it has said. */
import { type ReactNode, useEffect, useId, useState } from "react";
import { asApiError } from "../shared/api.js";
import { ChangedElsewhere } from "../shared/changed-elsewhere.js";
import type { Ask } from "../shared/confirm.js";
import { exact, moment } from "../shared/format.js";
import type { ActionSummary, Alert, AlertDelivery, AlertInput } from "../shared/model.js";
import { useFieldDraft } from "../shared/use-field-draft.js";
import { type AlertDraft, alertInputOf, CHANNELS, CONDITIONS, draftOfAlert } from "./alert-draft.js";

interface LabelledProps {
  label: string;
  hint?: string;
  children: (id: string) => ReactNode;
}

function Labelled({ label, hint, children }: LabelledProps) {
  const id = useId();
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      {children(id)}
      <p className="hint">{hint}</p>
    </div>
  );
}

interface PartProps {
  draft: AlertDraft;
  change: (part: Partial<AlertDraft>) => void;
}

function Choice<T extends string>(props: {
  label: string;
  value: T;
  options: readonly [T, string][];
  choose: (value: T) => void;
}) {
  return (
    <Labelled label={props.label}>
      {(id) => (
        <select id={id} value={props.value} onChange={(event) => props.choose(event.target.value as T)}>
          {props.options.map(([value, words]) => (
            <option key={value} value={value}>
              {words}
            </option>
          ))}
        </select>
      )}
    </Labelled>
  );
}

function NumberField({ label, value, change }: { label: string; value: string; change: (value: string) => void }) {
  return (
    <Labelled label={label}>
      {(id) => <input id={id} type="number" min={1} value={value} onChange={(event) => change(event.target.value)} />}
    </Labelled>
  );
}

function When({ draft, change, actions }: PartProps & { actions: ActionSummary[] }) {
  const { condition, actionId, failures, of, minutes } = draft;
  const named: [string, string][] = [
    ["", "every action of the app"],
    ...actions.map(({ id, name }): [string, string] => [String(id), name]),
  ];
  return (
    <>
      <Choice label="Tell when" value={condition} options={CONDITIONS} choose={(next) => change({ condition: next })} />
      {condition !== "queued" && (
        <Choice label="Of" value={actionId} options={named} choose={(next) => change({ actionId: next })} />
      )}
      {condition === "failed" && (
        <>
          <NumberField label="Failures" value={failures} change={(next) => change({ failures: next })} />
          <NumberField label="Of the last runs" value={of} change={(next) => change({ of: next })} />
        </>
      )}
      {(condition === "silent" || condition === "queued") && (
        <NumberField label="Minutes" value={minutes} change={(next) => change({ minutes: next })} />
      )}
    </>
  );
}

function Whom({ draft, change }: PartProps) {
  const { channel, to, setting } = draft;
  const isMail = channel === "email";
  const hints = {
    webhook: 'A protected setting that holds {"url", "secret"}.',
    slack: "A protected setting that holds the webhook's address.",
  };
  return (
    <>
      <Choice label="By" value={channel} options={CHANNELS} choose={(next) => change({ channel: next })} />
      <Labelled
        label={isMail ? "Addresses" : "Setting"}
        hint={channel === "email" ? "Separated by commas." : hints[channel]}
      >
        {(id) =>
          isMail ? (
            <input id={id} value={to} onChange={(event) => change({ to: event.target.value })} />
          ) : (
            <input
              id={id}
              className="mono"
              value={setting}
              onChange={(event) => change({ setting: event.target.value })}
            />
          )
        }
      </Labelled>
      <label className="check">
        <input
          type="checkbox"
          checked={draft.enabled}
          onChange={(event) => change({ enabled: event.target.checked })}
        />
        switched on
      </label>
    </>
  );
}

function Standing({ one, deliveries }: { one: Alert; deliveries: AlertDelivery[] }) {
  return (
    <aside aria-label="Standing">
      <h3>Now</h3>
      {one.firing.length === 0 && <p className="hint">All is well.</p>}
      <ul>
        {one.firing.map(({ actionName, firedAt, reason }) => (
          <li key={`${actionName} ${firedAt}`}>
            <b>{actionName ?? "the app"}</b>: {reason} <time dateTime={firedAt}>since {exact(firedAt)}</time>
          </li>
        ))}
      </ul>
      <h3>Said</h3>
      {deliveries.length === 0 && <p className="hint">Nothing yet.</p>}
      <ul>
        {deliveries.map(({ id, status, text, detail, createdAt }) => (
          <li key={id}>
            <time dateTime={createdAt}>{moment(createdAt)}</time> {text}{" "}
            <span className={`chip ${status}`}>{status}</span>
            <span className="hint"> {detail}</span>
          </li>
        ))}
      </ul>
    </aside>
  );
}

interface EditorProps {
  /** null: a new one. */
  one: Alert | null;
  actions: ActionSummary[];
  ask: Ask;
  deliveriesOf: (id: number) => Promise<AlertDelivery[]>;
  save: (input: AlertInput) => Promise<void>;
  test: () => Promise<void>;
  remove: () => Promise<void>;
  back: () => void;
  setDirty: (isDirty: boolean) => void;
}

export function AlertEditor({ one, actions, ask, deliveriesOf, save, test, remove, back, setDirty }: EditorProps) {
  const field = useFieldDraft(draftOfAlert(one));
  const { draft, setDraft, isDirty } = field;
  useEffect(() => setDirty(isDirty), [setDirty, isDirty]);
  const [fault, setFault] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const [deliveries, setDeliveries] = useState<AlertDelivery[]>([]);
  const change = (part: Partial<AlertDraft>) => setDraft((old) => ({ ...old, ...part }));
  const id = one?.id;

  const attempt = async (work: () => Promise<void>) => {
    setBusy(true);
    setFault(null);
    await work().catch((error: unknown) => setFault(asApiError(error).message));
    setBusy(false);
  };
  const read = async () => {
    if (id !== undefined) setDeliveries(await deliveriesOf(id));
  };
  // biome-ignore lint/correctness/useExhaustiveDependencies: what it has said is read when it is opened, and after a test
  useEffect(() => void attempt(read), [id]);
  const onRemove = async () => {
    const question = { title: "Delete it?", text: "Nobody is told any more.", yes: "Delete", danger: true };
    if (await ask(question)) await attempt(remove);
  };
  return (
    <article className="reader" aria-label="Alert">
      <div className="row">
        <button type="button" className="link narrow-only" onClick={back}>
          ← Alerts
        </button>
        <h2 className="grow">{one ? one.name : "New alert"}</h2>
      </div>
      <div className="notification-editor">
        <div>
          <Labelled label="Name">
            {(field) => (
              <input id={field} value={draft.name} onChange={(event) => change({ name: event.target.value })} />
            )}
          </Labelled>
          <When {...{ draft, change, actions }} />
          <Whom {...{ draft, change }} />
          <p className="fault" role="alert">
            {fault}
          </p>
          <ChangedElsewhere label="This alert" field={field} />
          <div className="row">
            <button
              type="button"
              className="primary"
              disabled={busy || field.isChangedElsewhere}
              onClick={() => void attempt(() => save(alertInputOf(draft)).then(() => field.accept(draft)))}
            >
              {one ? "Save" : "Create"}
            </button>
            {one && (
              <>
                <button type="button" disabled={busy} onClick={() => void attempt(() => test().then(read))}>
                  Send a test
                </button>
                <button type="button" className="quiet danger-text" onClick={() => void onRemove()}>
                  Delete
                </button>
              </>
            )}
          </div>
        </div>
        {one && <Standing one={one} deliveries={deliveries} />}
      </div>
    </article>
  );
}
