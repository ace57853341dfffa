/** Form for a data source's hooks, which run when entries are written: they change values or send messages. */
import { useId } from "react";
import { type ColumnOperationsRow, canEditHooksInForm } from "./draft-rows.js";
import { CheckBoxes, ColumnInput, ItemCard, type ListFormProps } from "./form-parts.js";
import { useFormRows } from "./use-rows.js";

type OperationsByColumn = Record<string, string[]>;

/** Hook as the form edits it. The form keeps fields that it does not show. */
export interface HookDraft {
  type: "operations" | "email" | "sms";
  runOn: string[];
  fields?: OperationsByColumn;
  to?: unknown;
  [field: string]: unknown;
}

type HooksFormProps = ListFormProps<HookDraft>;

interface HookFieldsProps {
  hook: HookDraft;
  columns: readonly string[];
  changeHook: (part: Partial<HookDraft>) => void;
}

const HOOK_OPERATIONS = [
  ["trim", "Trim spaces"],
  ["lower", "Lower case"],
  ["upper", "Upper case"],
  ["hash", "Hash (passwords)"],
] as const;
const RUN_ON_OPTIONS = [
  ["insert", "An entry is added"],
  ["update", "An entry is changed"],
] as const;
const HOOK_KIND_LABELS: Readonly<Record<HookDraft["type"], string>> = {
  operations: "Change values",
  email: "Send an e-mail",
  sms: "Send a text message",
};

/** True if the form can show these hooks without losing parts of them. */
export const isEditableHookList = (value: unknown): value is HookDraft[] => canEditHooksInForm(value);

function OperationsFields({ hook, columns, changeHook }: HookFieldsProps) {
  const { rows, set, fault } = useFormRows<ColumnOperationsRow>({
    rows: Object.entries(hook.fields ?? {}),
    getRowKey: ([column]) => column,
    normalizeRows: (next) => Object.entries(Object.fromEntries(next)),
    writeRows: (next) => changeHook({ fields: Object.fromEntries(next) }),
  });
  const unusedColumn = columns.find((column) => !rows.some(([usedColumn]) => usedColumn === column)) ?? "";
  return (
    <>
      {rows.map(([column, operations], rowIndex) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a row has no other identity while the person types its column
        <div key={rowIndex} className="row wrap">
          <ColumnInput
            label={`Column ${rowIndex + 1}`}
            value={column}
            columns={columns}
            onChange={(next) => set(rows.with(rowIndex, [next, operations]))}
          />
          <CheckBoxes
            label={`What happens to ${column || "the column"}`}
            options={HOOK_OPERATIONS}
            chosenOptions={operations}
            onChoose={(chosen) =>
              set(
                chosen.length === 0
                  ? rows.filter((_, other) => other !== rowIndex)
                  : rows.with(rowIndex, [column, chosen]),
              )
            }
          />
        </div>
      ))}
      <button type="button" className="quiet" onClick={() => set([...rows, [unusedColumn, ["trim"]]])}>
        Add a column
      </button>
      <p className="fault" role="alert">
        {fault}
      </p>
    </>
  );
}

interface HookTextProps {
  label: string;
  value: unknown;
  isLong?: boolean;
  onChange: (value: string) => void;
}

function HookText({ label, value, isLong, onChange }: HookTextProps) {
  const id = useId();
  const text = typeof value === "string" ? value : "";
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      {isLong ? (
        <textarea id={id} rows={4} value={text} onChange={(event) => onChange(event.target.value)} />
      ) : (
        <input id={id} value={text} onChange={(event) => onChange(event.target.value)} />
      )}
    </div>
  );
}

function EmailFields({ hook, changeHook }: HookFieldsProps) {
  const [to = {}] = (hook.to ?? []) as Record<string, unknown>[];
  const body = hook["html"] === undefined && hook["text"] !== undefined ? "text" : "html";
  return (
    <>
      <HookText label="To" value={to["email"]} onChange={(email) => changeHook({ to: [{ ...to, email }] })} />
      <HookText label="Subject" value={hook["subject"]} onChange={(subject) => changeHook({ subject })} />
      <HookText
        label={body === "html" ? "Message (HTML)" : "Message"}
        isLong
        value={hook[body]}
        onChange={(text) => changeHook({ [body]: text })}
      />
    </>
  );
}

function SmsFields({ hook, changeHook }: HookFieldsProps) {
  return (
    <>
      <HookText label="To" value={hook.to} onChange={(to) => changeHook({ to })} />
      <HookText label="Message" isLong value={hook["body"]} onChange={(body) => changeHook({ body })} />
    </>
  );
}

const HOOK_FIELD_COMPONENTS = { operations: OperationsFields, email: EmailFields, sms: SmsFields };

function describeHook({ type, fields = {}, runOn }: HookDraft): string {
  const runOnText = RUN_ON_OPTIONS.filter(([verb]) => runOn.includes(verb)).map(([, words]) => words.toLowerCase());
  const columns = type === "operations" && Object.keys(fields).join(", ");
  return `${HOOK_KIND_LABELS[type]}${columns ? ` of ${columns}` : ""} when ${runOnText.join(" or ") || "nothing happens"}`;
}

function HookCard({ index, ...form }: HooksFormProps & { index: number }) {
  const { items, changeItems, columns } = form;
  const hook = items[index]!;
  const changeHook = (part: Partial<HookDraft>) => changeItems(items.with(index, { ...hook, ...part }));
  const KindFields = HOOK_FIELD_COMPONENTS[hook.type];
  return (
    <ItemCard itemName="Hook" summary={describeHook(hook)} {...form} itemIndex={index}>
      <CheckBoxes
        label="When"
        options={RUN_ON_OPTIONS}
        chosenOptions={hook.runOn}
        onChoose={(runOn) => changeHook({ runOn })}
      />
      <KindFields {...{ hook, columns, changeHook }} />
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

function createHook(type: HookDraft["type"], columns: readonly string[]): HookDraft {
  const emailColumn = columns.find((column) => /mail/i.test(column)) ?? "Email";
  const phoneColumn = columns.find((column) => /phone|mobile/i.test(column)) ?? "Phone";
  const runOn = ["insert"];
  if (type === "email") return { type, runOn, to: [{ email: `{{${emailColumn}}}` }], subject: "", html: "" };
  if (type === "sms") return { type, runOn, to: `{{${phoneColumn}}}`, body: "" };
  return { type, runOn: ["insert", "update"], fields: { [columns[0] ?? "Email"]: ["trim"] } };
}

export function HooksForm(form: HooksFormProps) {
  const { items, changeItems, columns } = form;
  return (
    <div className="item-cards">
      {items.length === 0 && <p className="hint">No hooks: values are stored as they are written.</p>}
      {items.map((_, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the position of a hook identifies it
        <HookCard key={index} {...form} index={index} />
      ))}
      <label className="field">
        Add a hook
        <select
          aria-label="Add a hook"
          value=""
          onChange={(event) => changeItems([...items, createHook(event.target.value as HookDraft["type"], columns)])}
        >
          <option value="">Choose what it does…</option>
          {Object.entries(HOOK_KIND_LABELS).map(([kind, words]) => (
            <option key={kind} value={kind}>
              {words}
            </option>
          ))}
        </select>
      </label>
    </div>
  );
}
