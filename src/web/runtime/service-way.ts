/** The way of a server run's library to its service, past the browser's network: taken off the global scope before any author's code. */
import type { OutgoingWay } from "./requests.js";
import { scope } from "./scope.js";

/** What the library reads of an answer, whichever way it came. */
export interface Reply extends Pick<Response, "ok" | "status"> {
  headers: Pick<Headers, "get">;
  text(): Promise<string>;
  /** Text that has arrived since the last call, null at the end. Without it the body is a stream of the browser. */
  next?(): Promise<string | null>;
  body?: Response["body"];
}

export interface ServiceCall {
  method: string;
  url: URL;
  headers: Record<string, string>;
  body: string | null;
}

/** Answers null for what has to go by `fetch`; rejects as `fetch` does. */
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

/** Takes the ways that a run has: to its own service, and to others. */
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
