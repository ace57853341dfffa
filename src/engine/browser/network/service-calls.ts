/**
 * Sends requests of a run's client library `Svc` through Node, instead of the browser's network (docs/internals/adr.md, 6).
 * Checks every field of a request, because the code of the run may have changed the library.
 */
import { CONCURRENT_OUTGOING_REQUESTS_PER_RUN } from "../../../limits.js";
import type { PageRunRequest, SendOutgoingRequest, ServiceClient, ServiceRequest } from "../run.js";
import type { PageNetwork } from "./page-network.js";

/** Maximum for one run. A browser opens the same number of connections to one host. */
export const CONCURRENT_SERVICE_REQUESTS_MAX = 6;
/** The client library sends longer bodies through the browser's network instead. */
export const SERVICE_REQUEST_BODY_MAX_CHARACTERS = 128 * 1024;
export const SERVICE_CALL_MAX_CHARACTERS = 256 * 1024;

const OUTGOING_OPTIONS_MAX_CHARACTERS = 2 * 1024 * 1024;
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

/** Head of a response (status and headers as JSON), and then its text in parts. */
type ResponseParts = AsyncGenerator<string, void>;
type ActiveRequests = Map<number, AbortController>;

/** One error for all runs, because creating an error takes longer than all other steps at the end of a run. */
const RUN_ENDED_ERROR = new DOMException("The run has ended", "AbortError");

const CALL_ID_PATTERN = /^(\d{1,15}):/;
const isString = (value: unknown): value is string => typeof value === "string";

/** @throws Error if the text is no valid request to the service at the URL `base` */
function readRequest(json: string, base: string): ServiceRequest {
  const message: unknown = json.length > SERVICE_CALL_MAX_CHARACTERS ? null : JSON.parse(json);
  const [method, address, headers, body] = Array.isArray(message) ? (message as unknown[]) : [];
  const hasValidHeaders = typeof headers === "object" && headers !== null && Object.values(headers).every(isString);
  const url = isString(address) ? URL.parse(address)?.href : undefined;
  if (!isString(method) || !url?.startsWith(base) || !hasValidHeaders || !(body === null || isString(body)))
    throw new Error("the text is no request to the service");
  return { method, url, headers: headers as Record<string, string>, body };
}

function* splitText(text: string): Generator<string> {
  for (let from = 0; from < text.length; ) {
    const end = from + PART_CHARACTERS;
    const last = text.charCodeAt(end - 1);
    // Does not split the two halves of a surrogate pair.
    const to = last >= 0xd800 && last <= 0xdbff ? end - 1 : end;
    yield text.slice(from, to);
    from = to;
  }
}

async function* sendOutgoingRequest(send: SendOutgoingRequest, options: string, signal: AbortSignal): ResponseParts {
  if (options.length > OUTGOING_OPTIONS_MAX_CHARACTERS) throw new Error("the options are too long");
  const { head, text } = await send(options, signal);
  yield head;
  yield* splitText(text);
}

export class ServiceCalls {
  private run: Pick<PageRunRequest, "service" | "outgoing"> = {};
  private serviceRequests: ActiveRequests = new Map();
  private outgoingRequests: ActiveRequests = new Map();

  constructor(
    private readonly admitRequest: PageNetwork["admitRequest"],
    private readonly sendResponsePart: SendResponsePart,
  ) {}

  /** Without `service` or `outgoing`, requests of this kind get no response. */
  startRun({ service, outgoing }: Pick<PageRunRequest, "service" | "outgoing">): void {
    this.run = { service, outgoing };
    this.serviceRequests = new Map();
    this.outgoingRequests = new Map();
  }

  /** Handles `<id>:<content>`. Content: JSON of a request to the service, `outgoing ` and JSON options, or `cancel`. */
  async receiveMessage(payload: string): Promise<void> {
    const prefix = CALL_ID_PATTERN.exec(payload);
    if (prefix === null) return;
    const id = Number(prefix[1]);
    const content = payload.slice(prefix[0].length);
    const { service, outgoing } = this.run;
    const controller = new AbortController();
    const { signal } = controller;
    if (content.startsWith(OUTGOING_PREFIX)) {
      const parts = outgoing && sendOutgoingRequest(outgoing, content.slice(OUTGOING_PREFIX.length), signal);
      await this.passResponse(id, parts, controller, this.outgoingRequests, CONCURRENT_OUTGOING_REQUESTS_PER_RUN);
    } else if (content === CANCEL_MESSAGE) this.serviceRequests.get(id)?.abort();
    else {
      const parts = service && this.sendToService(service, content, signal);
      await this.passResponse(id, parts, controller, this.serviceRequests, CONCURRENT_SERVICE_REQUESTS_MAX);
    }
  }

  endRun(): void {
    this.run = {};
    for (const active of [this.serviceRequests, this.outgoingRequests])
      for (const controller of active.values()) controller.abort(RUN_ENDED_ERROR);
  }

  /** Reports to the page that the request failed. The call fails only if the page has closed. */
  private async rejectRequest(id: number): Promise<void> {
    await this.sendResponsePart(id, null, null, true).catch(() => {});
  }

  /** Passes a response to the page. Rejects a request above `activeMax`; the client library queues requests, so that this never happens. */
  private async passResponse(
    id: number,
    parts: ResponseParts | undefined,
    controller: AbortController,
    active: ActiveRequests,
    activeMax: number,
  ): Promise<void> {
    if (parts === undefined) return;
    if (active.has(id) || active.size >= activeMax) return this.rejectRequest(id);
    active.set(id, controller);
    const { signal } = controller;
    try {
      let head: string | null = (await parts.next()).value ?? null;
      let text = "";
      for await (const part of parts) {
        signal.throwIfAborted();
        // Waits until the page has received the text, so that the next part is read only afterwards (backpressure).
        if (text !== "") {
          await this.sendResponsePart(id, head, text, false);
          head = null;
        }
        text = part;
      }
      signal.throwIfAborted();
      // Frees the request's slot first, because the page may send its next request as soon as it gets the last part.
      active.delete(id);
      await this.sendResponsePart(id, head, text, true);
    } catch {
      // Sends nothing after the end of the run: the next run could get the error, because its requests have the same IDs.
      if (signal.reason === RUN_ENDED_ERROR) return;
      active.delete(id);
      await this.rejectRequest(id);
    }
  }

  /** Sends a request to the service. Ends before `passResponse` sends the last part, because the run may end when the page gets it. */
  private async *sendToService(service: ServiceClient, json: string, signal: AbortSignal): ResponseParts {
    const request = readRequest(json, service.base);
    const admittedRequest = await this.admitRequest(request);
    if (admittedRequest === null) throw new Error("the request is blocked");
    let status: number | null = null;
    let failure: string | undefined;
    try {
      signal.throwIfAborted();
      const headers = { ...request.headers, ...admittedRequest.headers };
      const response = await service.send({ ...request, headers }, signal);
      status = response.status;
      yield JSON.stringify([status, response.headers]);
      for await (const text of response.text) {
        yield text;
        // `passResponse` sends a part only when it gets the next one. So an empty part makes it send a live part at once.
        if (response.isLive) yield "";
      }
    } catch (error) {
      if (!signal.aborted) failure = (error as Error).message;
      throw error;
    } finally {
      admittedRequest.reportEnd(status, failure);
    }
  }
}
