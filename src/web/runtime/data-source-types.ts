/** Public types of svc-datasources; served with public-types.ts as svc.d.ts. Only types. */

/** One entry of a data source. Times are ISO 8601. */
export interface Entry<Data = Record<string, unknown>> {
  id: number;
  dataSourceId: number;
  data: Data;
  order: number;
  createdAt: string;
  updatedAt: string;
  /** Joined entries by the names in `join`. */
  joins?: Record<string, unknown>;
}

export interface DataSource {
  id: number;
  appId: number;
  organizationId: number;
  name: string;
  /** In the order in which they first appeared. */
  columns: string[];
  accessRules: object[];
  hooks: object[];
  indexes: (string | string[] | { columns: string[]; unique: boolean })[];
  /** True if it holds the app's users: `Svc.Session.authorize` signs in by its entries. Only an editor can change it. */
  isUsers: boolean;
  createdAt: string;
  updatedAt: string;
}

/** Query of entries. The page of queries in the documentation has the operators of `where` and the stages of `aggregate`. */
export interface EntryQuery {
  /** Conditions by column, such as `{ price: { $gt: 20 } }`. */
  where?: object;
  /** Columns to return; all by default. */
  attributes?: string[];
  /** Such as `[["data.price", "ASC"]]`. */
  order?: [column: string, direction: "ASC" | "DESC"][];
  /** Default 1,000, at most 10,000. */
  limit?: number;
  offset?: number;
  /** True: `find` also returns the total. */
  includePagination?: boolean;
  /** Entries of other data sources, by the names under which `entry.joins` has them. */
  join?: Record<string, object>;
  /** Stages such as `$match` and `$group`. */
  aggregate?: object[];
}

/** An array with links to the pages before and after it. */
export interface EntryPage extends Array<Entry> {
  readonly isFirstPage: boolean;
  readonly isLastPage: boolean;
  next(): Promise<EntryPage>;
  prev(): Promise<EntryPage>;
}

/** Committed changes. With `reset` more has changed than is listed: read the entries again. */
export interface EntryNews {
  reset: boolean;
  inserted: Entry[];
  updated: Entry[];
  deleted: Entry[];
}

export interface EntrySubscription {
  pause(): void;
  /** Changes during the pause are delivered then, for up to ten minutes. */
  resume(): void;
  unsubscribe(): void;
  status(): "connecting" | "subscribed" | "paused" | "refused" | "unsubscribed";
}

export interface DataSourceConnection {
  /** Returns the entries that the query finds, with their total. */
  find(query: EntryQuery & { includePagination: true }): Promise<{
    entries: Entry[];
    pagination: { total: number; limit: number; offset: number };
  }>;
  /** Returns the entries that the query finds, 1,000 by default. */
  find(query?: EntryQuery): Promise<Entry[]>;
  /** Returns the first entry that the query finds; undefined if there is none. */
  findOne(query?: EntryQuery): Promise<Entry | undefined>;
  /** Returns the entry; rejects with ENTRY_NOT_FOUND if there is none. */
  findById(id: number): Promise<Entry>;
  /** Returns the first page of entries. `next()` and `prev()` return the pages beside it. */
  findWithCursor(query?: EntryQuery): Promise<EntryPage>;
  /** Inserts an entry with these columns. Returns the entry. */
  insert(data: object): Promise<Entry>;
  /** Changes the given columns. With `ifUpdatedAt`, it rejects with ENTRY_CHANGED if someone else has changed the entry since then. */
  update(id: number, data: object, options?: { ifUpdatedAt?: string }): Promise<Entry>;
  /** Deletes an entry. Returns the deleted entry. `ifUpdatedAt` as in `update`. */
  removeById(id: number, options?: { ifUpdatedAt?: string }): Promise<Entry>;
  /** Removes the entries that `where` finds; `{}` finds all. */
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
  /** Applies all changes or none. Returns the written entries with `returnEntries`, otherwise counts. */
  commit(changes: {
    entries?: { id?: number; data: object; ifUpdatedAt?: string }[];
    /** False removes all entries that the commit does not contain. */
    append?: boolean;
    /** True changes only the given columns of existing entries. */
    extend?: boolean;
    delete?: number[];
    returnEntries?: boolean;
    /** Writes for which hooks send messages; both by default. */
    runHooks?: ("insert" | "update")[];
  }): Promise<{ entries?: Entry[] } & Record<string, unknown>>;
  /** Returns the distinct values of a column. */
  getIndex(column: string): Promise<unknown[]>;
  /** Returns the distinct values of several columns, by column. */
  getIndexes(columns: string[]): Promise<Record<string, unknown[]>>;
  /** Calls `callback` with each committed change of the entries that `where` finds. */
  subscribe(query: { where?: object } | undefined, callback: (news: EntryNews) => void): EntrySubscription;
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
  /** Changes the given fields of a data source. Its entries stay. */
  update(idOrName: number | string, fields: object): Promise<DataSource>;
  /** Deletes a data source with its entries. */
  delete(idOrName: number | string): Promise<void>;
  /** Returns a connection to a data source. Sends no request: an unknown data source rejects the connection's first call. */
  connect(idOrName: number | string): Promise<DataSourceConnection>;
  /** As `connect`, by the name only, even if the name consists of digits. */
  connectByName(name: string): Promise<DataSourceConnection>;
}
