/**
 * Package `Svc.DataSources`: reads and changes data sources and their entries by REST, and subscribes to changes by WebSocket. This
 * package caches nothing.
 */
import type {
  DataSource,
  DataSourceConnection,
  DataSources,
  Entry,
  EntryChanges,
  EntryPage,
  EntryQuery,
  EntrySubscription,
} from "../runtime/data-source-types.js";
import { encodeIdPathSegment, encodePathSegment, rejectUndefinedValues, wrapWithSvcErrors } from "./calls.js";
import { getConnection } from "./connection.js";
import { defineSvcNamespace } from "./define.js";

const ENTRY_CHANGES_SUBSCRIPTION = `subscription DataSourceChanged($appId: Int!, $dataSourceId: ID!, $by: ReferenceKind, $where: JSON, $since: String) {
  dataSourceChanged(appId: $appId, dataSourceId: $dataSourceId, by: $by, where: $where, since: $since) {
    reset position
    inserted { id dataSourceId data createdAt updatedAt order }
    updated { id dataSourceId data createdAt updatedAt order }
    deleted { id dataSourceId data createdAt updatedAt order }
  }
}`;

type ChangeMessage = EntryChanges & { position: string };
type PageCursor = { isFirstPage: boolean; isLastPage: boolean; next: string | null; prev: string | null };
type EntriesResponse = {
  entries: Entry[];
  pagination?: { total: number; limit: number; offset: number };
  cursor?: PageCursor;
};

const getDataSourcesPath = () => `/v1/apps/${getConnection().appId()}/data-sources`;

const encodeSourceSegment = (ref: unknown) =>
  encodePathSegment(ref, "DATA_SOURCE_NOT_FOUND", "a data source's id or name");
const encodeColumnSegment = (column: unknown) => encodePathSegment(column, "REQUEST_INVALID", "a column's name");

async function requestJson<Answer>(
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<Answer> {
  return (await getConnection().request(method, path, body, { headers })) as Answer;
}

const createIfMatchHeader = (ifUpdatedAt: string | undefined): Record<string, string> =>
  ifUpdatedAt === undefined ? {} : { "If-Match": `"${ifUpdatedAt}"` };

function createEntryPage(
  { entries, cursor }: EntriesResponse,
  readPageAt: (cursor: string) => Promise<EntryPage>,
): EntryPage {
  const { isFirstPage = true, isLastPage = true, next = null, prev = null } = cursor ?? {};
  // Returns an empty page after the last page (`isAfterLast`) or before the first one. Its `prev` or `next` leads back to `currentPage`.
  const readEmptyPage = (isAfterLast: boolean): Promise<EntryPage> =>
    Promise.resolve(
      addPageNavigation([], {
        isFirstPage: !isAfterLast,
        isLastPage: isAfterLast,
        next: async () => (isAfterLast ? readEmptyPage(true) : currentPage),
        prev: async () => (isAfterLast ? currentPage : readEmptyPage(false)),
      }),
    );
  const currentPage: EntryPage = addPageNavigation(entries, {
    isFirstPage,
    isLastPage,
    next: () => (next === null ? readEmptyPage(true) : readPageAt(next)),
    prev: () => (prev === null ? readEmptyPage(false) : readPageAt(prev)),
  });
  return currentPage;
}

function addPageNavigation(
  entries: Entry[],
  navigation: Pick<EntryPage, "isFirstPage" | "isLastPage" | "next" | "prev">,
): EntryPage {
  const hiddenProperties = Object.entries(navigation).map(([name, value]) => [name, { value }] as const);
  return Object.defineProperties(entries, Object.fromEntries(hiddenProperties)) as EntryPage;
}

/**
 * Subscribes to changes of entries. After a pause or a lost connection, the service first sends the missed changes. If it no longer has all
 * of them, it sends `reset: true` instead, and the code must read the entries again.
 */
function subscribeToChanges(
  { ref, by }: SourceRef,
  where: unknown,
  callback: (changes: EntryChanges) => void,
): EntrySubscription {
  let status: ReturnType<EntrySubscription["status"]> = "connecting";
  let lastPosition: string | undefined;
  let endSubscription: (() => void) | null = null;

  function next({ dataSourceChanged }: { dataSourceChanged: ChangeMessage }): void {
    const { position, ...changes } = dataSourceChanged;
    lastPosition = position;
    status = "subscribed";
    const { reset, inserted, updated, deleted } = changes;
    if (reset || inserted.length > 0 || updated.length > 0 || deleted.length > 0) callback(changes);
  }

  function startSubscription(): void {
    status = "connecting";
    const { appId, follow: subscribe } = getConnection();
    const variables = () => ({ appId: appId(), dataSourceId: String(ref), by, where, since: lastPosition });
    const onRejected = (cause: unknown) => {
      status = "refused";
      console.warn("svc: the service rejected the subscription to a data source", cause);
    };
    endSubscription = subscribe<{ dataSourceChanged: ChangeMessage }>(ENTRY_CHANGES_SUBSCRIPTION, variables, {
      next,
      refused: onRejected,
    });
  }

  function stopSubscription(as: "paused" | "unsubscribed"): void {
    endSubscription?.();
    endSubscription = null;
    status = as;
  }

  startSubscription();
  return {
    pause: () => status !== "unsubscribed" && stopSubscription("paused"),
    resume: () => status === "paused" && startSubscription(),
    unsubscribe: () => stopSubscription("unsubscribed"),
    status: () => status,
  };
}

/** Sends entries to import: an array of rows, CSV text, the text of a JSON array, a file, or a form that contains a file. */
async function sendImport(path: string, input: string | unknown[] | FormData | Blob): Promise<{ inserted: number }> {
  if (Array.isArray(input)) {
    const { inserted } = await requestJson<{ inserted: number }>("POST", path, input);
    return { inserted };
  }
  const form = input instanceof FormData ? input : new FormData();
  if (typeof input === "string") {
    const [type, name] = /^\s*\[/.test(input) ? ["application/json", "import.json"] : ["text/csv", "import.csv"];
    form.append("file", new Blob([input], { type }), name);
  } else if (input instanceof Blob) form.append("file", input);
  else if (form !== input)
    throw new TypeError("the input of an import must be CSV text, JSON text, an array of rows, a file or a FormData");
  const answer = await getConnection().exchange("POST", path, form);
  const { inserted } = (await answer.json()) as { inserted: number };
  return { inserted };
}

/** Reference to a data source by ID or name. Without `by`, the service takes a text of digits as an ID. */
interface SourceRef {
  ref: string | number;
  by?: "name";
}

function connectDataSource(source: SourceRef): DataSourceConnection {
  const referenceQuery: Record<string, string> = source.by === "name" ? { by: "name" } : {};
  const getSourcePath = (path: string, query: Record<string, string> = {}) => {
    const text = String(new URLSearchParams({ ...query, ...referenceQuery }));
    return `${getDataSourcesPath()}/${encodeSourceSegment(source.ref)}/${path}${text && `?${text}`}`;
  };
  const getEntryPath = (id: number) =>
    getSourcePath(`entries/${encodeIdPathSegment(id, "ENTRY_NOT_FOUND", "an entry's id")}`);
  const queryEntries = ({ includePagination = false, ...body }: EntryQuery & { cursor?: string | true }) => {
    rejectUndefinedValues(body.where ?? {}, "where");
    rejectUndefinedValues(body.aggregate ?? [], "aggregate");
    return requestJson<EntriesResponse>("POST", getSourcePath("query"), { type: "select", includePagination, ...body });
  };
  /** Reads the page of entries at a cursor; true: the first page. */
  const readPage = (options: EntryQuery, cursor: string | true): Promise<EntryPage> =>
    queryEntries({ ...options, cursor }).then((response) =>
      createEntryPage(response, (nextCursor) => readPage(options, nextCursor)),
    );

  async function find(options: EntryQuery = {}) {
    const { entries, pagination } = await queryEntries(options);
    return options.includePagination ? { entries, pagination } : entries;
  }

  const calls: Omit<DataSourceConnection, "subscribe"> = {
    find: find as DataSourceConnection["find"],
    findOne: async (options = {}) => (await queryEntries({ ...options, limit: 1 })).entries[0],
    findById: (id) => requestJson("GET", getEntryPath(id)),
    findWithCursor: (options = {}) => readPage(options, true),
    insert: (data) => requestJson("POST", getSourcePath("entries"), data),
    update: (id, data, { ifUpdatedAt } = {}) =>
      requestJson("PUT", getEntryPath(id), data, createIfMatchHeader(ifUpdatedAt)),
    removeById: (id, { ifUpdatedAt } = {}) =>
      requestJson("DELETE", getEntryPath(id), undefined, createIfMatchHeader(ifUpdatedAt)),
    remove(options) {
      rejectUndefinedValues(options?.where ?? {}, "where");
      return requestJson("POST", getSourcePath("query"), { type: "delete", where: options?.where });
    },
    append: (rows) => sendImport(getSourcePath("import", { append: "true" }), rows),
    replaceWith: (rows) => sendImport(getSourcePath("import"), rows),
    import: (input) => sendImport(getSourcePath("import"), input),
    commit: (changes) => requestJson("POST", getSourcePath("commit"), changes),
    async getIndex(column) {
      const index = await requestJson<Record<string, unknown[]>>(
        "GET",
        getSourcePath(`indexes/${encodeColumnSegment(column)}`),
      );
      return index[column] ?? [];
    },
    // Without columns, sends no request, because the route needs at least one column.
    getIndexes: async (columns) =>
      columns.length === 0
        ? {}
        : requestJson(
            "GET",
            getSourcePath(`indexes/${columns.map((column) => encodeColumnSegment(column)).join(",")}`),
          ),
  };
  const subscribe: DataSourceConnection["subscribe"] = ({ where } = {}, callback) => {
    rejectUndefinedValues(where ?? {}, "where");
    return subscribeToChanges(source, where, callback);
  };
  return { ...wrapWithSvcErrors(calls), subscribe };
}

async function unwrapDataSource(response: Promise<{ dataSource: DataSource }>): Promise<DataSource> {
  return (await response).dataSource;
}

const dataSources: DataSources = {
  get: async () => (await requestJson<{ dataSources: DataSource[] }>("GET", getDataSourcesPath())).dataSources,
  getById: (ref) => unwrapDataSource(requestJson("GET", `${getDataSourcesPath()}/${encodeSourceSegment(ref)}`)),
  create: (fields) => unwrapDataSource(requestJson("POST", getDataSourcesPath(), fields)),
  update: (ref, fields) =>
    unwrapDataSource(requestJson("PUT", `${getDataSourcesPath()}/${encodeSourceSegment(ref)}`, fields)),
  async delete(ref) {
    await requestJson("DELETE", `${getDataSourcesPath()}/${encodeSourceSegment(ref)}`);
  },
  connect: async (ref) => connectDataSource({ ref }),
  connectByName: async (name) => connectDataSource({ ref: name, by: "name" }),
};

defineSvcNamespace("DataSources", wrapWithSvcErrors(dataSources));
