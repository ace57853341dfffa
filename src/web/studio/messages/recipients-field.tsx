/** Form field for the recipients of a notification: all users, users by ID, users who meet conditions, or a scope as JSON. */
import Plus from "lucide-react/icons/plus";
import Trash2 from "lucide-react/icons/trash-2";
import { useEffect, useId, useState } from "react";
import { useRows } from "../data/use-rows.js";
import { valueFault } from "../shared/typed-value.js";
import { ValueFields } from "../shared/value-fields.js";
import {
  COMPARISONS,
  type Comparison,
  type Condition,
  isUserId,
  type Recipients,
  readBack,
  recipientsOf,
  scopeOf,
  wordsIn,
} from "./recipients.js";

const ICON_PIXELS = 14;
const FRESH: Condition = { column: "", comparison: "$eq", value: "", kind: "string" };

type Kind = Recipients["kind"] | "json";
const KINDS: readonly (readonly [Kind, string])[] = [
  ["everyone", "All users"],
  ["users", "Users by ID"],
  ["conditions", "Users who meet conditions"],
  ["json", "A scope as JSON"],
];
const EMPTY: Readonly<Record<Recipients["kind"], Recipients>> = {
  everyone: { kind: "everyone" },
  users: { kind: "users", ids: [] },
  conditions: { kind: "conditions", conditions: [FRESH] },
};

interface RecipientsFieldProps {
  /** Scope as JSON; "" for all users. */
  scope: string;
  change: (scope: string) => void;
  /** Receives true while the field shows a fault. Must be the same function in each render. */
  setFaulty: (isFaulty: boolean) => void;
}

function useFaulty(isFaulty: boolean, setFaulty: (isFaulty: boolean) => void): void {
  useEffect(() => {
    setFaulty(isFaulty);
    return () => setFaulty(false);
  }, [isFaulty, setFaulty]);
}

interface IdsProps extends Pick<RecipientsFieldProps, "setFaulty"> {
  ids: readonly number[];
  change: (ids: number[]) => void;
}

function Ids({ ids, change, setFaulty }: IdsProps) {
  const stored = ids.join(", ");
  const [edit, setEdit] = useState({ text: stored, stored });
  const text = edit.stored === stored ? edit.text : stored;
  const wrong = wordsIn(text).find((word) => !isUserId(word));
  useFaulty(wrong !== undefined, setFaulty);
  const faultId = useId();
  return (
    <>
      <input
        aria-label="IDs of the users"
        aria-invalid={wrong !== undefined}
        aria-describedby={faultId}
        placeholder="7, 12, 31"
        inputMode="numeric"
        value={text}
        onChange={({ target: { value } }) => {
          const next = [...new Set(wordsIn(value).filter(isUserId).map(Number))];
          setEdit({ text: value, stored: next.join(", ") });
          change(next);
        }}
      />
      <p id={faultId} className="fault" role="alert">
        {wrong !== undefined && `“${wrong}” is not an ID.`}
      </p>
    </>
  );
}

interface ConditionsProps extends Pick<RecipientsFieldProps, "setFaulty"> {
  conditions: Condition[];
  change: (conditions: Condition[]) => void;
}

interface ConditionRowProps {
  one: Condition;
  /** Number of the row, counted from 1. */
  number: number;
  put: (part: Partial<Condition>) => void;
  remove: () => void;
}

function ConditionRow({ one, number, put, remove }: ConditionRowProps) {
  return (
    <div className="row">
      <input
        className="mono"
        aria-label={`Column ${number}`}
        placeholder="column"
        value={one.column}
        onChange={({ target }) => put({ column: target.value })}
      />
      <select
        aria-label={`Comparison ${number}`}
        value={one.comparison}
        onChange={({ target }) => put({ comparison: target.value as Comparison })}
      >
        {COMPARISONS.map(([value, words]) => (
          <option key={value} value={value}>
            {words}
          </option>
        ))}
      </select>
      <ValueFields value={one.value} kind={one.kind} {...{ number, put }} />
      <button type="button" className="quiet icon" aria-label={`Remove condition ${number}`} onClick={remove}>
        <Trash2 size={ICON_PIXELS} aria-hidden />
      </button>
    </div>
  );
}

function Conditions({ conditions, change, setFaulty }: ConditionsProps) {
  const { rows, set, fault } = useRows<Condition>({
    rows: conditions,
    keyOf: ({ column, comparison }) => `${column} ${comparison}`,
    check: valueFault,
    read: readBack,
    write: change,
  });
  useFaulty(fault !== null, setFaulty);
  return (
    <div className="tests">
      {rows.map((one, at) => (
        <ConditionRow
          // biome-ignore lint/suspicious/noArrayIndexKey: a row is named by its position while its column is typed
          key={at}
          one={one}
          number={at + 1}
          put={(part) => set(rows.with(at, { ...one, ...part }))}
          remove={() => set(rows.filter((_, other) => other !== at))}
        />
      ))}
      <button type="button" className="quiet" onClick={() => set([...rows, FRESH])}>
        <Plus size={ICON_PIXELS} aria-hidden /> Add a condition
      </button>
      <p className="fault" role="alert">
        {fault}
      </p>
    </div>
  );
}

export function RecipientsField({ scope, change, setFaulty }: RecipientsFieldProps) {
  const id = useId();
  const recipients = recipientsOf(scope);
  const [isJson, setJson] = useState(recipients === null);
  const kind: Kind = isJson || recipients === null ? "json" : recipients.kind;
  const choose = (next: Kind) => {
    setJson(next === "json");
    if (next !== "json" && next !== recipients?.kind) change(scopeOf(EMPTY[next]));
  };
  const write = (next: Recipients) => change(scopeOf(next));
  return (
    <div className="field">
      <label htmlFor={id}>Recipients</label>
      <select id={id} value={kind} onChange={({ target }) => choose(target.value as Kind)}>
        {KINDS.map(([value, words]) => (
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
            onChange={({ target }) => change(target.value)}
          />
          <p className="hint">
            A where on the app user, such as {'{"email": {"$iLike": "@example.com"}}'}, or a list of which one must
            match.
          </p>
        </>
      )}
      {kind !== "json" && recipients?.kind === "users" && (
        <Ids ids={recipients.ids} change={(ids) => write({ kind: "users", ids })} setFaulty={setFaulty} />
      )}
      {kind !== "json" && recipients?.kind === "conditions" && (
        <Conditions
          conditions={recipients.conditions}
          change={(conditions) => write({ kind: "conditions", conditions })}
          setFaulty={setFaulty}
        />
      )}
    </div>
  );
}
