/** Public types of svc-datasources. The build adds them to svc.d.ts. This file contains only types. */

/** One entry of a data source. Times are ISO 8601. */
export interface Entry<Data = Record<string, unknown>> {
  id: number;
  dataSourceId: number;
  data: Data;
  order: number;
  createdAt: string;
  updatedAt: string;
  /** Entries of other data sources, under the names that the query's `join` gives them. */
  joins?: Record<string, unknown>;
}

export interface DataSource {
  id: number;
  appId: number;
  organizationId: number;
  name: string;
  /** Names of the columns. Columns that entries use for the first time are added at the end. */
  columns: string[];
  accessRules: object[];
  hooks: object[];
  indexes: (string | string[] | { columns: string[]; unique: boolean })[];
  /**
   * True if the entries are the app's users, who sign in with `Svc.Session.authorize`. Only a person who is signed in to the service and can
   * edit the app can change this field. Tokens and actions cannot.
   */
  isUsers: boolean;
  createdAt: string;
  updatedAt: string;
}

/** Query of entries. The documentation page "Queries on entries" lists the operators of `where` and the stages of `aggregate`. */
export interface EntryQuery {
  /** Conditions by column, such as `{ price: { $gt: 20 } }`. */
  where?: object;
  /** Columns to return; all by default. */
  attributes?: string[];
  /** Order of the entries, such as `[["data.price", "ASC"]]`. */
  order?: [column: string, direction: "ASC" | "DESC"][];
  /** Maximum number of returned entries: 1,000 by default, at most 10,000. */
  limit?: number;
  offset?: number;
  /** True: `find` also returns the total number of entries that match. */
  includePagination?: boolean;
  /** Joins with other data sources. Each key is the name under which `entry.joins` contains the joined entry. */
  join?: Record<string, object>;
  /** Aggregation stages, applied in this order, such as `$match` and `$group`. */
  aggregate?: object[];
}

/** One page of entries: an array with functions that read the next and the previous page. */
export interface EntryPage extends Array<Entry> {
  readonly isFirstPage: boolean;
  readonly isLastPage: boolean;
  next(): Promise<EntryPage>;
  prev(): Promise<EntryPage>;
}

/** Changes of entries that a subscription reports. If `reset` is true, the list is incomplete: read the entries again. */
export interface EntryChanges {
  reset: boolean;
  inserted: Entry[];
  updated: Entry[];
  deleted: Entry[];
}

export interface EntrySubscription {
  pause(): void;
  /**
   * Continues a paused subscription. First delivers the changes made during the pause. After a pause of over ten minutes, it may deliver a
   * reset instead.
   */
  resume(): void;
  unsubscribe(): void;
  status(): "connecting" | "subscribed" | "paused" | "refused" | "unsubscribed";
}

export interface DataSourceConnection {
  /** Returns the entries that the query finds, with the total number of matching entries. */
  find(query: EntryQuery & { includePagination: true }): Promise<{
    entries: Entry[];
    pagination: { total: number; limit: number; offset: number };
  }>;
  /** Returns the entries that the query finds, 1,000 by default. With `aggregate`, returns the documents of the last stage instead of entries. */
  find(query?: EntryQuery): Promise<Entry[]>;
  /** Returns the first entry that the query finds; undefined if there is none. */
  findOne(query?: EntryQuery): Promise<Entry | undefined>;
  /** Returns the entry; rejects with ENTRY_NOT_FOUND if there is none. */
  findById(id: number): Promise<Entry>;
  /** Returns the first page of entries. Its functions `next()` and `prev()` read the next and the previous page. */
  findWithCursor(query?: EntryQuery): Promise<EntryPage>;
  /** Inserts an entry with these columns. Returns the entry. */
  insert(data: object): Promise<Entry>;
  /** Changes the columns in `data`. Rejects with ENTRY_CHANGED if the entry has changed since the time `ifUpdatedAt`. */
  update(id: number, data: object, options?: { ifUpdatedAt?: string }): Promise<Entry>;
  /** Deletes an entry and returns it. Rejects with ENTRY_CHANGED if the entry has changed since the time `ifUpdatedAt`. */
  removeById(id: number, options?: { ifUpdatedAt?: string }): Promise<Entry>;
  /** Deletes the entries that match `where`. With `where: {}`, deletes all entries. */
  remove(query: { where: object }): Promise<{ deletedCount: number }>;
  /** Inserts all rows or none, without running hooks that send messages. */
  append(rows: object[]): Promise<{ inserted: number }>;
  /** Replaces all entries by these rows. If a row is invalid, nothing changes. */
  replaceWith(rows: object[]): Promise<{ inserted: number }>;
  /**
   * Replaces all entries. To add rows and keep the entries, use `append`. The input is the text of a CSV or of a JSON array, an array of rows,
   * a file, or a form with a file.
   */
  import(input: string | object[] | FormData | Blob): Promise<{ inserted: number }>;
  /** Applies all changes or none. Returns the written entries if `returnEntries` is true, otherwise the numbers of changes. */
  commit(changes: {
    entries?: { id?: number; data: object; ifUpdatedAt?: string }[];
    /** False: deletes all entries that are not in `entries`. */
    append?: boolean;
    /** True: changes only the columns in `data` of existing entries. Otherwise, `data` replaces all columns. */
    extend?: boolean;
    delete?: number[];
    returnEntries?: boolean;
    /** Kinds of writes after which hooks send messages; both kinds by default. */
    runHooks?: ("insert" | "update")[];
  }): Promise<{ entries?: Entry[] } & Record<string, unknown>>;
  /** Returns the distinct values of a column. */
  getIndex(column: string): Promise<unknown[]>;
  /** Returns the distinct values of several columns, by column. */
  getIndexes(columns: string[]): Promise<Record<string, unknown[]>>;
  /** Calls `callback` with each committed change of the entries that match `where`. */
  subscribe(query: { where?: object } | undefined, callback: (changes: EntryChanges) => void): EntrySubscription;
}

/** `Svc.DataSources`, of the package svc-datasources. */
export interface DataSources {
  /** Lists the app's data sources. */
  get(): Promise<DataSource[]>;
  /** Returns a data source by its id or name. */
  getById(idOrName: number | string): Promise<DataSource>;
  /** Creates a data source, with `entries` if you pass them. */
  create(
    fields: Pick<DataSource, "name"> &
      Partial<Pick<DataSource, "columns" | "accessRules" | "hooks" | "indexes" | "isUsers">> & {
        entries?: object[];
      },
  ): Promise<DataSource>;
  /** Changes the passed fields of a data source. Its entries do not change. */
  update(idOrName: number | string, fields: object): Promise<DataSource>;
  /** Deletes a data source with its entries. */
  delete(idOrName: number | string): Promise<void>;
  /** Returns a connection to a data source without a request. If the data source does not exist, the connection's calls reject. */
  connect(idOrName: number | string): Promise<DataSourceConnection>;
  /** Returns a connection to the data source with this name, even if the name consists of digits. */
  connectByName(name: string): Promise<DataSourceConnection>;
}
