/**
 * Transport of a server run's library to its service, without the browser's network. Removes the transport from the global scope before the
 * author's code runs.
 */
import type { OutgoingWay } from "./requests.js";
import { scope } from "./scope.js";

/** The parts of a response that the library reads. Both transports return them. */
export interface Reply extends Pick<Response, "ok" | "status"> {
  headers: Pick<Headers, "get">;
  text(): Promise<string>;
  /** Returns text that has arrived since the last call, or null at the end. Without this function, `body` is a stream of the browser. */
  next?(): Promise<string | null>;
  body?: Response["body"];
}

export interface ServiceCall {
  method: string;
  url: URL;
  headers: Record<string, string>;
  body: string | null;
}

/** Sends a request. Returns null for requests that must use `fetch`. Rejects in the same cases as `fetch`. */
export type SendToService = (call: ServiceCall) => Promise<Reply> | null;

interface Answer {
  status: number;
  headers: Record<string, string>;
  text(): Promise<string>;
  next(): Promise<string | null>;
}

interface ServiceWay extends OutgoingWay {
  base: string;
  call(method: string, url: string, headers: Record<string, string>, body: string | null): Promise<Answer> | null;
}

const NAME = "__svcService";

const replyOf = ({ status, headers, text, next }: Answer): Reply => ({
  ok: status >= 200 && status <= 299,
  status,
  headers: { get: (name) => headers[name.toLowerCase()] ?? null },
  text,
  next,
});

/** Reads and removes the transports of the run: to its own service, and to other services. */
export function takeServiceWay(): { send?: SendToService; outgoing?: OutgoingWay } {
  const holder = scope as unknown as Record<string, ServiceWay | undefined>;
  const way = holder[NAME];
  Reflect.deleteProperty(holder, NAME);
  if (way === undefined) return {};
  const { base, call, request, settings } = way;
  const send: SendToService = ({ method, url, headers, body }) => {
    if (!url.href.startsWith(base)) return null;
    return call(method, url.href, headers, body)?.then(replyOf) ?? null;
  };
  return { send, outgoing: { request, settings } };
}
