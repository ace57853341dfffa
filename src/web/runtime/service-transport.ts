/**
 * In a server run, sends the client library's requests to the service, without the browser's network. The run provides a global function
 * for this. The library removes this function from the global scope before the author's code runs.
 */
import type { OutgoingTransport } from "./requests.js";
import { globalScope } from "./scope.js";

/** Parts of a response that the client library reads. Responses of `fetch` and of {@link SendToService} have these parts. */
export interface ServiceReply extends Pick<Response, "ok" | "status"> {
  headers: Pick<Headers, "get">;
  text(): Promise<string>;
  /** Returns text that has arrived since the last call, or null at the end. If this function is missing, `body` is a browser stream. */
  next?(): Promise<string | null>;
  /** Cancels the request. Exists only together with `next`. */
  cancel?(): void;
  body?: Response["body"];
}

export interface ServiceCall {
  method: string;
  url: URL;
  headers: Record<string, string>;
  body: string | null;
}

/** Function that sends a request to the service. Returns null for a request that must use `fetch`. Rejects in the same cases as `fetch`. */
export type SendToService = (call: ServiceCall) => Promise<ServiceReply> | null;

interface TransportResponse {
  status: number;
  headers: Record<string, string>;
  text(): Promise<string>;
  next(): Promise<string | null>;
  cancel(): void;
}

interface ServiceTransport extends OutgoingTransport {
  base: string;
  call(
    method: string,
    url: string,
    headers: Record<string, string>,
    body: string | null,
  ): Promise<TransportResponse> | null;
}

const TRANSPORT_NAME = "__svcService";

const toServiceReply = ({ status, headers, text, next, cancel }: TransportResponse): ServiceReply => ({
  ok: status >= 200 && status <= 299,
  status,
  headers: { get: (name) => headers[name.toLowerCase()] ?? null },
  text,
  next,
  cancel,
});

/** Returns the run's functions for requests to its service and to other services, and removes them from the global scope. */
export function extractServiceTransport(): { sendToService?: SendToService; outgoingTransport?: OutgoingTransport } {
  const globalHolder = globalScope as unknown as Record<string, ServiceTransport | undefined>;
  const transport = globalHolder[TRANSPORT_NAME];
  Reflect.deleteProperty(globalHolder, TRANSPORT_NAME);
  if (transport === undefined) return {};
  const { base, call, request, settings } = transport;
  const sendToService: SendToService = ({ method, url, headers, body }) => {
    if (!url.href.startsWith(base)) return null;
    return call(method, url.href, headers, body)?.then(toServiceReply) ?? null;
  };
  return { sendToService, outgoingTransport: { request, settings } };
}
