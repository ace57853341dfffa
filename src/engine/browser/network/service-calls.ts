/**
 * Performs the requests that the client library `Svc` of a run sends through Node instead of the browser's network (docs/internals/adr.md, 6).
 * Checks every field of a request, because the code of the run may have changed the library.
 */
import { CONCURRENT_OUTGOING_REQUESTS_PER_RUN } from "../../../limits.js";
import type { PageRunRequest, SendOutgoingRequest, ServiceClient, ServiceRequest } from "../run.js";
import type { AdmittedRunRequest, PageNetwork } from "./page-network.js";

/** Maximum for a run: as many as the connections that a browser opens to one host. */
export const CONCURRENT_SERVICE_REQUESTS_MAX = 6;
/** The client library sends longer bodies through the browser's network instead. */
export const SERVICE_REQUEST_BODY_MAX_CHARACTERS = 128 * 1024;
export const SERVICE_CALL_MAX_CHARACTERS = 256 * 1024;

const OUTGOING_MAX_CHARACTERS = 2 * 1024 * 1024;
const OUTGOING_PREFIX = "outgoing ";
const CANCEL_MESSAGE = "cancel";
const PART_CHARACTERS = 256 * 1024;

/** The first part has a `head`: status and headers as JSON. `text` is null if the request or the rest of the response failed. */
export type SendResponsePart = (
  id: number,
  head: string | null,
  text: string | null,
  last: boolean,
) => Promise<unknown>;

/** One error for all runs, because creating an error takes longer than all other steps at the end of a run. */
const RUN_ENDED_ERROR = new DOMException("The run has ended", "AbortError");

const CALL_ID = /^(\d{1,15}):/;
const isString = (value: unknown): value is string => typeof value === "string";

/** Returns null if the text is no valid request to the service at the URL `base`. */
function readRequest(json: string, base: string): ServiceRequest | null {
  if (json.length > SERVICE_CALL_MAX_CHARACTERS) return null;
  let message: unknown;
  try {
    message = JSON.parse(json);
  } catch {
    return null;
  }
  const [method, address, headers, body] = Array.isArray(message) ? (message as unknown[]) : [];
  if (!isString(method) || !isString(address) || !(body === null || isString(body))) return null;
  if (typeof headers !== "object" || headers === null || !Object.values(headers).every(isString)) return null;
  const url = URL.parse(address)?.href;
  return url?.startsWith(base) ? { method, url, headers: headers as Record<string, string>, body } : null;
}

/** Returns `at`, or `at - 1` if `at` is between the two halves of a surrogate pair. */
function findPartEnd(text: string, at: number): number {
  const code = text.charCodeAt(at - 1);
  return code >= 0xd800 && code <= 0xdbff ? at - 1 : at;
}

export class ServiceCalls {
  private service: ServiceClient | undefined;
  private sendOutgoing: SendOutgoingRequest | undefined;
  private run = new AbortController();
  private activeRequests = new Map<number, AbortController>();
  private activeOutgoingCount = 0;

  constructor(
    private readonly admitRequest: PageNetwork["admitRequest"],
    private readonly sendResponsePart: SendResponsePart,
  ) {}

  /** Without `outgoing`, requests to other services are rejected. Without `service`, requests to this service get no response. */
  beginRun({ service, outgoing }: Pick<PageRunRequest, "service" | "outgoing">): void {
    this.service = service;
    this.sendOutgoing = outgoing;
    this.activeOutgoingCount = 0;
    this.run = new AbortController();
    this.activeRequests = new Map();
  }

  /** Handles `<id>:<content>`. Content: JSON of a request to the service, `outgoing ` and JSON options, or `cancel`. */
  async receiveMessage(payload: string): Promise<void> {
    const prefix = CALL_ID.exec(payload);
    if (prefix === null) return;
    const id = Number(prefix[1]);
    const content = payload.slice(prefix[0].length);
    if (content.startsWith(OUTGOING_PREFIX)) return this.performOutgoing(id, content.slice(OUTGOING_PREFIX.length));
    const { service } = this;
    if (service === undefined) return;
    if (content === CANCEL_MESSAGE) return this.cancelRequest(id);
    const request = readRequest(content, service.base);
    if (request === null || this.activeRequests.has(id) || this.activeRequests.size >= CONCURRENT_SERVICE_REQUESTS_MAX)
      return this.rejectRequest(id);
    await this.performServiceRequest(id, request, service);
  }

  endRun(): void {
    this.service = undefined;
    this.sendOutgoing = undefined;
    this.run.abort(RUN_ENDED_ERROR);
    for (const controller of this.activeRequests.values()) controller.abort(RUN_ENDED_ERROR);
  }

  private async cancelRequest(id: number): Promise<void> {
    const controller = this.activeRequests.get(id);
    if (controller === undefined) return;
    this.activeRequests.delete(id);
    controller.abort(RUN_ENDED_ERROR);
    await this.rejectRequest(id);
  }

  /** Ignores an error, which means that the page has closed. */
  private async rejectRequest(id: number): Promise<void> {
    await this.sendResponsePart(id, null, null, true).catch(() => {});
  }

  private async performServiceRequest(id: number, request: ServiceRequest, service: ServiceClient): Promise<void> {
    const { activeRequests: active } = this;
    const controller = new AbortController();
    const { signal } = controller;
    active.set(id, controller);
    let admitted: AdmittedRunRequest | null = null;
    let status: number | null = null;
    let head: string | null = null;
    /** Must be called before the page gets the last part of the response, because the run may end when the page has this part. */
    const endCall = (failure?: string) => {
      admitted?.reportEnd(status, failure);
      admitted = null;
    };
    /** Frees the request's slot first, because the page may send its next request as soon as it gets the last part. */
    const sendLastPart = (text: string | null) => {
      if (!signal.aborted) active.delete(id);
      return this.sendResponsePart(id, head, text, true);
    };
    try {
      admitted = await this.admitRequest(request);
      signal.throwIfAborted();
      if (admitted === null) {
        await sendLastPart(null);
        return;
      }
      const response = await service.send({ ...request, headers: { ...request.headers, ...admitted.headers } }, signal);
      status = response.status;
      head = JSON.stringify([status, response.headers]);
      let part = "";
      // Waits until the page has received the part, so that the next part is read only afterwards (backpressure).
      const sendPart = async () => {
        if (part === "") return;
        await this.sendResponsePart(id, head, part, false);
        head = null;
        part = "";
      };
      for await (const next of response.text) {
        await sendPart();
        part = next;
        if (response.isLive) await sendPart();
      }
      endCall();
      await sendLastPart(part);
    } catch (error) {
      if (signal.aborted) return;
      endCall((error as Error).message);
      // The command fails only if the page has closed.
      await sendLastPart(null).catch(() => {});
    } finally {
      endCall();
    }
  }

  /** Sends a request to another service, and passes its response to the page in parts. */
  private async performOutgoing(id: number, options: string): Promise<void> {
    const { sendOutgoing, run } = this;
    // The client library in the run queues further requests, so only manipulated code sends too many.
    const exceedsLimit =
      options.length > OUTGOING_MAX_CHARACTERS || this.activeOutgoingCount >= CONCURRENT_OUTGOING_REQUESTS_PER_RUN;
    if (sendOutgoing === undefined || exceedsLimit) return this.rejectRequest(id);
    this.activeOutgoingCount += 1;
    try {
      const { head, text } = await sendOutgoing(options, run.signal);
      let from = 0;
      while (text.length - from > PART_CHARACTERS) {
        const to = findPartEnd(text, from + PART_CHARACTERS);
        await this.sendResponsePart(id, from === 0 ? head : null, text.slice(from, to), false);
        from = to;
      }
      if (!run.signal.aborted) this.activeOutgoingCount -= 1;
      await this.sendResponsePart(id, from === 0 ? head : null, text.slice(from), true);
    } catch {
      // The reply fails only if the run has ended or its page has closed. Then no code waits for it.
    }
  }
}
