/**
 * Package `Svc.DataSources`: reads and changes data sources and their entries by REST, and subscribes to changes by WebSocket. It stores
 * nothing.
 */
import type {
  DataSource,
  DataSourceConnection,
  DataSources,
  Entry,
  EntryNews,
  EntryPage,
  EntryQuery,
  EntrySubscription,
} from "../runtime/data-source-types.js";
import { idSegment, rejecting, segment } from "./calls.js";
import { connection } from "./connection.js";
import { define } from "./define.js";

const FOLLOW = `subscription DataSourceChanged($appId: Int!, $dataSourceId: ID!, $by: ReferenceKind, $where: JSON, $since: String) {
  dataSourceChanged(appId: $appId, dataSourceId: $dataSourceId, by: $by, where: $where, since: $since) {
    reset position
    inserted { id dataSourceId data createdAt updatedAt order }
    updated { id dataSourceId data createdAt updatedAt order }
    deleted { id dataSourceId data createdAt updatedAt order }
  }
}`;

type Message = EntryNews & { position: string };
type Cursor = { isFirstPage: boolean; isLastPage: boolean; next: string | null; prev: string | null };
type Found = { entries: Entry[]; pagination?: { total: number; limit: number; offset: number }; cursor?: Cursor };

const root = () => `/v1/apps/${connection().appId()}/data-sources`;

const sourceSegment = (ref: unknown) => segment(ref, "DATA_SOURCE_NOT_FOUND", "a data source's id or name");
const columnSegment = (column: unknown) => segment(column, "REQUEST_INVALID", "a column's name");

async function ask<Answer>(
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<Answer> {
  return (await connection().request(method, path, body, { headers })) as Answer;
}

const ifMatch = (ifUpdatedAt: string | undefined): Record<string, string> =>
  ifUpdatedAt === undefined ? {} : { "If-Match": `"${ifUpdatedAt}"` };

/** Returns a page of entries: an array with functions that read the next and the previous page. */
function pageOf({ entries, cursor }: Found, at: (cursor: string) => Promise<EntryPage>): EntryPage {
  const { isFirstPage = true, isLastPage = true, next = null, prev = null } = cursor ?? {};
  // There is no page beyond the first and the last one, but the way back still works.
  const beyond = (isLast: boolean): Promise<EntryPage> =>
    Promise.resolve(
      withNeighbours([], {
        isFirstPage: !isLast,
        isLastPage: isLast,
        next: async () => (isLast ? beyond(true) : here),
        prev: async () => (isLast ? here : beyond(false)),
      }),
    );
  const here: EntryPage = withNeighbours(entries, {
    isFirstPage,
    isLastPage,
    next: () => (next === null ? beyond(true) : at(next)),
    prev: () => (prev === null ? beyond(false) : at(prev)),
  });
  return here;
}

function withNeighbours(
  entries: Entry[],
  neighbours: Pick<EntryPage, "isFirstPage" | "isLastPage" | "next" | "prev">,
): EntryPage {
  const hidden = Object.entries(neighbours).map(([name, value]) => [name, { value }] as const);
  return Object.defineProperties(entries, Object.fromEntries(hidden)) as EntryPage;
}

/** Subscribes to changes. After a pause or a lost connection, the subscription resumes after the last received change. */
function follow({ ref, by }: SourceRef, where: unknown, callback: (news: EntryNews) => void): EntrySubscription {
  let status: ReturnType<EntrySubscription["status"]> = "connecting";
  let since: string | undefined;
  let end: (() => void) | null = null;

  function next({ dataSourceChanged }: { dataSourceChanged: Message }): void {
    const { position, ...news } = dataSourceChanged;
    since = position;
    status = "subscribed";
    const { reset, inserted, updated, deleted } = news;
    if (reset || inserted.length > 0 || updated.length > 0 || deleted.length > 0) callback(news);
  }

  function begin(): void {
    status = "connecting";
    const { appId, follow: subscribe } = connection();
    const variables = () => ({ appId: appId(), dataSourceId: String(ref), by, where, since });
    const refused = (cause: unknown) => {
      status = "refused";
      console.warn("svc: the service refuses to tell of this data source", cause);
    };
    end = subscribe<{ dataSourceChanged: Message }>(FOLLOW, variables, { next, refused });
  }

  function stop(as: "paused" | "unsubscribed"): void {
    end?.();
    end = null;
    status = as;
  }

  begin();
  return {
    pause: () => status !== "unsubscribed" && stop("paused"),
    resume: () => status === "paused" && begin(),
    unsubscribe: () => stop("unsubscribed"),
    status: () => status,
  };
}

/** Sends the input of an import: rows, the text of a CSV or of a JSON array, a file, or a form with a file. */
async function send(path: string, input: string | unknown[] | FormData | Blob): Promise<{ inserted: number }> {
  if (Array.isArray(input)) {
    const { inserted } = await ask<{ inserted: number }>("POST", path, input);
    return { inserted };
  }
  const form = input instanceof FormData ? input : new FormData();
  if (typeof input === "string") {
    const [type, name] = /^\s*\[/.test(input) ? ["application/json", "import.json"] : ["text/csv", "import.csv"];
    form.append("file", new Blob([input], { type }), name);
  } else if (input instanceof Blob) form.append("file", input);
  else if (form !== input) throw new TypeError("an import takes CSV, JSON, an array of rows, a file or a FormData");
  const answer = await connection().exchange("POST", path, form);
  const { inserted } = (await answer.json()) as { inserted: number };
  return { inserted };
}

/** Reference to a data source by ID or by name. A name can consist of digits. */
interface SourceRef {
  ref: string | number;
  by?: "name";
}

function connectionTo(to: SourceRef): DataSourceConnection {
  const byName: Record<string, string> = to.by === "name" ? { by: "name" } : {};
  const source = (path: string, query: Record<string, string> = {}) => {
    const text = String(new URLSearchParams({ ...query, ...byName }));
    return `${root()}/${sourceSegment(to.ref)}/${path}${text && `?${text}`}`;
  };
  const entry = (id: number) => source(`entries/${idSegment(id, "ENTRY_NOT_FOUND", "an entry's id")}`);
  const query = ({ includePagination = false, ...body }: EntryQuery & { cursor?: string | true }) =>
    ask<Found>("POST", source("query"), { type: "select", includePagination, ...body });
  const at = (options: EntryQuery, cursor: string | true): Promise<EntryPage> =>
    query({ ...options, cursor }).then((found) => pageOf(found, (next) => at(options, next)));

  async function find(options: EntryQuery = {}) {
    const { entries, pagination } = await query(options);
    return options.includePagination ? { entries, pagination } : entries;
  }

  const calls: Omit<DataSourceConnection, "subscribe"> = {
    find: find as DataSourceConnection["find"],
    findOne: async (options = {}) => (await query({ ...options, limit: 1 })).entries[0],
    findById: (id) => ask("GET", entry(id)),
    findWithCursor: (options = {}) => at(options, true),
    insert: (data) => ask("POST", source("entries"), data),
    update: (id, data, { ifUpdatedAt } = {}) => ask("PUT", entry(id), data, ifMatch(ifUpdatedAt)),
    removeById: (id, { ifUpdatedAt } = {}) => ask("DELETE", entry(id), undefined, ifMatch(ifUpdatedAt)),
    remove: (options) => ask("POST", source("query"), { type: "delete", where: options?.where }),
    append: (rows) => send(source("import", { append: "true" }), rows),
    replaceWith: (rows) => send(source("import"), rows),
    import: (input) => send(source("import"), input),
    commit: (changes) => ask("POST", source("commit"), changes),
    async getIndex(column) {
      const found = await ask<Record<string, unknown[]>>("GET", source(`indexes/${columnSegment(column)}`));
      return found[column] ?? [];
    },
    getIndexes: (columns) => ask("GET", source(`indexes/${columns.map((column) => columnSegment(column)).join(",")}`)),
  };
  return { ...rejecting(calls), subscribe: ({ where } = {}, callback) => follow(to, where, callback) };
}

async function one(answer: Promise<{ dataSource: DataSource }>): Promise<DataSource> {
  return (await answer).dataSource;
}

const dataSources: DataSources = {
  get: async () => (await ask<{ dataSources: DataSource[] }>("GET", root())).dataSources,
  getById: (ref) => one(ask("GET", `${root()}/${sourceSegment(ref)}`)),
  create: (fields) => one(ask("POST", root(), fields)),
  update: (ref, fields) => one(ask("PUT", `${root()}/${sourceSegment(ref)}`, fields)),
  async delete(ref) {
    await ask("DELETE", `${root()}/${sourceSegment(ref)}`);
  },
  connect: async (ref) => connectionTo({ ref }),
  connectByName: async (name) => connectionTo({ ref: name, by: "name" }),
};

define("DataSources", rejecting(dataSources));
