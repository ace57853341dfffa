/** Form for the indexes of a data source. definition-field.tsx can show the same indexes as JSON. */
import Plus from "icon:plus";
import Trash2 from "icon:trash-2";
import { ColumnInput, ItemCard, type ListFormProps } from "./form-parts.js";

interface FullIndex {
  columns: string[];
  unique?: boolean;
}

/** Index in each notation that the service accepts: one column, a list of columns, or an object with columns and options. */
export type IndexDraft = string | string[] | FullIndex;

const isColumnNameList = (value: unknown): boolean =>
  Array.isArray(value) && value.every((element) => typeof element === "string");

/** True if the form can show these indexes without losing parts of them. */
export function isEditableIndexList(value: unknown): value is IndexDraft[] {
  if (!Array.isArray(value)) return false;
  return value.every((element: unknown) => {
    if (typeof element === "string" || isColumnNameList(element)) return true;
    return typeof element === "object" && element !== null && isColumnNameList((element as FullIndex).columns);
  });
}

function toFullIndex(index: IndexDraft): FullIndex {
  if (typeof index === "string") return { columns: [index] };
  return Array.isArray(index) ? { columns: index } : index;
}

/** Returns an index in the shortest notation, which is also the notation that the service stores. */
function toShortestIndex(index: FullIndex): IndexDraft {
  if (index.unique) return index;
  return index.columns.length === 1 ? index.columns[0]! : index.columns;
}

type IndexesFormProps = ListFormProps<IndexDraft>;

function IndexCard({ index, ...form }: IndexesFormProps & { index: number }) {
  const { items, changeItems, columns: knownColumns } = form;
  const fullIndex = toFullIndex(items[index]!);
  const { columns, unique = false } = fullIndex;
  const changeIndex = (part: Partial<FullIndex>) =>
    changeItems(items.with(index, toShortestIndex({ ...fullIndex, ...part })));
  const summary = `${columns.join(", ")}${unique ? " · unique" : ""}`;
  return (
    <ItemCard itemName="Index" summary={summary} {...form} itemIndex={index}>
      <div className="row wrap">
        {columns.map((column, columnIndex) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: the position of a column in an index identifies it
          <span key={columnIndex} className="row">
            <ColumnInput
              label={`Column ${columnIndex + 1}`}
              value={column}
              columns={knownColumns}
              onChange={(next) => changeIndex({ columns: columns.with(columnIndex, next) })}
            />
            {columns.length > 1 && (
              <button
                type="button"
                className="quiet icon"
                aria-label={`Remove column ${columnIndex + 1}`}
                onClick={() => changeIndex({ columns: columns.filter((_, other) => other !== columnIndex) })}
              >
                <Trash2 size={14} aria-hidden />
              </button>
            )}
          </span>
        ))}
        <button type="button" className="quiet" onClick={() => changeIndex({ columns: [...columns, ""] })}>
          <Plus size={14} aria-hidden /> Column
        </button>
      </div>
      <label className="check">
        <input type="checkbox" checked={unique} onChange={(event) => changeIndex({ unique: event.target.checked })} />
        Unique: no two entries have the same {columns.length > 1 ? "values" : "value"}
      </label>
    </ItemCard>
  );
}

export function IndexesForm(form: IndexesFormProps) {
  const { items, changeItems, columns } = form;
  return (
    <div className="item-cards">
      {items.length === 0 && <p className="hint">No indexes: a query reads all entries.</p>}
      {items.map((_, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the position of an index identifies it
        <IndexCard key={index} {...form} index={index} />
      ))}
      <p>
        <button type="button" onClick={() => changeItems([...items, columns[0] ?? "Email"])}>
          <Plus size={14} aria-hidden /> Add an index
        </button>
      </p>
    </div>
  );
}
