/**
 * Form for the access rules of a data source: one card per rule, and templates for common cases. definition-field.tsx can show the same
 * rules as JSON.
 */
import {
  ACCESS_OPERATION_LABELS,
  ACCESS_RULE_TEMPLATES,
  type AccessRuleDraft,
  conditionsToRows,
  createUserColumnPlaceholder,
  describeAccessRule,
  guessOwnerColumn,
  rowsToConditions,
} from "./access-templates.js";
import { CheckBoxes, ConditionRows, ItemCard, type ListFormProps } from "./form-parts.js";

type RulesFormProps = ListFormProps<AccessRuleDraft>;

interface RuleFieldsProps {
  rule: AccessRuleDraft;
  columns: readonly string[];
  changeRule: (part: Partial<AccessRuleDraft>) => void;
}

/** Returns a copy of the rule with the fields of `part`. A field that `part` sets to undefined is removed from the copy. */
const mergeRule = (rule: AccessRuleDraft, part: Partial<AccessRuleDraft>): AccessRuleDraft =>
  Object.fromEntries(
    Object.entries({ ...rule, ...part }).filter(([, value]) => value !== undefined),
  ) as unknown as AccessRuleDraft;

function AllowField({ rule: { allow }, changeRule }: RuleFieldsProps) {
  const kind = typeof allow === "object" ? "user" : allow;
  const chooseKind = (next: string) =>
    changeRule({ allow: next === "user" ? { user: { Role: { equals: "editor" } } } : (next as "all" | "loggedIn") });
  return (
    <>
      <label className="field">
        Who
        <select value={kind} onChange={(event) => chooseKind(event.target.value)}>
          <option value="all">Everyone, also visitors who are not signed in</option>
          <option value="loggedIn">Signed-in users</option>
          <option value="user">Users with certain values</option>
        </select>
      </label>
      {typeof allow === "object" && (
        <ConditionRows
          label="The user's entry"
          isObject
          columns={[]}
          newRow={{ column: "", comparison: "equals", typedText: "", kind: "string" }}
          rows={conditionsToRows(allow.user)}
          changeRows={(rows) => changeRule({ allow: { user: rowsToConditions(rows) } })}
        />
      )}
    </>
  );
}

function ColumnsField({ rule: { include, exclude }, columns, changeRule }: RuleFieldsProps) {
  const kind = include ? "include" : exclude ? "exclude" : "all";
  const chooseKind = (next: string) =>
    changeRule({
      include:
        next === "include"
          ? exclude
            ? columns.filter((column) => !exclude.includes(column))
            : [...columns]
          : undefined,
      exclude: next === "exclude" ? [] : undefined,
    } as Partial<AccessRuleDraft>);
  return (
    <>
      <label className="field">
        Columns
        <select value={kind} onChange={(event) => chooseKind(event.target.value)}>
          <option value="all">All columns</option>
          <option value="include">Only these columns</option>
          <option value="exclude">All except these columns</option>
        </select>
      </label>
      {kind !== "all" && (
        <CheckBoxes
          label={kind === "include" ? "Visible columns" : "Hidden columns"}
          options={columns.map((column) => [column, column])}
          chosenOptions={include ?? exclude ?? []}
          onChoose={(chosen) => changeRule({ [kind]: chosen })}
        />
      )}
    </>
  );
}

function ConditionsField({ rule: { require = [] }, columns, changeRule }: RuleFieldsProps) {
  const requiredColumns = require.filter((requirement) => typeof requirement === "string");
  const conditionRows = require.flatMap((requirement) =>
    typeof requirement === "string" ? [] : conditionsToRows(requirement),
  );
  const owner = guessOwnerColumn(columns);
  const setRequirements = (names: string[], rows: typeof conditionRows) => {
    const newRequirements = [...rows.map((row) => rowsToConditions([row])), ...names];
    changeRule({ require: newRequirements.length > 0 ? newRequirements : undefined } as Partial<AccessRuleDraft>);
  };
  return (
    <>
      <ConditionRows
        label="Only entries in which"
        columns={columns}
        newRow={{ column: owner, comparison: "equals", typedText: createUserColumnPlaceholder(owner), kind: "string" }}
        rows={conditionRows}
        changeRows={(rows) => setRequirements(requiredColumns, rows)}
      />
      {(columns.length > 0 || requiredColumns.length > 0) && (
        <details>
          <summary>
            Columns that a request must name{requiredColumns.length > 0 && `: ${requiredColumns.join(", ")}`}
          </summary>
          <CheckBoxes
            label="Required columns"
            options={columns.map((column) => [column, column])}
            chosenOptions={requiredColumns}
            onChoose={(names) => setRequirements(names, conditionRows)}
          />
        </details>
      )}
    </>
  );
}

function RuleCard({ index, ...form }: RulesFormProps & { index: number }) {
  const { items, changeItems, columns } = form;
  const rule = items[index]!;
  const changeRule = (part: Partial<AccessRuleDraft>) => changeItems(items.with(index, mergeRule(rule, part)));
  const part = { rule, columns, changeRule };
  return (
    <ItemCard
      itemName="Rule"
      summary={describeAccessRule(rule)}
      isDisabled={rule.enabled === false}
      isOrdered
      {...form}
      itemIndex={index}
    >
      <AllowField {...part} />
      <CheckBoxes
        label="Can"
        options={ACCESS_OPERATION_LABELS}
        chosenOptions={rule.type}
        onChoose={(type) => changeRule({ type })}
      />
      <ColumnsField {...part} />
      <ConditionsField {...part} />
      <label className="check">
        <input
          type="checkbox"
          checked={rule.enabled !== false}
          onChange={(event) =>
            changeRule({ enabled: event.target.checked ? undefined : false } as Partial<AccessRuleDraft>)
          }
        />
        Rule is on
      </label>
    </ItemCard>
  );
}

export function AccessRulesForm(form: RulesFormProps) {
  const { items, changeItems, columns } = form;
  const add = (label: string) => {
    const template = ACCESS_RULE_TEMPLATES.find((template) => template.label === label);
    if (template) changeItems([...items, ...template.createRules(guessOwnerColumn(columns))]);
  };
  return (
    <div className="item-cards">
      {items.length === 0 && (
        <p className="hint">No rules: pages can neither read nor write. Editors and server actions always can.</p>
      )}
      {items.map((_, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the position of a rule identifies it, because the order of the rules matters
        <RuleCard key={index} {...form} index={index} />
      ))}
      <label className="field">
        Add a rule
        <select aria-label="Add a rule" value="" onChange={(event) => add(event.target.value)}>
          <option value="">Choose a template…</option>
          {ACCESS_RULE_TEMPLATES.map(({ label }) => (
            <option key={label} value={label}>
              {label}
            </option>
          ))}
        </select>
      </label>
    </div>
  );
}
