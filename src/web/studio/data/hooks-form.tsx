/** Form for the hooks of a data source: changes of values, e-mails and text messages. definition-field.tsx also shows the value as JSON. */
import { useId } from "react";
import { isHookValue, type OperationsRow } from "./draft-rows.js";
import { Checks, ColumnInput, ItemCard, type ListFormProps } from "./form-parts.js";
import { useRows } from "./use-rows.js";

type Fields = Record<string, string[]>;

/** Hook as the form edits it. It keeps fields that the form does not show. */
export interface HookDraft {
  type: "operations" | "email" | "sms";
  runOn: string[];
  fields?: Fields;
  to?: unknown;
  [field: string]: unknown;
}

type Form = ListFormProps<HookDraft>;

interface PartProps {
  hook: HookDraft;
  columns: readonly string[];
  put: (part: Partial<HookDraft>) => void;
}

const OPERATIONS = [
  ["trim", "Trim spaces"],
  ["lower", "Lower case"],
  ["upper", "Upper case"],
  ["hash", "Hash (passwords)"],
] as const;
const RUN_ON = [
  ["insert", "An entry is added"],
  ["update", "An entry is changed"],
] as const;
const KINDS: Readonly<Record<HookDraft["type"], string>> = {
  operations: "Change values",
  email: "Send an e-mail",
  sms: "Send a text message",
};

/** True if the form can show the value without losing parts of it. */
export const isHookList = (value: unknown): value is HookDraft[] => isHookValue(value);

function Operations({ hook, columns, put }: PartProps) {
  const { rows, set, fault } = useRows<OperationsRow>({
    rows: Object.entries(hook.fields ?? {}),
    keyOf: ([column]) => column,
    read: (next) => Object.entries(Object.fromEntries(next)),
    write: (next) => put({ fields: Object.fromEntries(next) }),
  });
  const unused = columns.find((column) => !rows.some(([used]) => used === column)) ?? "";
  return (
    <>
      {rows.map(([column, operations], at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a row is named by its position while its column is typed
        <div key={at} className="row wrap">
          <ColumnInput
            label={`Column ${at + 1}`}
            value={column}
            columns={columns}
            change={(next) => set(rows.with(at, [next, operations]))}
          />
          <Checks
            label={`What happens to ${column || "the column"}`}
            options={OPERATIONS}
            chosen={operations}
            choose={(chosen) =>
              set(chosen.length === 0 ? rows.filter((_, other) => other !== at) : rows.with(at, [column, chosen]))
            }
          />
        </div>
      ))}
      <button type="button" className="quiet" onClick={() => set([...rows, [unused, ["trim"]]])}>
        Add a column
      </button>
      <p className="fault" role="alert">
        {fault}
      </p>
    </>
  );
}

interface TextProps {
  label: string;
  value: unknown;
  isLong?: boolean;
  change: (value: string) => void;
}

function Text({ label, value, isLong, change }: TextProps) {
  const id = useId();
  const text = typeof value === "string" ? value : "";
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      {isLong ? (
        <textarea id={id} rows={4} value={text} onChange={(event) => change(event.target.value)} />
      ) : (
        <input id={id} value={text} onChange={(event) => change(event.target.value)} />
      )}
    </div>
  );
}

function Email({ hook, put }: PartProps) {
  const [to = {}] = (hook.to ?? []) as Record<string, unknown>[];
  const body = hook["html"] === undefined && hook["text"] !== undefined ? "text" : "html";
  return (
    <>
      <Text label="To" value={to["email"]} change={(email) => put({ to: [{ ...to, email }] })} />
      <Text label="Subject" value={hook["subject"]} change={(subject) => put({ subject })} />
      <Text
        label={body === "html" ? "Message (HTML)" : "Message"}
        isLong
        value={hook[body]}
        change={(text) => put({ [body]: text })}
      />
    </>
  );
}

function Sms({ hook, put }: PartProps) {
  return (
    <>
      <Text label="To" value={hook.to} change={(to) => put({ to })} />
      <Text label="Message" isLong value={hook["body"]} change={(body) => put({ body })} />
    </>
  );
}

const PARTS = { operations: Operations, email: Email, sms: Sms };

function summaryOf({ type, fields = {}, runOn }: HookDraft): string {
  const when = RUN_ON.filter(([verb]) => runOn.includes(verb)).map(([, words]) => words.toLowerCase());
  const columns = type === "operations" && Object.keys(fields).join(", ");
  return `${KINDS[type]}${columns ? ` of ${columns}` : ""} when ${when.join(" or ") || "nothing happens"}`;
}

function Hook({ index, ...form }: Form & { index: number }) {
  const { value, change, columns } = form;
  const hook = value[index]!;
  const put = (part: Partial<HookDraft>) => change(value.with(index, { ...hook, ...part }));
  const Part = PARTS[hook.type];
  return (
    <ItemCard noun="Hook" summary={summaryOf(hook)} {...form} index={index}>
      <Checks label="When" options={RUN_ON} chosen={hook.runOn} choose={(runOn) => put({ runOn })} />
      <Part {...{ hook, columns, put }} />
      {hook.type !== "operations" && (
        <p className="hint">
          <code>{"{{Column}}"}</code> inserts the value of the entry
          {columns.length > 0 &&
            `: ${columns
              .slice(0, 6)
              .map((column) => `{{${column}}}`)
              .join(", ")}`}
          .
        </p>
      )}
    </ItemCard>
  );
}

function freshHook(type: HookDraft["type"], columns: readonly string[]): HookDraft {
  const address = columns.find((column) => /mail/i.test(column)) ?? "Email";
  const phone = columns.find((column) => /phone|mobile/i.test(column)) ?? "Phone";
  const runOn = ["insert"];
  if (type === "email") return { type, runOn, to: [{ email: `{{${address}}}` }], subject: "", html: "" };
  if (type === "sms") return { type, runOn, to: `{{${phone}}}`, body: "" };
  return { type, runOn: ["insert", "update"], fields: { [columns[0] ?? "Email"]: ["trim"] } };
}

export function HooksForm(form: Form) {
  const { value, change, columns } = form;
  return (
    <div className="item-cards">
      {value.length === 0 && <p className="hint">No hooks: values are stored as they are written.</p>}
      {value.map((_, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: hooks are identified by their position
        <Hook key={index} {...form} index={index} />
      ))}
      <label className="field">
        Add a hook
        <select
          aria-label="Add a hook"
          value=""
          onChange={(event) => change([...value, freshHook(event.target.value as HookDraft["type"], columns)])}
        >
          <option value="">Choose what it does…</option>
          {Object.entries(KINDS).map(([kind, words]) => (
            <option key={kind} value={kind}>
              {words}
            </option>
          ))}
        </select>
      </label>
    </div>
  );
}
