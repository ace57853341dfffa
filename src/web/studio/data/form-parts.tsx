/** Parts that the forms of a data source share: cards for list items, inputs for column names, and rows with conditions on columns. */
import ArrowDown from "icon:arrow-down";
import ArrowUp from "icon:arrow-up";
import Plus from "icon:plus";
import Trash2 from "icon:trash-2";
import { type ReactNode, useId } from "react";
import { findValueFault } from "../shared/typed-value.js";
import { ValueFields } from "../shared/value-fields.js";
import {
  COLUMN_COMPARISON_LABELS,
  type ColumnConditionRow,
  conditionsToRows,
  rowsToConditions,
} from "./access-templates.js";
import { useFormRows } from "./use-rows.js";

const ICON_PIXELS = 14;

/** Props of a form for a list of items. The same list can also be edited as JSON. */
export interface ListFormProps<Item> {
  items: Item[];
  changeItems: (value: Item[]) => void;
  columns: readonly string[];
  /** Returns the service's error message for the item at this index, or null if it has none. */
  getItemFault: (index: number) => string | null;
}

interface ItemCardProps<Item> extends ListFormProps<Item> {
  itemIndex: number;
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
  itemIndex,
  summary,
  isDisabled,
  isOrdered,
  children,
  ...list
}: ItemCardProps<Item>) {
  const { items, changeItems, getItemFault } = list;
  const name = `${itemName} ${itemIndex + 1}`;
  const fault = getItemFault(itemIndex);
  const moveItem = (to: number) => changeItems(items.with(itemIndex, items[to]!).with(to, items[itemIndex]!));
  return (
    <section className={isDisabled ? "item-card off" : "item-card"} aria-label={name}>
      <div className="item-head">
        <b>{itemIndex + 1}</b>
        <span className="grow item-summary">{summary}</span>
        {isOrdered && (
          <>
            <button
              type="button"
              className="quiet icon"
              aria-label={`Move ${name} up`}
              disabled={itemIndex === 0}
              onClick={() => moveItem(itemIndex - 1)}
            >
              <ArrowUp size={ICON_PIXELS} aria-hidden />
            </button>
            <button
              type="button"
              className="quiet icon"
              aria-label={`Move ${name} down`}
              disabled={itemIndex === items.length - 1}
              onClick={() => moveItem(itemIndex + 1)}
            >
              <ArrowDown size={ICON_PIXELS} aria-hidden />
            </button>
          </>
        )}
        <button
          type="button"
          className="quiet icon"
          aria-label={`Remove ${name}`}
          onClick={() => changeItems(items.filter((_, index) => index !== itemIndex))}
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
  chosenOptions: readonly string[];
  onChoose: (chosen: string[]) => void;
}

/** Check boxes to choose some of several words. A chosen word that `options` lacks also gets a check box, so that it is not lost. */
export function CheckBoxes({ label, options, chosenOptions, onChoose }: CheckBoxesProps) {
  const knownValues = options.map(([value]) => value);
  const otherOptions = chosenOptions
    .filter((value) => !knownValues.includes(value))
    .map((value) => [value, value] as const);
  const toggleOption = (value: string, isOn: boolean) =>
    onChoose(
      isOn
        ? [...knownValues, ...otherOptions.map(([option]) => option)].filter(
            (option) => option === value || chosenOptions.includes(option),
          )
        : chosenOptions.filter((option) => option !== value),
    );
  return (
    <fieldset className="checks">
      <legend>{label}</legend>
      {[...options, ...otherOptions].map(([value, words]) => (
        <label key={value} className="check">
          <input
            type="checkbox"
            checked={chosenOptions.includes(value)}
            onChange={(event) => toggleOption(value, event.target.checked)}
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
  onChange: (value: string) => void;
}

/** Text field for the name of a column. It suggests existing columns and accepts other names. */
export function ColumnInput({ label, value, columns, onChange }: ColumnInputProps) {
  const id = useId();
  return (
    <>
      <input
        className="mono"
        aria-label={label}
        placeholder="column"
        list={id}
        value={value}
        onChange={(event) => onChange(event.target.value)}
      />
      <datalist id={id}>
        {columns.map((column) => (
          <option key={column} value={column} />
        ))}
      </datalist>
    </>
  );
}

interface ConditionRowProps {
  row: ColumnConditionRow;
  /** Number of the row in its labels. The first row has the number 1. */
  rowNumber: number;
  columns: readonly string[];
  changeRow: (part: Partial<ColumnConditionRow>) => void;
  removeRow: () => void;
}

function ConditionRow({ row, rowNumber, columns, changeRow, removeRow }: ConditionRowProps) {
  const isText = row.comparison === "contains";
  const changeComparison = (comparison: ColumnConditionRow["comparison"]) =>
    changeRow({ comparison, ...(comparison === "contains" && { kind: "string" }) });
  return (
    <div className="row">
      <ColumnInput
        label={`Column ${rowNumber}`}
        value={row.column}
        columns={columns}
        onChange={(column) => changeRow({ column })}
      />
      <select
        aria-label={`Comparison ${rowNumber}`}
        value={row.comparison}
        onChange={({ target }) => changeComparison(target.value as ColumnConditionRow["comparison"])}
      >
        {COLUMN_COMPARISON_LABELS.map(([value, words]) => (
          <option key={value} value={value}>
            {words}
          </option>
        ))}
      </select>
      <ValueFields typedText={row.typedText} kind={row.kind} {...{ rowNumber, isText, changeValue: changeRow }} />
      <button type="button" className="quiet icon" aria-label={`Remove condition ${rowNumber}`} onClick={removeRow}>
        <Trash2 size={ICON_PIXELS} aria-hidden />
      </button>
    </div>
  );
}

interface ConditionRowsProps {
  label: string;
  rows: ColumnConditionRow[];
  columns: readonly string[];
  /** Row that the button "Add a condition" appends. */
  newRow: ColumnConditionRow;
  /** True if the conditions are stored as one object. Two rows with the same column and comparison are then an error. */
  isObject?: boolean;
  changeRows: (rows: ColumnConditionRow[]) => void;
}

export function ConditionRows({
  label,
  rows: stored,
  columns,
  newRow,
  isObject = false,
  changeRows: writeRows,
}: ConditionRowsProps) {
  const {
    rows,
    set: change,
    fault,
  } = useFormRows<ColumnConditionRow>({
    rows: stored,
    getRowKey: isObject ? ({ column, comparison }) => `${column} ${comparison}` : null,
    findRowsFault: findValueFault,
    normalizeRows: isObject
      ? (next) => conditionsToRows(rowsToConditions(next))
      : (next) => next.flatMap((row) => conditionsToRows(rowsToConditions([row]))),
    writeRows,
  });
  return (
    <fieldset className="tests">
      <legend>{label}</legend>
      {rows.map((row, rowIndex) => (
        <ConditionRow
          // biome-ignore lint/suspicious/noArrayIndexKey: a row has no other identity while the person types its column
          key={rowIndex}
          row={row}
          rowNumber={rowIndex + 1}
          columns={columns}
          changeRow={(part) => change(rows.with(rowIndex, { ...row, ...part }))}
          removeRow={() => change(rows.filter((_, other) => other !== rowIndex))}
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
