/** Public types of the client library (specification, Action operations). The build adds them to svc.d.ts. This file contains only types. */
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
import type { Entry } from "./data-source-types.js";
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
  /** Time zone of the schedule as an IANA name. */
  timezone: string | null;
  /** Origins that the code may send requests to. */
  integrationOrigins: string[];
  access: ActionAccess;
  /** Time of the last run in ISO 8601 format. */
  lastRunAt: string | null;
  createdAt: string;
  updatedAt: string;
}

export interface CreateData extends LimitData {
  /** Name of the action, unique in the app. */
  name: string;
  /** JavaScript code that defines a function `execute`. */
  code: string;
  description?: string | null;
  /** False (the default): no trigger starts the action. */
  active?: boolean;
  /** Where the action can run: in the service (`server`, the default), in pages (`client`), or in both (`any`). */
  environment?: Environment;
  triggers?: Trigger[];
  /** Packages and script URLs, loaded in this order. */
  dependencies?: string[];
  /** Cron expression of five fields, for a `schedule` trigger. */
  frequency?: string | null;
  /** Time zone of the schedule as an IANA name. Default: the service's `DEFAULT_TIMEZONE`. */
  timezone?: string | null;
  /** Origins that the code may send requests to, such as `https://api.example.com`; at most 20, on server actions only. */
  integrationOrigins?: string[];
  /** Users who can run the action on demand from a page; "everyone" by default. */
  access?: ActionAccess | null;
}

export interface LogEntry {
  id: number;
  type: "app.task.completed" | "app.task.failed";
  /** Time at which the execution finished, in ISO 8601. */
  createdAt: string;
  data: {
    mode: "scheduled" | "on-demand";
    runOn: "server" | "client";
    /** ID of the action. */
    taskId: number;
    payload: object;
    /** Duration of the run in milliseconds. */
    duration: number;
    actionVersion: "v3";
    result?: { data?: unknown; success: boolean };
    error?: { name: string; message: string; stack?: string };
  };
}

export interface LogOptions {
  /** Returns only log entries of the action with this ID. `where.data.taskId` is the same filter. */
  id?: number;
  where?: { type?: LogEntry["type"]; data?: { taskId?: number } };
  /** Maximum number of returned log entries: 50 by default, at most 1,000. */
  limit?: number;
  offset?: number;
}

/**
 * Rejection of a call to the service: an Error whose enumerable properties are `status`, `error`, and `nextValidRequestDate` for an exceeded
 * rate limit. Its other properties can be read, but are not enumerable.
 */
export interface SvcError extends Error {
  /** A status of the service, or NETWORK_ERROR if no complete response arrived. */
  status: string;
  error: string;
  /** Seconds after which the call can be repeated. */
  retryAfter?: number;
  /** Time in ISO 8601 format from which the service accepts the call again. */
  nextValidRequestDate?: string;
  runId?: number;
  /** With ACTION_CHANGED: the action as it is now. */
  action?: Action;
  /** With ENTRY_CHANGED: the entry as it is now, with the columns that the caller may read. */
  entry?: Entry | null;
  /** With ENTRY_ALREADY_EXISTS: columns whose values another entry already has. Only columns that the caller may read. */
  columns?: string[];
  /** With NETWORK_ERROR: true if a part of the response arrived, so the service has received the request. */
  answered?: boolean;
}

export interface Actions {
  /** Lists the app's actions, with their code. `limit` is at most 1,000. */
  get(options?: {
    limit?: number;
    offset?: number;
  }): Promise<{ actions: Action[]; pagination: { total: number; hasMore: boolean } }>;
  /** Returns an action. Rejects with ACTION_NOT_FOUND if the app has none with this id. */
  getById(id: number): Promise<Action>;
  /** Creates an action as a draft. Rejects with NAME_ALREADY_EXISTS if another action has the name. */
  create(data: CreateData): Promise<Action>;
  /** Changes the passed fields of the draft. The live version does not change until you publish. */
  update(id: number, data: Partial<CreateData>): Promise<Action>;
  /** Deletes the action with its versions. Its log entries remain. */
  remove(id: number): Promise<void>;
  /**
   * Runs an action, and resolves when the run is queued. A call by a draft runs drafts, and a call by a live version runs live versions.
   * Calls by actions count towards the app's `RATE_LIMIT_RUN`.
   */
  run(nameOrId: string | number, payload?: object): Promise<void>;
  /**
   * Runs an action, and resolves to the result of its `execute`. In an action, the wait counts towards the time limit of the calling run. The
   * called run has a time limit of its own, and continues if the calling run ends first.
   */
  runWithResult<Result = unknown>(nameOrId: string | number, payload?: object): Promise<Result>;
  /** Publishes the draft as the live version. Returns the live version. */
  publish(id: number): Promise<{ action: Action }>;
  /** Removes the live version. The draft remains. */
  unpublish(id: number): Promise<void>;
  /** Lists log entries of runs, newest first. */
  getLogs(options?: LogOptions): Promise<{ count: number; logs: LogEntry[] }>;
  /** Creates the value by which `execute` sets the response of an HTTP trigger: `return Svc.App.V3.Actions.response({status: 201})`. */
  response(options?: ResponseOptions): object;
  /** Sends a request to an origin of the action's `integrationOrigins`. In server actions only. */
  request: SendRequest;
}

export interface AnalyticsEvent {
  /** Time of the event as Unix time in milliseconds. */
  createdAt: number;
  type: AnalyticsEventType;
  data: Record<string, unknown>;
}

export interface Analytics {
  /** Records that the visitor views a screen. `_pageId` in `data` identifies the screen. Returns the recorded event. */
  pageView(data?: Record<string, unknown>): AnalyticsEvent;
  /** Records an event that you define. A name is stored as `data.name`. Returns the recorded event. */
  event(nameOrData?: string | Record<string, unknown>, data?: Record<string, unknown>): AnalyticsEvent;
}

export interface Triggers {
  /** Starts to receive the app's client actions. The first analytics event also does this. */
  start(): void;
  /** Stops receiving client actions, until the page calls `start` or records an analytics event. */
  stop(): void;
}

export interface Configuration {
  /** URL of the service, such as https://actions.example.com or https://example.com/actions. */
  apiUrl?: string;
  appId?: number;
  /** Token of the page, stored only in memory and sent only to `apiUrl`. Without a token, the browser's cookie is the credential. */
  token?: string | null;
}

export interface Client {
  /**
   * Starts or continues the session of this visitor, and stores it in `localStorage`. The app must list the page's origin. `url` is the URL of
   * the service; default: the URL that is already configured, or that of the service from which the page loaded `svc.js`.
   */
  init(options: { app: number; url?: string }): Promise<void>;
  /**
   * Replaces the service's URL, the app or the token. A new `apiUrl` without a `token` removes the token, because a token is only valid for one
   * service. A token, another URL or another app ends the renewal of a session that `init` has started.
   */
  configure(configuration: Configuration): void;
  /** Returns the session of the page; null if there is none, or if the service responds with an error. */
  session(): Promise<AppSession | null>;
  App: { V3: { Actions: Actions }; Analytics: Analytics; Triggers: Triggers; Settings: SettingsReader };
}

/** Type of `window.ENV`, which the script `/v1/apps/:id/env.js` sets for the client library. */
export interface Env {
  appId?: number;
  apiUrl?: string;
  environment?: string;
  appSettings?: Record<string, unknown>;
  /** Maximum milliseconds of a client action; default 30000. */
  clientTimeoutMs?: number;
  /** The session of the page. */
  session?: AppSession;
  /** Token of a page without a cookie. The library reads the token once when it loads, and then removes it from `window.ENV`. */
  token?: string;
}

/** Result of `Svc.Session.get()`. */
export interface AppSession {
  appId: number;
  /** Signed-in person. null for an anonymous visitor, and for a run that a schedule, a log event, an HTTP trigger or an API token started. */
  user: { id: number; firstName: string; lastName: string; email: string } | null;
  environment: "master" | "production";
  /** The app user who is signed in to the page: an entry, without its hashed columns. */
  entries?: {
    dataSource: {
      id: number;
      dataSourceId: number;
      data: Record<string, unknown>;
      /** Channels (e-mail, text message) by which the user has confirmed an address with a code, each with the time in ISO 8601. */
      verified?: { email?: string; sms?: string };
    };
  };
  /** `secondFactor`: the user has proven the first factor, but not the second factor yet, and is not signed in. */
  awaits?: "secondFactor";
}

/** `Svc.Session`, of the package svc-session. */
export interface Session {
  /** Returns the session of the run or page; null in a page without a session. */
  get(): Promise<AppSession | null>;
  /** Returns the signed-in person; null if there is none. */
  user(): Promise<AppSession["user"]>;
  /** Signs in the app user whose entry has the values in `where`. Rejects with UNAUTHORIZED if the user is unknown or the password is wrong. */
  authorize(credentials: {
    passport: "dataSource";
    dataSourceId?: number | string;
    dataSourceName?: string;
    where: Record<string, string | number>;
  }): Promise<AppSession>;
  /**
   * Without `code`: sends a code to the user with this address. Returns `expiresAt` even if no user has the address. With `code`: signs in the user and returns `session`; rejects with UNAUTHORIZED if the code is wrong. `secondFactor` uses the phone number of the user who has proven the first factor with a password or a code by e-mail.
   */
  verify(verification: { code?: string } & ({ email: string } | { sms: string } | { secondFactor: "sms" })): Promise<{
    expiresAt?: string;
    session?: AppSession;
  }>;
  /** Signs out the page's app user. Returns the session without an app user. */
  logout(): Promise<AppSession>;
  /** Records the language that the user chose as a log event. `locale` is a language tag such as en-GB. Does not translate the page. */
  set(fields: { locale: string }): Promise<AppSession>;
}

/** Content of a folder, or the results of a search: at most 1,000 folders and 1,000 files. */
export interface MediaListing {
  folder: MediaFolder | null;
  /** Parent folders of the listed folder, from the top level down. Only server actions and editors receive them. */
  path: { id: number; name: string }[];
  folders: MediaFolder[];
  files: MediaFile[];
  pagination: { total: number; hasMore: boolean };
}

export interface MediaFolders {
  /** Lists the content of a folder; without `folderId`, of the top level. */
  get(options?: { folderId?: number | null }): Promise<MediaListing>;
  /** Creates a folder, at the top level without `parentId`. */
  create(fields: { name: string; parentId?: number | null }): Promise<MediaFolder>;
  /** Renames or moves a folder. */
  update(id: number, fields: { name?: string; parentId?: number | null }): Promise<MediaFolder>;
  /** Deletes the folder with all its content. */
  delete(id: number): Promise<void>;
  /** Finds files and folders whose name contains the text, in all folders. Ignores case. */
  search(options: { name: string }): Promise<MediaListing>;
}

export interface MediaFiles {
  /** Uploads one `file` with an optional `name`, or several files in the form `data`. */
  upload(options: { folderId?: number | null; file?: Blob; data?: FormData; name?: string }): Promise<MediaFile[]>;
  /** Returns the fields of a file, such as its URL and checksum, without its bytes. */
  get(id: number): Promise<MediaFile>;
  /** Lists all files of the app, in all folders. */
  getAll(): Promise<MediaFile[]>;
  /** Returns the file. For a picture, `size` is a width in pixels or "thumbnail", and `quality` is 1 to 100. */
  getContents(
    id: number,
    options?: { size?: number | "thumbnail"; format?: "jpeg" | "png" | "webp" | "avif"; quality?: number },
  ): Promise<Blob>;
  /** Renames or moves a file. */
  update(id: number, fields: { name?: string; folderId?: number | null }): Promise<MediaFile>;
  /** Deletes a file. */
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
