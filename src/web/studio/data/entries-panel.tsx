/** Entries tab of a data source: searches, sorts, edits and exports entries. */
import { useCallback, useMemo, useState } from "react";
import { resolveServiceUrl } from "../../service-address.js";
import { formatCount } from "../shared/format.js";
import type { DataSource, Entry } from "../shared/model.js";
import { useTypedSearch } from "../shared/use-typed-search.js";
import type { PageProps } from "../shell/page-props.js";
import { ForEditors } from "../shell/role.js";
import { EntryGrid } from "./entry-grid.js";
import { NewColumnForm } from "./new-column.js";
import { type EntryOrder, getColumnPath, useEntries } from "./use-entries.js";

/** Props of each tab on the page of a data source. */
export interface DataSourcePanelProps extends Pick<PageProps, "api" | "appId" | "confirm"> {
  source: DataSource;
  reload: () => void;
  /** Open tab, search text and sort order, as in the URL. */
  query: DataSourceUrlQuery;
  changeQuery: (change: DataSourceUrlQuery) => void;
  /** Called with true when a part of the tab gets unsaved changes, and with false when it has none any more. */
  onDirtyChange: (part: string, isDirty: boolean) => void;
}

/** Query parameters in the URL of the page of a data source. */
export interface DataSourceUrlQuery {
  tab?: string | undefined;
  search?: string | undefined;
  sort?: string | undefined;
  order?: string | undefined;
}

const parseOrder = ({ sort, order }: DataSourceUrlQuery): EntryOrder | null =>
  sort === undefined ? null : { column: sort, direction: order === "desc" ? "DESC" : "ASC" };

export function EntriesPanel(props: DataSourcePanelProps) {
  const { api, appId, confirm, source, reload, query, changeQuery, onDirtyChange } = props;
  const { sort, order: direction, search: searchTerm = "" } = query;
  const changeSearch = useCallback((search: string) => changeQuery({ search }), [changeQuery]);
  const { typedSearch, setTypedSearch } = useTypedSearch(searchTerm, changeSearch);
  const order = useMemo(() => parseOrder({ sort, order: direction }), [sort, direction]);
  const setOrder = (next: EntryOrder | null) =>
    changeQuery({ sort: next?.column, order: next?.direction === "DESC" ? "desc" : undefined });
  /** Columns that the person has added in this page and that no entry contains yet. */
  const [newColumns, setNewColumns] = useState<string[]>([]);
  const columns = useMemo(() => [...new Set([...source.columns, ...newColumns])], [source.columns, newColumns]);
  const where = useMemo(
    () =>
      searchTerm === ""
        ? null
        : { $or: columns.map((column) => ({ [getColumnPath(column)]: { $iLike: searchTerm } })) },
    [searchTerm, columns],
  );
  const entries = useEntries({ api, appId, id: source.id, where, order });
  const [fault, setFault] = useState<string | null>(null);
  const { insertEmptyEntry, removeEntry } = entries;
  const confirmAndRemove = useCallback(
    async (entry: Entry) => {
      const text = JSON.stringify(entry.data).slice(0, 300);
      if (
        !(await confirm({
          title: `Delete entry ${entry.id}?`,
          explanation: text,
          confirmLabel: "Delete",
          isDangerous: true,
        }))
      )
        return;
      setFault(await removeEntry(entry));
    },
    [confirm, removeEntry],
  );
  /** Number of entries that the person has added in this page. When it grows, the grid scrolls to the new entry at its end. */
  const [insertedCount, setInsertedCount] = useState(0);
  const addEntry = async () => {
    const insertFault = await insertEmptyEntry();
    setFault(insertFault);
    if (insertFault === null) setInsertedCount((old) => old + 1);
    reload();
  };
  // With the parameter `spreadsheet`, the service writes a "'" before texts that a spreadsheet program would run as formulas.
  const createExportUrl = (format: string) => {
    const query = `format=${format}${format === "csv" ? "&spreadsheet=true" : ""}`;
    return resolveServiceUrl(`/v1/apps/${appId}/data-sources/${source.id}/export?${query}`).href;
  };
  return (
    <section className="entries-panel" aria-label="Entries">
      <div className="row">
        <input
          type="search"
          aria-label="Search the entries"
          placeholder="Search in every column"
          value={typedSearch}
          onChange={(event) => setTypedSearch(event.target.value)}
        />
        <span className="hint" role="status">
          {entries.totalCount === null ? "…" : formatCount(entries.totalCount, "entry", "entries")}
        </span>
        <div className="row entries-buttons">
          <span className="row">
            <span className="hint">Export:</span>
            {["csv", "json", "jsonl"].map((format) => (
              <a key={format} href={createExportUrl(format)} download={`${source.name}.${format}`}>
                {format.toUpperCase()}
              </a>
            ))}
          </span>
          <ForEditors>
            <NewColumnForm columns={columns} addColumn={(column) => setNewColumns((old) => [...old, column])} />
            <button type="button" onClick={() => void addEntry()}>
              Add an entry
            </button>
          </ForEditors>
        </div>
      </div>
      <p className="fault" role="alert">
        {fault ?? entries.fault?.message}
      </p>
      <EntryGrid
        {...{ columns, entries, sortOrder: order, setOrder, insertedCount, onDirtyChange }}
        removeEntry={confirmAndRemove}
      />
    </section>
  );
}
