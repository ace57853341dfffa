/** Form for access rules: one card per rule, and templates for common cases. definition-field.tsx also shows the value as JSON. */
import {
  ofUser,
  ownerColumn,
  type RuleDraft,
  ruleWords,
  TEMPLATES,
  testRows,
  testsOf,
  VERBS,
} from "./access-templates.js";
import { Checks, ItemCard, type ListFormProps, TestRows } from "./form-parts.js";

type Form = ListFormProps<RuleDraft>;

interface PartProps {
  rule: RuleDraft;
  columns: readonly string[];
  put: (part: Partial<RuleDraft>) => void;
}

/** Returns the rule with some fields changed. Removes fields that are set to undefined. */
const changedRule = (rule: RuleDraft, part: Partial<RuleDraft>): RuleDraft =>
  Object.fromEntries(
    Object.entries({ ...rule, ...part }).filter(([, value]) => value !== undefined),
  ) as unknown as RuleDraft;

function Who({ rule: { allow }, put }: PartProps) {
  const kind = typeof allow === "object" ? "user" : allow;
  const choose = (next: string) =>
    put({ allow: next === "user" ? { user: { Role: { equals: "editor" } } } : (next as "all" | "loggedIn") });
  return (
    <>
      <label className="field">
        Who
        <select value={kind} onChange={(event) => choose(event.target.value)}>
          <option value="all">Everyone, also visitors who are not signed in</option>
          <option value="loggedIn">Signed-in users</option>
          <option value="user">Users with certain values</option>
        </select>
      </label>
      {typeof allow === "object" && (
        <TestRows
          label="The user's entry"
          isObject
          columns={[]}
          fresh={{ column: "", test: "equals", value: "", kind: "string" }}
          rows={testRows(allow.user)}
          change={(rows) => put({ allow: { user: testsOf(rows) } })}
        />
      )}
    </>
  );
}

function Columns({ rule: { include, exclude }, columns, put }: PartProps) {
  const kind = include ? "include" : exclude ? "exclude" : "all";
  const choose = (next: string) =>
    put({
      include:
        next === "include" ? (exclude ? columns.filter((one) => !exclude.includes(one)) : [...columns]) : undefined,
      exclude: next === "exclude" ? [] : undefined,
    } as Partial<RuleDraft>);
  return (
    <>
      <label className="field">
        Columns
        <select value={kind} onChange={(event) => choose(event.target.value)}>
          <option value="all">All columns</option>
          <option value="include">Only these columns</option>
          <option value="exclude">All except these columns</option>
        </select>
      </label>
      {kind !== "all" && (
        <Checks
          label={kind === "include" ? "Visible columns" : "Hidden columns"}
          options={columns.map((column) => [column, column])}
          chosen={include ?? exclude ?? []}
          choose={(chosen) => put({ [kind]: chosen })}
        />
      )}
    </>
  );
}

function Conditions({ rule: { require = [] }, columns, put }: PartProps) {
  const named = require.filter((one) => typeof one === "string");
  const tests = require.flatMap((one) => (typeof one === "string" ? [] : testRows(one)));
  const owner = ownerColumn(columns);
  const set = (names: string[], rows: typeof tests) => {
    const all = [...rows.map((row) => testsOf([row])), ...names];
    put({ require: all.length > 0 ? all : undefined } as Partial<RuleDraft>);
  };
  return (
    <>
      <TestRows
        label="Only entries in which"
        columns={columns}
        fresh={{ column: owner, test: "equals", value: ofUser(owner), kind: "string" }}
        rows={tests}
        change={(rows) => set(named, rows)}
      />
      {(columns.length > 0 || named.length > 0) && (
        <details>
          <summary>Columns that a request must name{named.length > 0 && `: ${named.join(", ")}`}</summary>
          <Checks
            label="Required columns"
            options={columns.map((column) => [column, column])}
            chosen={named}
            choose={(names) => set(names, tests)}
          />
        </details>
      )}
    </>
  );
}

function Rule({ index, ...form }: Form & { index: number }) {
  const { value, change, columns } = form;
  const rule = value[index]!;
  const put = (part: Partial<RuleDraft>) => change(value.with(index, changedRule(rule, part)));
  const part = { rule, columns, put };
  return (
    <ItemCard noun="Rule" summary={ruleWords(rule)} isOff={rule.enabled === false} isOrdered {...form} index={index}>
      <Who {...part} />
      <Checks label="Can" options={VERBS} chosen={rule.type} choose={(type) => put({ type })} />
      <Columns {...part} />
      <Conditions {...part} />
      <label className="check">
        <input
          type="checkbox"
          checked={rule.enabled !== false}
          onChange={(event) => put({ enabled: event.target.checked ? undefined : false } as Partial<RuleDraft>)}
        />
        Rule is on
      </label>
    </ItemCard>
  );
}

export function AccessRulesForm(form: Form) {
  const { value, change, columns } = form;
  const add = (label: string) => {
    const template = TEMPLATES.find((one) => one.label === label);
    if (template) change([...value, ...template.make(ownerColumn(columns))]);
  };
  return (
    <div className="item-cards">
      {value.length === 0 && (
        <p className="hint">No rules: pages can neither read nor write. Editors and server actions always can.</p>
      )}
      {value.map((_, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: rules are identified by their position, which affects their meaning
        <Rule key={index} {...form} index={index} />
      ))}
      <label className="field">
        Add a rule
        <select aria-label="Add a rule" value="" onChange={(event) => add(event.target.value)}>
          <option value="">Choose a template…</option>
          {TEMPLATES.map(({ label }) => (
            <option key={label} value={label}>
              {label}
            </option>
          ))}
        </select>
      </label>
    </div>
  );
}
