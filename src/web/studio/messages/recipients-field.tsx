/** Form field for the recipients of a notification: all users, users by ID, users who meet conditions, or recipients as JSON. */
import Plus from "icon:plus";
import Trash2 from "icon:trash-2";
import { useEffect, useId, useState } from "react";
import { useFormRows } from "../data/use-rows.js";
import { findValueFault } from "../shared/typed-value.js";
import { ValueFields } from "../shared/value-fields.js";
import {
  isUserId,
  normalizeConditions,
  parseNotificationRecipients,
  RECIPIENT_COMPARISON_LABELS,
  type RecipientComparison,
  type RecipientCondition,
  type Recipients,
  recipientsToScope,
  splitUserIds,
} from "./recipients.js";

const ICON_PIXELS = 14;
const NEW_CONDITION: RecipientCondition = { column: "", comparison: "$eq", typedText: "", kind: "string" };

type RecipientsKind = Recipients["kind"] | "json";
const RECIPIENTS_KINDS: readonly (readonly [RecipientsKind, string])[] = [
  ["everyone", "All users"],
  ["users", "Users by ID"],
  ["conditions", "Users who meet conditions"],
  ["json", "A scope as JSON"],
];
const EMPTY_RECIPIENTS: Readonly<Record<Recipients["kind"], Recipients>> = {
  everyone: { kind: "everyone" },
  users: { kind: "users", ids: [] },
  conditions: { kind: "conditions", conditions: [NEW_CONDITION] },
};

interface RecipientsFieldProps {
  /** Recipients as JSON text; "" for all users of the app and anonymous visitors. */
  scope: string;
  onChange: (scope: string) => void;
  /** Called with true when the field shows an error, and with false when the error is gone. Must be the same function in each render. */
  onFaultyChange: (isFaulty: boolean) => void;
}

function useFaultyReport(isFaulty: boolean, onFaultyChange: (isFaulty: boolean) => void): void {
  useEffect(() => {
    onFaultyChange(isFaulty);
    return () => onFaultyChange(false);
  }, [isFaulty, onFaultyChange]);
}

interface UserIdsProps extends Pick<RecipientsFieldProps, "onFaultyChange"> {
  ids: readonly number[];
  onChange: (ids: number[]) => void;
}

function UserIds({ ids, onChange, onFaultyChange }: UserIdsProps) {
  const storedText = ids.join(", ");
  const [edit, setEdit] = useState({ text: storedText, storedText });
  const text = edit.storedText === storedText ? edit.text : storedText;
  const invalidId = splitUserIds(text).find((word) => !isUserId(word));
  useFaultyReport(invalidId !== undefined, onFaultyChange);
  const faultId = useId();
  return (
    <>
      <input
        aria-label="IDs of the users"
        aria-invalid={invalidId !== undefined}
        aria-describedby={faultId}
        placeholder="7, 12, 31"
        inputMode="numeric"
        value={text}
        onChange={({ target: { value } }) => {
          const next = [...new Set(splitUserIds(value).filter(isUserId).map(Number))];
          setEdit({ text: value, storedText: next.join(", ") });
          onChange(next);
        }}
      />
      <p id={faultId} className="fault" role="alert">
        {invalidId !== undefined && `“${invalidId}” is not an ID.`}
      </p>
    </>
  );
}

interface ConditionRowsProps extends Pick<RecipientsFieldProps, "onFaultyChange"> {
  conditions: RecipientCondition[];
  changeConditions: (conditions: RecipientCondition[]) => void;
}

interface ConditionRowProps {
  condition: RecipientCondition;
  /** Number of the row in its labels. The first row has the number 1. */
  rowNumber: number;
  changeCondition: (part: Partial<RecipientCondition>) => void;
  removeCondition: () => void;
}

function ConditionRow({ condition, rowNumber, changeCondition, removeCondition }: ConditionRowProps) {
  return (
    <div className="row">
      <input
        className="mono"
        aria-label={`Column ${rowNumber}`}
        placeholder="column"
        value={condition.column}
        onChange={({ target }) => changeCondition({ column: target.value })}
      />
      <select
        aria-label={`Comparison ${rowNumber}`}
        value={condition.comparison}
        onChange={({ target }) => changeCondition({ comparison: target.value as RecipientComparison })}
      >
        {RECIPIENT_COMPARISON_LABELS.map(([value, words]) => (
          <option key={value} value={value}>
            {words}
          </option>
        ))}
      </select>
      <ValueFields
        typedText={condition.typedText}
        kind={condition.kind}
        {...{ rowNumber, changeValue: changeCondition }}
      />
      <button
        type="button"
        className="quiet icon"
        aria-label={`Remove condition ${rowNumber}`}
        onClick={removeCondition}
      >
        <Trash2 size={ICON_PIXELS} aria-hidden />
      </button>
    </div>
  );
}

function ConditionRows({ conditions, changeConditions, onFaultyChange }: ConditionRowsProps) {
  const { rows, set, fault } = useFormRows<RecipientCondition>({
    rows: conditions,
    getRowKey: ({ column, comparison }) => `${column} ${comparison}`,
    findRowsFault: findValueFault,
    normalizeRows: normalizeConditions,
    writeRows: changeConditions,
  });
  useFaultyReport(fault !== null, onFaultyChange);
  return (
    <div className="tests">
      {rows.map((row, rowIndex) => (
        <ConditionRow
          // biome-ignore lint/suspicious/noArrayIndexKey: a row has no other identity while the person types its column
          key={rowIndex}
          condition={row}
          rowNumber={rowIndex + 1}
          changeCondition={(part) => set(rows.with(rowIndex, { ...row, ...part }))}
          removeCondition={() => set(rows.filter((_, other) => other !== rowIndex))}
        />
      ))}
      <button type="button" className="quiet" onClick={() => set([...rows, NEW_CONDITION])}>
        <Plus size={ICON_PIXELS} aria-hidden /> Add a condition
      </button>
      <p className="fault" role="alert">
        {fault}
      </p>
    </div>
  );
}

export function RecipientsField({ scope, onChange, onFaultyChange }: RecipientsFieldProps) {
  const id = useId();
  const recipients = parseNotificationRecipients(scope);
  const [isJson, setJson] = useState(recipients === null);
  const kind: RecipientsKind = isJson || recipients === null ? "json" : recipients.kind;
  const chooseKind = (next: RecipientsKind) => {
    setJson(next === "json");
    if (next !== "json" && next !== recipients?.kind) onChange(recipientsToScope(EMPTY_RECIPIENTS[next]));
  };
  const writeRecipients = (next: Recipients) => onChange(recipientsToScope(next));
  return (
    <div className="field">
      <label htmlFor={id}>Recipients</label>
      <select id={id} value={kind} onChange={({ target }) => chooseKind(target.value as RecipientsKind)}>
        {RECIPIENTS_KINDS.map(([value, words]) => (
          <option key={value} value={value}>
            {words}
          </option>
        ))}
      </select>
      {kind === "json" && (
        <>
          <textarea
            className="mono"
            aria-label="Scope"
            rows={3}
            value={scope}
            onChange={({ target }) => onChange(target.value)}
          />
          <p className="hint">
            Conditions on the columns of app users, such as {'{"email": {"$iLike": "@example.com"}}'}, or a list of
            conditions and user IDs, of which one must match.
          </p>
        </>
      )}
      {kind !== "json" && recipients?.kind === "users" && (
        <UserIds
          ids={recipients.ids}
          onChange={(ids) => writeRecipients({ kind: "users", ids })}
          onFaultyChange={onFaultyChange}
        />
      )}
      {kind !== "json" && recipients?.kind === "conditions" && (
        <ConditionRows
          conditions={recipients.conditions}
          changeConditions={(conditions) => writeRecipients({ kind: "conditions", conditions })}
          onFaultyChange={onFaultyChange}
        />
      )}
    </div>
  );
}
