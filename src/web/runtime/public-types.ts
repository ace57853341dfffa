/**
 * Public types of the client library (specification, Action operations); served with data/action-types.ts and data/media-types.ts as
 * svc.d.ts. Only types.
 */
import type {
  ActionAccess,
  AnalyticsEventType,
  Asset,
  Environment,
  LimitData,
  RunLimits,
  Trigger,
} from "../../data/action-types.js";
import type { MediaFile, MediaFolder } from "../../data/media-types.js";
import type { ResponseOptions, SendRequest, SettingsReader } from "./request-types.js";

export interface Action extends RunLimits {
  id: number;
  appId: number;
  name: string;
  description: string | null;
  code: string;
  active: boolean;
  environment: Environment;
  actionVersion: "v3";
  triggers: Trigger[];
  dependencies: string[];
  assets: Asset[];
  /** Cron expression of five fields. */
  frequency: string | null;
  /** IANA name. */
  timezone: string | null;
  /** Origins that the code may send requests to. */
  integrationOrigins: string[];
  access: ActionAccess;
  /** ISO 8601. */
  lastRunAt: string | null;
  createdAt: string;
  updatedAt: string;
}

export interface CreateData extends LimitData {
  name: string;
  code: string;
  description?: string | null;
  active?: boolean;
  environment?: Environment;
  triggers?: Trigger[];
  dependencies?: string[];
  frequency?: string | null;
  timezone?: string | null;
  /** Origins that the code may send requests to, such as `https://api.example.com`; at most 20, on server actions only. */
  integrationOrigins?: string[];
  /** Who can run it on demand from a page; "everyone" by default. */
  access?: ActionAccess | null;
}

export interface LogEntry {
  id: number;
  type: "app.task.completed" | "app.task.failed";
  /** ISO 8601, when the execution finished. */
  createdAt: string;
  data: {
    mode: "scheduled" | "on-demand";
    runOn: "server" | "client";
    taskId: number;
    payload: object;
    /** Milliseconds. */
    duration: number;
    actionVersion: "v3";
    result?: { data?: unknown; success: boolean };
    error?: { name: string; message: string; stack?: string };
  };
}

export interface LogOptions {
  id?: number;
  where?: { type?: LogEntry["type"]; data?: { taskId?: number } };
  limit?: number;
  offset?: number;
}

/**
 * Every rejection: an Error whose enumerable properties are the service's error body, `{status, error}`, with `nextValidRequestDate` for an
 * exceeded rate limit; `retryAfter`, `runId` and `answered` are readable but not enumerable.
 */
export interface SvcError extends Error {
  /** A status of the service, or NETWORK_ERROR if no response arrived. */
  status: string;
  error: string;
  /** Seconds. */
  retryAfter?: number;
  /** ISO 8601. */
  nextValidRequestDate?: string;
  runId?: number;
  /** The current action (ACTION_CHANGED). */
  action?: Action;
  /** The current entry, as far as the caller can see it (ENTRY_CHANGED). */
  entry?: Entry | null;
  /** Columns whose values another entry has (ENTRY_ALREADY_EXISTS), as far as the caller can know them. */
  columns?: string[];
  /** For a NETWORK_ERROR: true if the response had started, so the service received the request. */
  answered?: boolean;
}

export interface Actions {
  get(options?: {
    limit?: number;
    offset?: number;
  }): Promise<{ actions: Action[]; pagination: { total: number; hasMore: boolean } }>;
  getById(id: number): Promise<Action>;
  create(data: CreateData): Promise<Action>;
  update(id: number, data: Partial<CreateData>): Promise<Action>;
  remove(id: number): Promise<void>;
  /** Resolves when the run is queued. */
  run(nameOrId: string | number, payload?: object): Promise<void>;
  /** Resolves to the result of `execute`. */
  runWithResult<Result = unknown>(nameOrId: string | number, payload?: object): Promise<Result>;
  publish(id: number): Promise<{ action: Action }>;
  unpublish(id: number): Promise<void>;
  getLogs(options?: LogOptions): Promise<{ count: number; logs: LogEntry[] }>;
  /** Creates the value by which `execute` sets the response of an HTTP trigger: `return Svc.App.V3.Actions.response({status: 201})`. */
  response(options?: ResponseOptions): object;
  /** Sends a request to an origin of the action's `integrationOrigins`. In server actions only. */
  request: SendRequest;
}

export interface AnalyticsEvent {
  /** Unix time in milliseconds. */
  createdAt: number;
  type: AnalyticsEventType;
  data: Record<string, unknown>;
}

export interface Analytics {
  /** Records that the visitor views a screen. `_pageId` in `data` identifies the screen. Returns the recorded event. */
  pageView(data?: Record<string, unknown>): AnalyticsEvent;
  /** Records an event of your own. A name is stored as `data.name`. Returns the recorded event. */
  event(nameOrData?: string | Record<string, unknown>, data?: Record<string, unknown>): AnalyticsEvent;
}

export interface Triggers {
  /** Receives the app's client actions from now on. The first analytics event starts this too. */
  start(): void;
  /** Receives no more client actions. */
  stop(): void;
}

export interface Configuration {
  /** Such as https://actions.example.com, or https://example.com/actions. */
  apiUrl?: string;
  appId?: number;
  /** Only held in memory and only sent to `apiUrl`. Without one the browser's cookie is the credential. */
  token?: string | null;
}

export interface Client {
  /** Starts or continues this visitor's session, on an origin that the app lists. `url` is the service; default: the origin of the library. */
  init(options: { app: number; url?: string }): Promise<void>;
  /** Replaces values of `window.ENV`. A new `apiUrl` removes the token, because a token is only valid for one service. */
  configure(configuration: Configuration): void;
  /** Returns the session of the page's token; null if there is no token. */
  session(): Promise<AppSession | null>;
  App: { V3: { Actions: Actions }; Analytics: Analytics; Triggers: Triggers; Settings: SettingsReader };
}

/** Set by `/v1/apps/:id/env.js` for the client library. */
export interface Env {
  appId?: number;
  apiUrl?: string;
  environment?: string;
  appSettings?: Record<string, unknown>;
  /** Maximum milliseconds of a client action; default 30000. */
  clientTimeoutMs?: number;
  /** The session of the page. */
  session?: AppSession;
  /** For a page without a cookie: the library reads it once while loading, as if by `Svc.configure`. */
  token?: string;
}

/** Result of `Svc.Session.get()`. */
export interface AppSession {
  appId: number;
  /** null: an anonymous visitor. */
  user: { id: number; firstName: string; lastName: string; email: string } | null;
  environment: "master" | "production";
  /** The app user who is signed in to the page: an entry, without its hashed columns. */
  entries?: {
    dataSource: {
      id: number;
      dataSourceId: number;
      data: Record<string, unknown>;
      /** Addresses proven by a code since the sign-in, each with the time in ISO 8601. */
      verified?: { email?: string; sms?: string };
    };
  };
  /** `secondFactor`: the user has signed in, but has not proven the second factor yet. */
  awaits?: "secondFactor";
}

/** `Svc.Session`, of the package svc-session. */
export interface Session {
  get(): Promise<AppSession | null>;
  user(): Promise<AppSession["user"]>;
  /** Signs in the page's user by the entry that has these values. Rejects with UNAUTHORIZED for a wrong password and an unknown user. */
  authorize(how: {
    passport: "dataSource";
    dataSourceId?: number | string;
    dataSourceName?: string;
    where: Record<string, string | number>;
  }): Promise<AppSession>;
  /**
   * Without `code`: sends a code to the address and returns `expiresAt`, even if no user has the address. With `code`: signs in the user and returns
   * `session`; a wrong code rejects with UNAUTHORIZED. `secondFactor` does the same for a user who has signed in with a password.
   */
  verify(what: { code?: string } & ({ email: string } | { sms: string } | { secondFactor: "sms" })): Promise<{
    expiresAt?: string;
    session?: AppSession;
  }>;
  logout(): Promise<AppSession>;
  /** Sets the language of the page: a language tag such as en-GB. */
  set(fields: { locale: string }): Promise<AppSession>;
}

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

/** docs/reference/data-sources.md has the operators of `where` and the stages of `aggregate`. */
export interface EntryQuery {
  where?: object;
  attributes?: string[];
  order?: [column: string, direction: "ASC" | "DESC"][];
  /** Default 1,000, at most 10,000. */
  limit?: number;
  offset?: number;
  includePagination?: boolean;
  join?: Record<string, object>;
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
  find(query: EntryQuery & { includePagination: true }): Promise<{
    entries: Entry[];
    pagination: { total: number; limit: number; offset: number };
  }>;
  find(query?: EntryQuery): Promise<Entry[]>;
  findOne(query?: EntryQuery): Promise<Entry | undefined>;
  /** Returns the entry; rejects with ENTRY_NOT_FOUND if there is none. */
  findById(id: number): Promise<Entry>;
  findWithCursor(query?: EntryQuery): Promise<EntryPage>;
  insert(data: object): Promise<Entry>;
  /** Changes the given columns. With `ifUpdatedAt`, it rejects with ENTRY_CHANGED if someone else has changed the entry since then. */
  update(id: number, data: object, options?: { ifUpdatedAt?: string }): Promise<Entry>;
  removeById(id: number, options?: { ifUpdatedAt?: string }): Promise<Entry>;
  /** Removes the entries that `where` finds; `{}` finds all. */
  remove(query: { where: object }): Promise<{ deletedCount: number }>;
  append(rows: object[]): Promise<{ inserted: number }>;
  replaceWith(rows: object[]): Promise<{ inserted: number }>;
  /** Replaces all entries. The input is the text of a CSV or of a JSON array, an array of rows, a file, or a form with a file. */
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
  getIndexes(columns: string[]): Promise<Record<string, unknown[]>>;
  subscribe(query: { where?: object } | undefined, callback: (news: EntryNews) => void): EntrySubscription;
}

/** `Svc.DataSources`, of the package svc-datasources. */
export interface DataSources {
  get(): Promise<DataSource[]>;
  getById(idOrName: number | string): Promise<DataSource>;
  create(
    fields: Pick<DataSource, "name"> &
      Partial<Pick<DataSource, "columns" | "accessRules" | "hooks" | "indexes" | "isUsers">> & {
        entries?: object[];
      },
  ): Promise<DataSource>;
  update(idOrName: number | string, fields: object): Promise<DataSource>;
  delete(idOrName: number | string): Promise<void>;
  connect(idOrName: number | string): Promise<DataSourceConnection>;
  connectByName(name: string): Promise<DataSourceConnection>;
}

/** Content of a folder, at most 1,000 files. */
export interface MediaListing {
  folder: MediaFolder | null;
  /** Parent folders, from the top. Only for the app itself. */
  path: { id: number; name: string }[];
  folders: MediaFolder[];
  files: MediaFile[];
  pagination: { total: number; hasMore: boolean };
}

export interface MediaFolders {
  /** Lists the content of a folder; without `folderId`, of the top level. */
  get(options?: { folderId?: number | null }): Promise<MediaListing>;
  create(fields: { name: string; parentId?: number | null }): Promise<MediaFolder>;
  update(id: number, fields: { name?: string; parentId?: number | null }): Promise<MediaFolder>;
  /** Deletes the folder with all its content. */
  delete(id: number): Promise<void>;
  /** Finds files and folders whose name contains the text, in all folders. Ignores case. */
  search(options: { name: string }): Promise<MediaListing>;
}

export interface MediaFiles {
  /** Uploads one `file` with an optional `name`, or several files in the form `data`. */
  upload(options: { folderId?: number | null; file?: Blob; data?: FormData; name?: string }): Promise<MediaFile[]>;
  get(id: number): Promise<MediaFile>;
  getAll(): Promise<MediaFile[]>;
  /** Returns the file. For a picture, `size` is a width in pixels or "thumbnail", and `quality` is 1 to 100. */
  getContents(
    id: number,
    options?: { size?: number | "thumbnail"; format?: "jpeg" | "png" | "webp" | "avif"; quality?: number },
  ): Promise<Blob>;
  update(id: number, fields: { name?: string; folderId?: number | null }): Promise<MediaFile>;
  delete(id: number): Promise<void>;
  /** Creates a URL with which anyone can read the file for `expiresIn` seconds: an hour by default, a week at most. */
  link(id: number, options?: { expiresIn?: number }): Promise<{ url: string; expiresAt: string }>;
}

/** `Svc.Media`, of the package svc-media. */
export interface Media {
  Folders: MediaFolders;
  Files: MediaFiles;
}

export declare const Svc: Client;

declare global {
  interface Window {
    ENV?: Env;
    Svc: Client;
  }
}
