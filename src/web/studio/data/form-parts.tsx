/** Parts that the forms of a data source share: cards for list items, inputs for column names, and rows with conditions on columns. */
import ArrowDown from "lucide-react/icons/arrow-down";
import ArrowUp from "lucide-react/icons/arrow-up";
import Plus from "lucide-react/icons/plus";
import Trash2 from "lucide-react/icons/trash-2";
import { type ReactNode, useId } from "react";
import { findValueFault } from "../shared/typed-value.js";
import { ValueFields } from "../shared/value-fields.js";
import { COLUMN_TESTS, rowsToTests, type TestRow, testsToRows } from "./access-templates.js";
import { useFormRows } from "./use-rows.js";

const ICON_PIXELS = 14;

/** Props of a form for a list of items. The same list can also be edited as JSON. */
export interface ListFormProps<Item> {
  value: Item[];
  change: (value: Item[]) => void;
  columns: readonly string[];
  /** Returns the service's error message for the item at this index, or null if it has none. */
  getItemFault: (index: number) => string | null;
}

interface CardProps<Item> extends ListFormProps<Item> {
  index: number;
  /** Name of the kind of item, such as "Rule". */
  itemName: string;
  summary: string;
  isDisabled?: boolean;
  /** True if the order of the items matters, so that the person can move them. */
  isOrdered?: boolean;
  children: ReactNode;
}

/** Card of one item in a list, with its summary, its fields and its error. */
export function ItemCard<Item>({
  itemName,
  index,
  summary,
  isDisabled,
  isOrdered,
  children,
  ...list
}: CardProps<Item>) {
  const { value, change, getItemFault } = list;
  const name = `${itemName} ${index + 1}`;
  const fault = getItemFault(index);
  const moveItem = (to: number) => change(value.with(index, value[to]!).with(to, value[index]!));
  return (
    <section className={isDisabled ? "item-card off" : "item-card"} aria-label={name}>
      <div className="item-head">
        <b>{index + 1}</b>
        <span className="grow item-summary">{summary}</span>
        {isOrdered && (
          <>
            <button
              type="button"
              className="quiet icon"
              aria-label={`Move ${name} up`}
              disabled={index === 0}
              onClick={() => moveItem(index - 1)}
            >
              <ArrowUp size={ICON_PIXELS} aria-hidden />
            </button>
            <button
              type="button"
              className="quiet icon"
              aria-label={`Move ${name} down`}
              disabled={index === value.length - 1}
              onClick={() => moveItem(index + 1)}
            >
              <ArrowDown size={ICON_PIXELS} aria-hidden />
            </button>
          </>
        )}
        <button
          type="button"
          className="quiet icon"
          aria-label={`Remove ${name}`}
          onClick={() => change(value.filter((_, at) => at !== index))}
        >
          <Trash2 size={ICON_PIXELS} aria-hidden />
        </button>
      </div>
      <div className="item-fields">{children}</div>
      <p className="fault" role="alert">
        {fault}
      </p>
    </section>
  );
}

interface CheckBoxesProps {
  label: string;
  options: readonly (readonly [string, string])[];
  chosen: readonly string[];
  choose: (chosen: string[]) => void;
}

/** Check boxes for a set of words. A chosen word that is not in `options` gets a check box too, so that it is not lost. */
export function CheckBoxes({ label, options, chosen, choose }: CheckBoxesProps) {
  const knownValues = options.map(([value]) => value);
  const otherOptions = chosen.filter((value) => !knownValues.includes(value)).map((value) => [value, value] as const);
  const toggle = (value: string, isOn: boolean) =>
    choose(
      isOn
        ? [...knownValues, ...otherOptions.map(([option]) => option)].filter(
            (option) => option === value || chosen.includes(option),
          )
        : chosen.filter((option) => option !== value),
    );
  return (
    <fieldset className="checks">
      <legend>{label}</legend>
      {[...options, ...otherOptions].map(([value, words]) => (
        <label key={value} className="check">
          <input
            type="checkbox"
            checked={chosen.includes(value)}
            onChange={(event) => toggle(value, event.target.checked)}
          />
          {words}
        </label>
      ))}
    </fieldset>
  );
}

interface ColumnInputProps {
  label: string;
  value: string;
  columns: readonly string[];
  change: (value: string) => void;
}

/** Text field for the name of a column. It suggests existing columns and accepts other names. */
export function ColumnInput({ label, value, columns, change }: ColumnInputProps) {
  const id = useId();
  return (
    <>
      <input
        className="mono"
        aria-label={label}
        placeholder="column"
        list={id}
        value={value}
        onChange={(event) => change(event.target.value)}
      />
      <datalist id={id}>
        {columns.map((column) => (
          <option key={column} value={column} />
        ))}
      </datalist>
    </>
  );
}

interface TestFieldsProps {
  row: TestRow;
  /** Number of the row in labels, counted from 1. */
  rowNumber: number;
  columns: readonly string[];
  changeRow: (part: Partial<TestRow>) => void;
  remove: () => void;
}

function TestFields({ row, rowNumber, columns, changeRow, remove }: TestFieldsProps) {
  const isText = row.test === "contains";
  const changeTest = (test: TestRow["test"]) => changeRow({ test, ...(test === "contains" && { kind: "string" }) });
  return (
    <div className="row">
      <ColumnInput
        label={`Column ${rowNumber}`}
        value={row.column}
        columns={columns}
        change={(column) => changeRow({ column })}
      />
      <select
        aria-label={`Comparison ${rowNumber}`}
        value={row.test}
        onChange={({ target }) => changeTest(target.value as TestRow["test"])}
      >
        {COLUMN_TESTS.map(([value, words]) => (
          <option key={value} value={value}>
            {words}
          </option>
        ))}
      </select>
      <ValueFields value={row.value} kind={row.kind} {...{ rowNumber, isText, changeValue: changeRow }} />
      <button type="button" className="quiet icon" aria-label={`Remove condition ${rowNumber}`} onClick={remove}>
        <Trash2 size={ICON_PIXELS} aria-hidden />
      </button>
    </div>
  );
}

interface TestRowsProps {
  label: string;
  rows: TestRow[];
  columns: readonly string[];
  /** Row that the button "Add a condition" appends. */
  newRow: TestRow;
  /** True if the conditions are stored as one object. Two rows with the same column and comparison are then an error. */
  isObject?: boolean;
  change: (rows: TestRow[]) => void;
}

export function TestRows({ label, rows: stored, columns, newRow, isObject = false, change: writeRows }: TestRowsProps) {
  const {
    rows,
    set: change,
    fault,
  } = useFormRows<TestRow>({
    rows: stored,
    keyOf: isObject ? ({ column, test }) => `${column} ${test}` : null,
    check: findValueFault,
    readBack: isObject
      ? (next) => testsToRows(rowsToTests(next))
      : (next) => next.flatMap((row) => testsToRows(rowsToTests([row]))),
    writeRows,
  });
  return (
    <fieldset className="tests">
      <legend>{label}</legend>
      {rows.map((row, at) => (
        <TestFields
          // biome-ignore lint/suspicious/noArrayIndexKey: a row has no other identity while the person types its column
          key={at}
          row={row}
          rowNumber={at + 1}
          columns={columns}
          changeRow={(part) => change(rows.with(at, { ...row, ...part }))}
          remove={() => change(rows.filter((_, other) => other !== at))}
        />
      ))}
      <button type="button" className="quiet" onClick={() => change([...rows, newRow])}>
        <Plus size={ICON_PIXELS} aria-hidden /> Add a condition
      </button>
      <p className="fault" role="alert">
        {fault}
      </p>
    </fieldset>
  );
}
