/**
 * API client of Studio: GraphQL over HTTP, and subscriptions over one WebSocket. The browser adds the session cookie to
 * each request and to the WebSocket.
 */
import { type Client, createClient } from "graphql-ws/client";
import type { Document } from "../../document.js";
import { resolveServiceUrl } from "../../service-address.js";
import {
  fetchWithSignInRetry,
  getSessionRenewalCount,
  shouldWaitForSessionRenewal,
  waitForSessionRenewal,
} from "../accounts/session-renewal.js";
import { ApiError, asApiError, createOfflineError, type ErrorDetails, throwOffline } from "./api-error.js";

export { ApiError, asApiError };

const GRAPHQL_URL = resolveServiceUrl("/graphql");

interface GraphqlError {
  message: string;
  extensions?: ErrorDetails & { status?: string };
}

interface GraphqlResponse<Data> {
  data?: Data | null;
  errors?: readonly GraphqlError[];
  /** Status of an error from before the GraphQL operation ran, such as an expired session. `errors` is then missing. */
  status?: string;
  error?: string;
}

function toApiError({ message, extensions: { status = "INTERNAL_ERROR", ...details } = {} }: GraphqlError): ApiError {
  return new ApiError(status, message, details);
}

/** Sends a request to the GraphQL endpoint. @throws ApiError with the status OFFLINE if there is no response */
async function sendRequest<Data>(init: RequestInit): Promise<GraphqlResponse<Data>> {
  const response = await fetch(GRAPHQL_URL, init).catch(throwOffline);
  // A response that is not JSON is from a proxy whose connection to the service failed.
  return response.json().catch(throwOffline);
}

const getErrorStatus = ({ errors, status }: GraphqlResponse<unknown>): string | undefined =>
  errors?.[0]?.extensions?.status ?? status;

function getData<Data>({ data, errors, status, error }: GraphqlResponse<Data>): Data {
  if (errors?.[0]) throw toApiError(errors[0]);
  if (status && error) throw new ApiError(status, error);
  if (!data) throw new ApiError("INTERNAL_ERROR", "the service sent a response without data");
  return data;
}

/** True if the service rejected a change because the resource has changed since the page read it, usually by another person. */
export const isChangedByOthersError = (error: unknown): boolean => asApiError(error).status === "RESOURCE_CHANGED";

/**
 * Returns the message that a person sees for a rejected change. If another person has changed or deleted the resource, first calls `load`
 * to read the resource again.
 */
export async function handleRejectedChange(error: unknown, load: () => Promise<unknown>): Promise<string> {
  const { status, message } = asApiError(error);
  const isChanged = isChangedByOthersError(error);
  if (isChanged || status.endsWith("NOT_FOUND")) await load();
  if (!isChanged) return message;
  return "Not saved: someone else changed this data. The page now shows the current state.";
}

export interface SubscriptionObserver<Data> {
  next(data: Data): void;
  /** Called if the service sends an error for the subscription, or if a lost connection could not be restored. */
  onFailure?(error: ApiError): void;
  complete?(): void;
}

/** WebSocket close code for the normal end of a connection. Studio sends it when it closes the socket. */
const NORMAL_CLOSE_CODE = 1000;

/** WebSocket close code with which the service closes the socket if the session is not valid, or has ended. */
const FORBIDDEN_CLOSE_CODE = 4403;

const MAX_RECONNECT_DELAY_MS = 30_000;
/** Returns the delay before the next attempt to connect. It grows, and is random, so that clients do not reconnect at the same moment. */
const getReconnectDelayMs = (retries: number): number =>
  Math.min(MAX_RECONNECT_DELAY_MS, 1_000 * 2 ** retries) + 300 + Math.floor(Math.random() * 2_700);

/** Called with true when the WebSocket is connected, and with false when the connection is lost. */
export type ConnectionListener = (connected: boolean) => void;

export interface ApiClient {
  request<Data, Variables>(
    document: Document<Data, Variables>,
    variables: Variables,
    idempotencyKey?: string,
  ): Promise<Data>;
  /** Reads a file of an app. Uses only the path of the URL, because the URL can contain another host name of the service than the page. */
  readBytes(address: string): Promise<Blob>;
  /** Uploads files. `onProgress` receives the sent fraction, from 0 to 1; aborting `signal` cancels the upload. */
  uploadFiles(
    path: string,
    form: FormData,
    onProgress: (sentFraction: number) => void,
    signal: AbortSignal,
  ): Promise<void>;
  /** Starts a GraphQL subscription. Returns a function that ends the subscription. */
  subscribe<Data, Variables>(
    document: Document<Data, Variables>,
    variables: Variables,
    observer: SubscriptionObserver<Data>,
  ): () => void;
  /** Calls the listener when the connection is made or lost. Returns a function that removes the listener. */
  onConnected(listener: ConnectionListener): () => void;
  /** Calls the listener each time a lost connection is restored. Returns a function that removes the listener. */
  onReconnected(listener: () => void): () => void;
  /** Calls the listener each time the service denies a permission. Returns a function that removes the listener. */
  onForbidden(listener: () => void): () => void;
  /** Resolves to true if the resource at this path has not changed since `updatedAt`. The service then sends no body. */
  isCurrent(path: string, updatedAt: string): Promise<boolean>;
  close(): void;
}

function startSubscription<Data, Variables>(
  client: Client,
  query: Document<Data, Variables>,
  variables: Variables,
  observer: SubscriptionObserver<Data>,
): () => void {
  return client.subscribe<Data>(
    { query, variables: variables as Record<string, unknown> },
    {
      next: (answer) => {
        if (answer.errors?.[0]) observer.onFailure?.(toApiError(answer.errors[0] as GraphqlError));
        else if (answer.data) observer.next(answer.data);
      },
      error: (error) =>
        observer.onFailure?.(Array.isArray(error) ? toApiError(error[0] as GraphqlError) : createOfflineError()),
      complete: () => observer.complete?.(),
    },
  );
}

/** Sends a form with XMLHttpRequest, because fetch does not report the progress of an upload. */
function uploadForm(
  url: URL,
  {
    form,
    onProgress,
    signal,
  }: {
    form: FormData;
    onProgress: (sentFraction: number) => void;
    signal: AbortSignal;
  },
): Promise<void> {
  const renewalCount = getSessionRenewalCount();
  const request = new XMLHttpRequest();
  request.open("POST", url);
  request.upload.onprogress = ({ loaded, total }) => onProgress(total > 0 ? loaded / total : 0);
  signal.addEventListener("abort", () => request.abort());
  return new Promise((resolve, reject) => {
    request.onload = () => {
      if (request.status === 201) return resolve();
      if (request.status === 401 && shouldWaitForSessionRenewal()) {
        return waitForSessionRenewal(renewalCount).then(
          () => uploadForm(url, { form, onProgress, signal }).then(resolve, reject),
          reject,
        );
      }
      const { status, error } = parseErrorResponse(request.responseText);
      reject(new ApiError(status, error));
    };
    request.onerror = () => reject(createOfflineError());
    request.onabort = () => reject(new ApiError("ABORTED", "the upload was cancelled"));
    request.send(form);
  });
}

function parseErrorResponse(text: string): { status: string; error: string } {
  try {
    return JSON.parse(text);
  } catch {
    return { status: "INTERNAL_ERROR", error: "the service sent a response that is not JSON" };
  }
}

export function createApiClient(): ApiClient {
  const url = new URL(GRAPHQL_URL);
  url.protocol = url.protocol.replace("http", "ws");
  /** True after the service has closed the WebSocket because the session has ended. The client reconnects after the next sign-in. */
  let isForbidden = false;
  let renewalCount = getSessionRenewalCount();
  const client = createClient({
    url: url.href,
    retryAttempts: Number.POSITIVE_INFINITY,
    shouldRetry: (event) =>
      !(event instanceof CloseEvent && event.code === FORBIDDEN_CLOSE_CODE) || shouldWaitForSessionRenewal(),
    async retryWait(retries) {
      if (isForbidden) await waitForSessionRenewal(renewalCount);
      renewalCount = getSessionRenewalCount();
      isForbidden = false;
      await new Promise((resolve) => setTimeout(resolve, getReconnectDelayMs(retries)));
    },
  });
  const reconnectListeners = new Set<() => void>();
  const forbiddenListeners = new Set<() => void>();
  const checkForbidden = (status: string | undefined) => {
    if (status === "FORBIDDEN") for (const listener of forbiddenListeners) listener();
  };
  let isLost = false;
  // Stores whether the connection is lost, because a page that opens later has not received the event "closed".
  client.on("closed", (event) => {
    isForbidden = (event as CloseEvent).code === FORBIDDEN_CLOSE_CODE;
    isLost ||= (event as CloseEvent).code !== NORMAL_CLOSE_CODE;
  });
  client.on("connected", () => {
    if (!isLost) return;
    isLost = false;
    for (const listener of reconnectListeners) listener();
  });
  return {
    async request<Data, Variables>(query: Document<Data, Variables>, variables: Variables, idempotencyKey?: string) {
      const headers = {
        "content-type": "application/json",
        ...(idempotencyKey !== undefined && { "idempotency-key": idempotencyKey }),
      };
      const init = { method: "POST", headers, body: JSON.stringify({ query, variables }) };
      for (;;) {
        const renewalCountBefore = getSessionRenewalCount();
        const answer = await sendRequest<Data>(init);
        checkForbidden(getErrorStatus(answer));
        // Checks the error status in the body: a GraphQL response has the HTTP status 200 even if the session has expired.
        if (getErrorStatus(answer) !== "UNAUTHORIZED" || !shouldWaitForSessionRenewal()) return getData(answer);
        await waitForSessionRenewal(renewalCountBefore);
      }
    },
    async readBytes(address) {
      const response = await fetchWithSignInRetry(resolveServiceUrl(address.slice(address.indexOf("/v1/apps/"))));
      if (!response.ok) {
        const message = `the file could not be loaded from the service (got HTTP status ${response.status})`;
        throw new ApiError("FILE_NOT_FOUND", message);
      }
      return response.blob().catch(throwOffline);
    },
    uploadFiles: (path, form, onProgress, signal) => uploadForm(resolveServiceUrl(path), { form, onProgress, signal }),
    subscribe: (document, variables, observer) =>
      startSubscription(client, document, variables, {
        ...observer,
        onFailure: (error) => {
          checkForbidden(error.status);
          observer.onFailure?.(error);
        },
      }),
    onConnected(listener) {
      const endFunctions = [
        client.on("connected", () => listener(true)),
        client.on("closed", (event) => (event as CloseEvent).code === NORMAL_CLOSE_CODE || listener(false)),
      ];
      return () => {
        for (const endSubscription of endFunctions) endSubscription();
      };
    },
    onReconnected(listener) {
      reconnectListeners.add(listener);
      return () => void reconnectListeners.delete(listener);
    },
    onForbidden(listener) {
      forbiddenListeners.add(listener);
      return () => void forbiddenListeners.delete(listener);
    },
    async isCurrent(path, updatedAt) {
      const response = await fetchWithSignInRetry(resolveServiceUrl(path), {
        headers: { "if-none-match": `"${updatedAt}"` },
      });
      return response.status === 304;
    },
    close: () => void client.dispose(),
  };
}
