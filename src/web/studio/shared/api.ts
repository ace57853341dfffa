/** API client of Studio: GraphQL over HTTP and one WebSocket, both to this origin with the session cookie. */
import { type Client, createClient } from "graphql-ws/client";
import type { Document } from "../../document.js";
import { serviceAddress } from "../../service-address.js";
import { fetchSignedIn, isRenewable, renewalCount, waitForRenewal } from "../accounts/renewal.js";

const GRAPHQL_ADDRESS = serviceAddress("/graphql");

/** Details of an error, besides its status and message. */
interface Details {
  runId?: number;
  retryAfter?: number;
}

/** Error with the service's message. `status` is one of the service's statuses, or OFFLINE if there was no response. */
export class ApiError extends Error {
  constructor(
    readonly status: string,
    message: string,
    readonly details: Details = {},
  ) {
    super(message);
  }
}

interface GraphqlError {
  message: string;
  extensions?: Details & { status?: string };
}

interface Answer<Data> {
  data?: Data | null;
  errors?: readonly GraphqlError[];
  /** Status of an error that the service returned before it handled the request as GraphQL. */
  status?: string;
  error?: string;
}

function apiErrorOf({ message, extensions: { status = "INTERNAL_ERROR", ...details } = {} }: GraphqlError): ApiError {
  return new ApiError(status, message, details);
}

/** @throws ApiError with the status OFFLINE if there is no response */
async function sendRequest<Data>(init: RequestInit): Promise<Answer<Data>> {
  try {
    return await (await fetch(GRAPHQL_ADDRESS, init)).json();
  } catch (error) {
    throw asApiError(error);
  }
}

const statusOf = ({ errors, status }: Answer<unknown>): string | undefined => errors?.[0]?.extensions?.status ?? status;

function dataOf<Data>({ data, errors, status, error }: Answer<Data>): Data {
  if (errors?.[0]) throw apiErrorOf(errors[0]);
  if (status && error) throw new ApiError(status, error);
  if (!data) throw new ApiError("INTERNAL_ERROR", "the service sent a response without data");
  return data;
}

/** Returns the error that a page shows for anything that was thrown. */
export function asApiError(error: unknown): ApiError {
  return error instanceof ApiError ? error : new ApiError("OFFLINE", "the service does not answer");
}

/** True if another person has changed the resource since the page has read it. */
export const isChanged = (error: unknown): boolean => asApiError(error).status === "RESOURCE_CHANGED";

/** Returns the message for a rejected change. `load` shows the current state of the resource. */
export async function refusalText(error: unknown, load: () => Promise<unknown>): Promise<string> {
  if (!isChanged(error)) return asApiError(error).message;
  await load();
  return "Not saved: someone else changed this. The page now shows the current state.";
}

export interface Follower<Data> {
  next(data: Data): void;
  /** Called if the subscription was rejected, or if its connection could not be restored. */
  failed?(error: ApiError): void;
  complete?(): void;
}

/** WebSocket close code that Studio sends when it closes the socket normally. */
const NORMAL_CLOSURE = 1000;

/** WebSocket close code that the service sends when the session has ended. */
const FORBIDDEN = 4403;

const RECONNECT_MAX_MS = 30_000;
/** Returns the delay before the next attempt. Delays grow and are random, so that clients do not reconnect at the same moment. */
const reconnectDelayMs = (retries: number): number =>
  Math.min(RECONNECT_MAX_MS, 1_000 * 2 ** retries) + 300 + Math.floor(Math.random() * 2_700);

/** Receives true when the socket connects, and false when it loses the connection. Changes during the loss may not arrive. */
export type OnConnected = (connected: boolean) => void;

export interface Api {
  request<Data, Variables>(
    document: Document<Data, Variables>,
    variables: Variables,
    idempotencyKey?: string,
  ): Promise<Data>;
  /** Reads the bytes at a URL of the service, even if the URL has another host name of the service than the page. */
  bytes(address: string): Promise<Blob>;
  /** Sends files. `onProgress` receives the sent part, from 0 to 1; `signal` aborts. */
  upload(path: string, form: FormData, onProgress: (part: number) => void, signal: AbortSignal): Promise<void>;
  /** @returns function that ends the subscription */
  follow<Data, Variables>(
    document: Document<Data, Variables>,
    variables: Variables,
    follower: Follower<Data>,
  ): () => void;
  /** @returns function that removes the listener */
  onConnected(listener: OnConnected): () => void;
  /** Calls the listener each time a lost connection is restored. @returns function that removes the listener */
  onReconnected(listener: () => void): () => void;
  /** Calls the listener when the service has denied permission. @returns function that removes the listener */
  onForbidden(listener: () => void): () => void;
  /** True if the resource at this path has not changed since `updatedAt`. The service then responds with 304 and no body. */
  isCurrent(path: string, updatedAt: string): Promise<boolean>;
  close(): void;
}

function follow<Data, Variables>(
  client: Client,
  query: Document<Data, Variables>,
  variables: Variables,
  follower: Follower<Data>,
): () => void {
  return client.subscribe<Data>(
    { query, variables: variables as Record<string, unknown> },
    {
      next: (answer) => {
        if (answer.errors?.[0]) follower.failed?.(apiErrorOf(answer.errors[0] as GraphqlError));
        else if (answer.data) follower.next(answer.data);
      },
      error: (error) =>
        follower.failed?.(Array.isArray(error) ? apiErrorOf(error[0] as GraphqlError) : asApiError(undefined)),
      complete: () => follower.complete?.(),
    },
  );
}

/** Uses XMLHttpRequest, because fetch does not report the progress of an upload. */
function uploadForm(
  url: URL,
  {
    form,
    onProgress,
    signal,
  }: {
    form: FormData;
    onProgress: (part: number) => void;
    signal: AbortSignal;
  },
): Promise<void> {
  const before = renewalCount();
  const request = new XMLHttpRequest();
  request.open("POST", url);
  request.upload.onprogress = ({ loaded, total }) => onProgress(total > 0 ? loaded / total : 0);
  signal.addEventListener("abort", () => request.abort());
  return new Promise((resolve, reject) => {
    request.onload = () => {
      if (request.status === 201) return resolve();
      if (request.status === 401 && isRenewable()) {
        return waitForRenewal(before).then(
          () => uploadForm(url, { form, onProgress, signal }).then(resolve, reject),
          reject,
        );
      }
      const { status, error } = refusalIn(request.responseText);
      reject(new ApiError(status, error));
    };
    request.onerror = () => reject(asApiError(undefined));
    request.onabort = () => reject(new ApiError("ABORTED", "the upload was cancelled"));
    request.send(form);
  });
}

function refusalIn(text: string): { status: string; error: string } {
  try {
    return JSON.parse(text);
  } catch {
    return { status: "INTERNAL_ERROR", error: "the service sent a response that is not JSON" };
  }
}

/** Creates the client. The browser sends the session cookie with each request. */
export function createApi(): Api {
  const url = new URL(GRAPHQL_ADDRESS);
  url.protocol = url.protocol.replace("http", "ws");
  /** True after the service has closed the socket because the session has ended. */
  let isForbidden = false;
  let before = renewalCount();
  const client = createClient({
    url: url.href,
    retryAttempts: Number.POSITIVE_INFINITY,
    shouldRetry: (event) => !(event instanceof CloseEvent && event.code === FORBIDDEN) || isRenewable(),
    async retryWait(retries) {
      if (isForbidden) await waitForRenewal(before);
      before = renewalCount();
      isForbidden = false;
      await new Promise((resolve) => setTimeout(resolve, reconnectDelayMs(retries)));
    },
  });
  const reconnected = new Set<() => void>();
  const forbidden = new Set<() => void>();
  const checkForbidden = (status: string | undefined) => {
    if (status === "FORBIDDEN") for (const listener of forbidden) listener();
  };
  let isLost = false;
  // Stored here and not by each listener: a page that opens while the connection is lost does not receive the "closed" event.
  client.on("closed", (event) => {
    isForbidden = (event as CloseEvent).code === FORBIDDEN;
    isLost ||= (event as CloseEvent).code !== NORMAL_CLOSURE;
  });
  client.on("connected", () => {
    if (!isLost) return;
    isLost = false;
    for (const listener of reconnected) listener();
  });
  return {
    async request<Data, Variables>(query: Document<Data, Variables>, variables: Variables, idempotencyKey?: string) {
      const headers = {
        "content-type": "application/json",
        ...(idempotencyKey !== undefined && { "idempotency-key": idempotencyKey }),
      };
      const init = { method: "POST", headers, body: JSON.stringify({ query, variables }) };
      for (;;) {
        const sent = renewalCount();
        const answer = await sendRequest<Data>(init);
        checkForbidden(statusOf(answer));
        // GraphQL responds with 200 even if the session has expired.
        if (statusOf(answer) !== "UNAUTHORIZED" || !isRenewable()) return dataOf(answer);
        await waitForRenewal(sent);
      }
    },
    async bytes(address) {
      const response = await fetchSignedIn(serviceAddress(address.slice(address.indexOf("/v1/apps/"))));
      if (!response.ok) throw new ApiError("FILE_NOT_FOUND", "the file could not be loaded from the service");
      return response.blob();
    },
    upload: (path, form, onProgress, signal) => uploadForm(serviceAddress(path), { form, onProgress, signal }),
    follow: (document, variables, follower) =>
      follow(client, document, variables, {
        ...follower,
        failed: (error) => {
          checkForbidden(error.status);
          follower.failed?.(error);
        },
      }),
    onConnected(listener) {
      const ends = [
        client.on("connected", () => listener(true)),
        client.on("closed", (event) => (event as CloseEvent).code === NORMAL_CLOSURE || listener(false)),
      ];
      return () => {
        for (const endSubscription of ends) endSubscription();
      };
    },
    onReconnected(listener) {
      reconnected.add(listener);
      return () => void reconnected.delete(listener);
    },
    onForbidden(listener) {
      forbidden.add(listener);
      return () => void forbidden.delete(listener);
    },
    async isCurrent(path, updatedAt) {
      const response = await fetchSignedIn(serviceAddress(path), { headers: { "if-none-match": `"${updatedAt}"` } });
      return response.status === 304;
    },
    close: () => void client.dispose(),
  };
}
