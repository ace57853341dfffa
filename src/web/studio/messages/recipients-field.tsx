/** Recipients of a notification: all users, some by their IDs, those who meet conditions, or a scope as JSON. */
import Plus from "lucide-react/icons/plus";
import Trash2 from "lucide-react/icons/trash-2";
import { useId, useState } from "react";
import { useRows } from "../data/use-rows.js";
import {
  COMPARISONS,
  type Comparison,
  type Condition,
  type Recipients,
  readBack,
  recipientsOf,
  scopeOf,
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
  /** JSON; "" for all users. */
  scope: string;
  change: (scope: string) => void;
}

function Ids({ ids, change }: { ids: readonly number[]; change: (ids: number[]) => void }) {
  const [text, setText] = useState(ids.join(", "));
  const words = text.split(/[\s,]/).filter((word) => word !== "");
  const wrong = words.find((word) => !/^[1-9]\d{0,14}$/.test(word));
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
          setText(value);
          change([...new Set(value.split(/[\s,]/).map(Number))].filter((id) => Number.isSafeInteger(id) && id > 0));
        }}
      />
      <p id={faultId} className="fault" role="alert">
        {wrong !== undefined && `“${wrong}” is not an ID.`}
      </p>
    </>
  );
}

interface ConditionsProps {
  conditions: Condition[];
  change: (conditions: Condition[]) => void;
}

function ConditionRow({
  one,
  put,
  remove,
}: {
  one: Condition;
  put: (part: Partial<Condition>) => void;
  remove: () => void;
}) {
  return (
    <div className="row">
      <input
        className="mono"
        aria-label="Column"
        placeholder="column"
        value={one.column}
        onChange={({ target }) => put({ column: target.value })}
      />
      <select
        aria-label="Comparison"
        value={one.comparison}
        onChange={({ target }) => put({ comparison: target.value as Comparison })}
      >
        {COMPARISONS.map(([value, words]) => (
          <option key={value} value={value}>
            {words}
          </option>
        ))}
      </select>
      <input
        className="mono"
        aria-label="Value"
        value={one.value}
        onChange={({ target }) => put({ value: target.value })}
      />
      <button type="button" className="quiet icon" aria-label="Remove the condition" onClick={remove}>
        <Trash2 size={ICON_PIXELS} aria-hidden />
      </button>
    </div>
  );
}

function Conditions({ conditions, change }: ConditionsProps) {
  const { rows, set, fault } = useRows<Condition>({
    rows: conditions,
    keyOf: ({ column, comparison }) => `${column} ${comparison}`,
    read: readBack,
    write: change,
  });
  return (
    <div className="tests">
      {rows.map((one, at) => (
        <ConditionRow
          // biome-ignore lint/suspicious/noArrayIndexKey: a row is named by its position while its column is typed
          key={at}
          one={one}
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

export function RecipientsField({ scope, change }: RecipientsFieldProps) {
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
        <Ids ids={recipients.ids} change={(ids) => write({ kind: "users", ids })} />
      )}
      {kind !== "json" && recipients?.kind === "conditions" && (
        <Conditions
          conditions={recipients.conditions}
          change={(conditions) => write({ kind: "conditions", conditions })}
        />
      )}
    </div>
  );
}
