/**
 * The requests that the library of one page's run makes of the service that performs it: they come by a binding instead of the browser's
 * network, and their answers go back by parts. Trusts nothing in them: the page may have been taken over. Sends none itself.
 */
import { RUN_REQUESTS_AT_ONCE } from "../../../limits.js";
import type { SendOutgoing, ServiceRequest, ServiceWay } from "../run.js";
import type { Admitted, RunRequests } from "./run-requests.js";

/** A browser has as many connections to a host. */
export const AT_ONCE_MAX = 6;
/** Of a request's body, and of the whole request as the page says it; what is longer goes by the network. */
export const BODY_MAX_CHARACTERS = 128 * 1024;
export const CALL_MAX_CHARACTERS = 256 * 1024;

/** Requests to other services at once; the run's library has the others wait. */
export const OUTGOING_AT_ONCE_MAX = RUN_REQUESTS_AT_ONCE;
/** Of such a request's options: a body of 1 MB in base64, and little more. */
const OUTGOING_MAX_CHARACTERS = 2 * 1024 * 1024;
const OUTGOING_MARK = "outgoing ";
const PART_CHARACTERS = 256 * 1024;

/**
 * To the page: a part of an answer, the first with its head, the JSON of its status and of the headers that a page may read; and whether it is
 * the last. No text: there is no answer, or no more of it.
 */
export type Reply = (id: number, head: string | null, text: string | null, last: boolean) => Promise<unknown>;

export interface ServiceCalls {
  begin(ways: { service?: ServiceWay | undefined; outgoing?: SendOutgoing | undefined }): void;
  /**
   * Takes what the page says: an id, a colon, and the JSON of method, address, headers and body; or `outgoing ` and the JSON of the options of a
   * request to another service. Never rejects.
   */
  take(payload: string): Promise<void>;
  /** Ends what is under way; from here on nothing is taken. */
  end(): void;
}

/** One for all runs: making one costs more than all else of an end. */
const ENDED = new DOMException("The run has ended", "AbortError");

const SAID = /^(\d{1,15}):/;
const isText = (value: unknown): value is string => typeof value === "string";

/** null for what no library of ours says. */
function readRequest(json: string, base: string): ServiceRequest | null {
  if (json.length > CALL_MAX_CHARACTERS) return null;
  let said: unknown;
  try {
    said = JSON.parse(json);
  } catch {
    return null;
  }
  const [method, address, headers, body] = Array.isArray(said) ? (said as unknown[]) : [];
  if (!isText(method) || !isText(address) || !(body === null || isText(body))) return null;
  if (typeof headers !== "object" || headers === null || !Object.values(headers).every(isText)) return null;
  const url = URL.parse(address)?.href;
  return url?.startsWith(base) ? { method, url, headers: headers as Record<string, string>, body } : null;
}

/** Does not part the two halves of a character. */
function endOfPart(text: string, at: number): number {
  const code = text.charCodeAt(at - 1);
  return code >= 0xd800 && code <= 0xdbff ? at - 1 : at;
}

export function createServiceCalls(admit: RunRequests["admit"], reply: Reply): ServiceCalls {
  let service: ServiceWay | undefined;
  let sendOutgoing: SendOutgoing | undefined;
  let run = new AbortController();
  let underWay = 0;
  let outgoingUnderWay = 0;

  async function perform(id: number, request: ServiceRequest, way: ServiceWay, { signal }: AbortController) {
    let admitted: Admitted | null = null;
    let status: number | null = null;
    let head: string | null = null;
    /** Told before the page has the last part, by which its run may end. */
    const end = (failure?: string) => {
      admitted?.end(status, failure);
      admitted = null;
    };
    /** Counted before: the page makes its next call of the last part. */
    const last = (text: string | null) => {
      if (!signal.aborted) underWay -= 1;
      return reply(id, head, text, true);
    };
    try {
      admitted = await admit(request);
      signal.throwIfAborted();
      if (admitted === null) {
        await last(null);
        return;
      }
      const answer = await way.send({ ...request, headers: { ...request.headers, ...admitted.headers } }, signal);
      status = answer.status;
      head = JSON.stringify([status, answer.headers]);
      let part = "";
      for await (const next of answer.text) {
        // Waited for: what the page has not taken is not read.
        if (part !== "") {
          await reply(id, head, part, false);
          head = null;
        }
        part = next;
      }
      end();
      await last(part);
    } catch (error) {
      if (signal.aborted) return;
      end((error as Error).message);
      await last(null).catch(() => {});
    } finally {
      end();
    }
  }

  async function performOutgoing(id: number, options: string, send: SendOutgoing, { signal }: AbortController) {
    outgoingUnderWay += 1;
    try {
      const { head, text } = await send(options, signal);
      let from = 0;
      for (; text.length - from > PART_CHARACTERS; ) {
        const to = endOfPart(text, from + PART_CHARACTERS);
        await reply(id, from === 0 ? head : null, text.slice(from, to), false);
        from = to;
      }
      if (!signal.aborted) outgoingUnderWay -= 1;
      await reply(id, from === 0 ? head : null, text.slice(from), true);
    } catch {
      // The run has ended, or its page is gone.
    }
  }

  function takeOutgoing(id: number, options: string): Promise<unknown> {
    const send = sendOutgoing;
    const isTooMuch = options.length > OUTGOING_MAX_CHARACTERS || outgoingUnderWay >= OUTGOING_AT_ONCE_MAX;
    if (send === undefined || isTooMuch) return reply(id, null, null, true).catch(() => {});
    return performOutgoing(id, options, send, run);
  }

  return {
    begin({ service: next, outgoing }) {
      service = next;
      sendOutgoing = outgoing;
      outgoingUnderWay = 0;
      run = new AbortController();
      underWay = 0;
    },

    async take(payload) {
      const way = service;
      const id = SAID.exec(payload);
      if (id === null) return;
      if (payload.startsWith(OUTGOING_MARK, id[0].length)) {
        await takeOutgoing(Number(id[1]), payload.slice(id[0].length + OUTGOING_MARK.length));
        return;
      }
      if (way === undefined) return;
      const request = readRequest(payload.slice(id[0].length), way.base);
      if (request === null || underWay >= AT_ONCE_MAX) {
        await reply(Number(id[1]), null, null, true).catch(() => {});
        return;
      }
      underWay += 1;
      await perform(Number(id[1]), request, way, run);
    },

    end() {
      service = undefined;
      sendOutgoing = undefined;
      run.abort(ENDED);
    },
  };
}
