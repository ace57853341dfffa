/** Entries tab of a data source: searches, sorts, edits and exports entries. */
import { useCallback, useEffect, useMemo, useState } from "react";
import { serviceAddress } from "../../service-address.js";
import { counted } from "../shared/format.js";
import type { DataSource, Entry } from "../shared/model.js";
import type { PageProps } from "../shell/page-props.js";
import { Changes } from "../shell/role.js";
import { EntryGrid } from "./entry-grid.js";
import { NewColumn } from "./new-column.js";
import { type EntryOrder, pathOf, useEntries } from "./use-entries.js";
import { useTyped } from "./use-typed.js";

/** Props of each tab of a data source. */
export interface PanelProps extends Pick<PageProps, "api" | "appId" | "ask"> {
  source: DataSource;
  reload: () => void;
  /** Tab, search and order, as in the URL. */
  query: DataQuery;
  changeQuery: (change: DataQuery) => void;
}

/** Keys of the URL's query on the page of a data source. */
export interface DataQuery {
  tab?: string | undefined;
  search?: string | undefined;
  sort?: string | undefined;
  order?: string | undefined;
}

const orderOf = ({ sort, order }: DataQuery): EntryOrder | null =>
  sort === undefined ? null : { column: sort, direction: order === "desc" ? "DESC" : "ASC" };

export function EntriesPanel({ api, appId, ask, source, reload, query, changeQuery }: PanelProps) {
  const [search, setSearch] = useState(query.search ?? "");
  const { sort, order: direction } = query;
  const order = useMemo(() => orderOf({ sort, order: direction }), [sort, direction]);
  const setOrder = (next: EntryOrder | null) =>
    changeQuery({ sort: next?.column, order: next?.direction === "DESC" ? "desc" : undefined });
  const words = useTyped(search).trim();
  useEffect(() => {
    if (words !== (query.search ?? "")) changeQuery({ search: words });
  }, [words, query.search, changeQuery]);
  /** New columns that no entry contains yet. */
  const [added, setAdded] = useState<string[]>([]);
  const columns = useMemo(() => [...new Set([...source.columns, ...added])], [source.columns, added]);
  const where = useMemo(
    () => (words === "" ? null : { $or: columns.map((column) => ({ [pathOf(column)]: { $iLike: words } })) }),
    [words, columns],
  );
  const entries = useEntries({ api, appId, id: source.id, where, order });
  const [fault, setFault] = useState<string | null>(null);
  const { insert, remove } = entries;
  const askAndRemove = useCallback(
    async (entry: Entry) => {
      const text = JSON.stringify(entry.data).slice(0, 300);
      if (!(await ask({ title: `Delete entry ${entry.id}?`, text, yes: "Delete", danger: true }))) return;
      setFault(await remove(entry));
    },
    [ask, remove],
  );
  /** Number of entries that were added in this page. The grid scrolls to its end after each. */
  const [inserted, setInserted] = useState(0);
  const add = async () => {
    const refusal = await insert();
    setFault(refusal);
    if (refusal === null) setInserted((old) => old + 1);
    reload();
  };
  // A spreadsheet would evaluate cells that begin with =, so the export marks them as text.
  const file = (format: string) => {
    const query = `format=${format}${format === "csv" ? "&spreadsheet=true" : ""}`;
    return serviceAddress(`/v1/apps/${appId}/data-sources/${source.id}/export?${query}`).href;
  };
  return (
    <section className="entries-panel" aria-label="Entries">
      <div className="row">
        <input
          type="search"
          aria-label="Search the entries"
          placeholder="Search in every column"
          value={search}
          onChange={(event) => setSearch(event.target.value)}
        />
        <span className="hint" role="status">
          {entries.total === null ? "…" : counted(entries.total, "entry", "entries")}
        </span>
        <span className="grow" />
        <Changes>
          <NewColumn columns={columns} add={(column) => setAdded((old) => [...old, column])} />
          <button type="button" onClick={() => void add()}>
            Add an entry
          </button>
        </Changes>
        <span className="row">
          {["csv", "json", "jsonl"].map((format) => (
            <a key={format} href={file(format)} download={`${source.name}.${format}`}>
              {format.toUpperCase()}
            </a>
          ))}
        </span>
      </div>
      <p className="fault" role="alert">
        {fault ?? entries.fault?.message}
      </p>
      <EntryGrid {...{ columns, entries, order, setOrder, inserted }} remove={askAndRemove} />
    </section>
  );
}
