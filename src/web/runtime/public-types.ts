/** The public face of the client library (specification, Action operations), and with data/action-types.ts served as svc.d.ts. Types alone. */
import type { AnalyticsEventType, Asset, Environment, Trigger } from "../../data/action-types.js";

export interface Action {
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
  /** ISO 8601. */
  lastRunAt: string | null;
  createdAt: string;
  updatedAt: string;
}

export interface CreateData {
  name: string;
  code: string;
  description?: string | null;
  active?: boolean;
  environment?: Environment;
  triggers?: Trigger[];
  dependencies?: string[];
  frequency?: string | null;
  timezone?: string | null;
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
 * Every rejection: an Error that spreads and prints as the service's error body, `{status, error}`, with `nextValidRequestDate` where
 * a rate was refused; `retryAfter`, `runId` and `answered` are there to be read, and are not enumerable.
 */
export interface SvcError extends Error {
  /** A status of the service, or NETWORK_ERROR where no answer came. */
  status: string;
  error: string;
  /** Seconds. */
  retryAfter?: number;
  /** ISO 8601. */
  nextValidRequestDate?: string;
  runId?: number;
  /** Of a NETWORK_ERROR: the answer had begun, so the service has had the request. */
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
  /** Resolves with what `execute` returned. */
  runWithResult<Result = unknown>(nameOrId: string | number, payload?: object): Promise<Result>;
  publish(id: number): Promise<{ action: Action }>;
  unpublish(id: number): Promise<void>;
  getLogs(options?: LogOptions): Promise<{ count: number; logs: LogEntry[] }>;
}

export interface AnalyticsEvent {
  /** Unix time in milliseconds. */
  createdAt: number;
  type: AnalyticsEventType;
  data: Record<string, unknown>;
}

export interface Analytics {
  /** Records that a screen was viewed; `_pageId` comes from `data`. Gives the event as recorded. */
  pageView(data?: Record<string, unknown>): AnalyticsEvent;
  /** Records a custom event; a name becomes `data.name`. Gives the event as recorded. */
  event(nameOrData?: string | Record<string, unknown>, data?: Record<string, unknown>): AnalyticsEvent;
}

export interface Triggers {
  /** Listens for the app's client actions. The first analytics event does so by itself. */
  start(): void;
  stop(): void;
}

export interface Configuration {
  /** Such as https://actions.example.com, or https://example.com/actions. */
  apiUrl?: string;
  appId?: number;
  /** Kept in memory alone and sent to `apiUrl` alone. Without one the browser's cookie is the credential. */
  token?: string | null;
}

export interface Client {
  /** Overrides `window.ENV`. A token holds for the apiUrl it was given with: another apiUrl forgets it. */
  configure(configuration: Configuration): void;
  /** Who the page works for, as the service knows its credential; null for nobody. */
  session(): Promise<AppSession | null>;
  App: { V3: { Actions: Actions }; Analytics: Analytics; Triggers: Triggers };
}

/** What `/v1/apps/:id/env.js` leaves for the client library. */
export interface Env {
  appId?: number;
  apiUrl?: string;
  environment?: string;
  appSettings?: Record<string, unknown>;
  /** Milliseconds that a client action may take; default 30000. */
  clientTimeoutMs?: number;
  /** Who the page works for. */
  session?: AppSession;
  /** For a page without a cookie: taken by the library as it loads, as if by `Svc.configure`. */
  token?: string;
}

/** What `Svc.Session.get()` gives. */
export interface AppSession {
  appId: number;
  /** null: a visitor without a name. */
  user: { id: number; firstName: string; lastName: string; email: string } | null;
  environment: "master" | "production";
}

export declare const Svc: Client;

declare global {
  interface Window {
    ENV?: Env;
    Svc: Client;
  }
}
