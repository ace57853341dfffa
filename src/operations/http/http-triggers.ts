/** Handles requests to HTTP triggers: finds the trigger of the URL, verifies the sender, runs the action, and builds the response. */
import { createHash } from "node:crypto";
import type { Db } from "../../data/database.js";
import { createTokenBucket } from "../../engine/token-bucket.js";
import { ActionError, createRateLimitError } from "../../errors.js";
import { HTTP_TRIGGER_ADDRESS_RATE_LIMIT_FACTOR, RATE_WINDOW_MS } from "../../limits.js";
import { type Caller, mayPerformOnApp } from "../../rules/access.js";
import { getAddressBlock } from "../../rules/address-block.js";
import {
  createResponseFromJson,
  createResponseFromOptions,
  type HttpTriggerResponse,
} from "../../rules/http/answer.js";
import { groupValuesByName, parseBody, selectHeadersForAction } from "../../rules/http/body.js";
import { extractPathParameters } from "../../rules/http/path.js";
import { readWebhookEventId } from "../../rules/http/signatures.js";
import { createRouteKey } from "../../rules/http/where.js";
import type { AccessCheckInput, AccessChecks } from "../access/access-checks.js";
import type { ExecutionLogs, RunOutcome } from "../records/execution-logs.js";
import type { ReceivedDataLimiter } from "../records/received-data-limiter.js";
import { deleteEventKey, type NewOnDemandRun } from "../runs/run-inserts.js";
import { readRunOutcome } from "../runs/run-texts.js";
import type { EnqueuedOnDemandRun, Runs } from "../runs/runs.js";
import type { TriggerEndpoints } from "./endpoints.js";
import type { RejectedRequestCounter } from "./rejected-request-counter.js";
import { findMatchingRoutes, selectRoute, type TriggerRoute } from "./routes.js";
import {
  TriggerAuthenticationError,
  type TriggerAuthenticator,
  type VerifiableRequest,
} from "./trigger-authenticator.js";

/** Address of a request to an HTTP trigger: the app, draft or live version, and the path. */
export interface HttpTriggerAddress {
  appId: number;
  isDraft: boolean;
  /** Segments of the URL path: `rawSegments` as the sender sent them, `decodedSegments` without percent-encoding. */
  rawSegments: readonly string[];
  decodedSegments: readonly string[];
}

export interface HttpTriggerRequest extends VerifiableRequest {
  method: string;
  body: Buffer<ArrayBuffer>;
  headers: NodeJS.Dict<string | string[]>;
  /** Query string of the URL, without the question mark. */
  query: string;
  requestId: string;
  disconnectSignal: () => AbortSignal;
}

export interface MatchedTriggers {
  address: HttpTriggerAddress;
  routes: readonly TriggerRoute[];
}

/** Response of an HTTP trigger that ran an action. `isReplayed` is true if an earlier request with the same event ID started the run. */
export interface TriggerRunResponse extends HttpTriggerResponse {
  runId: number;
  isReplayed: boolean;
}

const isSuccess = ({ status }: HttpTriggerResponse): boolean => status >= 200 && status < 300;

const FAILED_RUN_RESPONSE: HttpTriggerResponse = {
  status: 500,
  headers: { "content-type": "application/json; charset=utf-8" },
  body: JSON.stringify({ status: "EXECUTION_FAILED", error: "the action failed" }),
};

function toTriggerResponse(outcome: RunOutcome): HttpTriggerResponse {
  if (!outcome.ok) return FAILED_RUN_RESPONSE;
  if (!outcome.isResponse) return createResponseFromJson(outcome.data);
  return createResponseFromOptions(JSON.parse(String(outcome.data ?? "null"))) ?? FAILED_RUN_RESPONSE;
}

const createAcceptedResponse = (runId: number): HttpTriggerResponse => ({
  status: 202,
  headers: { "content-type": "application/json; charset=utf-8" },
  body: JSON.stringify({ runId }),
});

/** The sender gets NOT_FOUND for these errors, as for a missing action, so that the response reveals nothing about the action. */
const NOT_RUNNABLE_STATUSES = [
  "ACTION_NOT_FOUND",
  "APP_NOT_PUBLISHED",
  "ACTION_NOT_V3",
  "ACTION_INACTIVE",
  "TRIGGER_NOT_ALLOWED",
];

const isNotRunnable = (error: unknown): boolean =>
  error instanceof ActionError && NOT_RUNNABLE_STATUSES.includes(error.status);

/** True if the sender authenticates with the `Authorization` header. Then the action's payload does not contain this header. */
const usesAuthorizationHeader = ({ where: { auth } }: TriggerRoute, isDraft: boolean): boolean =>
  isDraft || auth.type === "basic" || auth.type === "bearer";

/** Returns the payload of the action's run as JSON text. @param body parsed request body */
function buildPayload(
  route: TriggerRoute,
  address: HttpTriggerAddress,
  request: HttpTriggerRequest,
  body: unknown,
): string {
  const { isDraft, rawSegments: raw, decodedSegments: decoded } = address;
  const hasSecret = !isDraft && route.where.auth.type === "secret";
  const contentType = request.header("content-type") ?? null;
  const headers = selectHeadersForAction(request.headers, {
    hidesAuthorization: usesAuthorizationHeader(route, isDraft),
    secrets: hasSecret ? [raw.at(-1)!, decoded.at(-1)!] : [],
  });
  const requestData = {
    method: request.method,
    path: (hasSecret ? raw.slice(0, -1) : raw).join("/"),
    params: extractPathParameters(route.where.path, decoded),
    query: groupValuesByName(new URLSearchParams(request.query)),
    headers,
    body,
    rawBody: request.body.toString("base64"),
    contentType,
    ip: request.address ?? null,
    requestId: request.requestId,
  };
  return JSON.stringify({ trigger: "http", request: requestData });
}

/** Returns the hash of the request's event ID; null if there is none. A request with the same hash repeats the event. */
function hashEventId({ where }: TriggerRoute, request: HttpTriggerRequest, body: unknown): Buffer | null {
  const id = readWebhookEventId(request, where, body);
  return id === null
    ? null
    : createHash("sha256")
        .update(`${createRouteKey(where)}\n${id}`)
        .digest();
}

interface HttpTriggersOptions {
  db: Db;
  accessChecks: AccessChecks;
  endpoints: TriggerEndpoints;
  authenticator: TriggerAuthenticator;
  rejectedRequestCounter: RejectedRequestCounter;
  runs: Runs;
  logs: ExecutionLogs;
  receivedDataLimiter: ReceivedDataLimiter;
  /** Maximum number of accepted requests per app and RATE_WINDOW_MS; 0 means unlimited. */
  maxRequestsPerWindow: number;
}

export class HttpTriggers {
  private readonly addresses = createTokenBucket({
    limit: Math.max(1, this.options.maxRequestsPerWindow) * HTTP_TRIGGER_ADDRESS_RATE_LIMIT_FACTOR,
    windowMs: RATE_WINDOW_MS,
  });

  constructor(private readonly options: HttpTriggersOptions) {}

  /** Returns the response of an event's first run; null if the run's log entry was deleted; undefined while the run is in progress. */
  private async readStoredResponse(runId: number): Promise<HttpTriggerResponse | null | undefined> {
    const { db, logs } = this.options;
    const [run] = (await db.query("SELECT finished_at IS NOT NULL AS ended FROM run WHERE id = $1", [runId])) as {
      ended: boolean;
    }[];
    if (run && !run.ended) return undefined;
    const entry = await logs.readEntryOfRun(runId);
    return entry ? toTriggerResponse(readRunOutcome(entry)) : null;
  }

  /** Returns the response of the event's run; null if this run failed or its log entry was deleted, so that another run must start. */
  private async repeatResponse(
    run: EnqueuedOnDemandRun,
    eventKey: Buffer,
    isAwaited: boolean,
  ): Promise<TriggerRunResponse | null> {
    const storedResponse = await this.readStoredResponse(run.id);
    if (storedResponse === null || (storedResponse && !isSuccess(storedResponse))) {
      await deleteEventKey(this.options.db, eventKey, run.id);
      return null;
    }
    if (!isAwaited) return { ...createAcceptedResponse(run.id), runId: run.id, isReplayed: true };
    const answer = storedResponse ?? toTriggerResponse(await run.waitForOutcome());
    return { ...answer, runId: run.id, isReplayed: isSuccess(answer) };
  }

  private async runAndRespond(
    requested: NewOnDemandRun,
    isAwaited: boolean,
    disconnectSignal: () => AbortSignal,
  ): Promise<TriggerRunResponse> {
    for (;;) {
      const run = await this.options.runs.enqueue(requested, isAwaited, disconnectSignal);
      if (run.isRepeated) {
        const repeatedResponse = await this.repeatResponse(run, requested.eventKey!, isAwaited);
        if (repeatedResponse) return repeatedResponse;
        continue;
      }
      if (!isAwaited) return { ...createAcceptedResponse(run.id), runId: run.id, isReplayed: false };
      return { ...toTriggerResponse(await run.waitForOutcome()), runId: run.id, isReplayed: false };
    }
  }

  /** Counts a request in the limit of its network address, even if the request fails later. @throws RATE_LIMIT_EXCEEDED */
  countRequest(address: string | undefined, appId: number): void {
    const wait =
      this.options.maxRequestsPerWindow === 0
        ? 0
        : this.addresses.takeTokens(`${appId} ${getAddressBlock(address ?? "")}`);
    if (wait > 0)
      throw createRateLimitError("too many requests to the HTTP triggers of this app from this network address", wait);
  }

  /** Finds the HTTP triggers of a URL for all HTTP methods. */
  async find(address: HttpTriggerAddress): Promise<MatchedTriggers> {
    const { db, endpoints } = this.options;
    const routes = await findMatchingRoutes(db, address, (route, segment) =>
      endpoints.isSecretSegment(route, address.appId, segment),
    );
    return { address, routes };
  }

  /** Checks that the caller of a draft's URL may edit the app's actions, and returns the caller. @throws UNAUTHORIZED, FORBIDDEN */
  checkAuthor(caller: Caller | null, appId: number): Caller {
    if (!caller) throw new ActionError("UNAUTHORIZED");
    if (mayPerformOnApp(caller, "updateAction", appId)) return caller;
    throw new ActionError("FORBIDDEN");
  }

  /**
   * Runs the action of the trigger for the request's method.
   * @param author editor who calls a draft; null for a live version, whose trigger verifies the sender
   * @throws TriggerAuthenticationError, RATE_LIMIT_EXCEEDED, OVERLOADED, RUN_SKIPPED, NOT_FOUND if the action cannot run any more
   */
  async run(
    { address, routes }: MatchedTriggers,
    author: Caller | null,
    request: HttpTriggerRequest,
    visitor: AccessCheckInput,
  ): Promise<TriggerRunResponse> {
    const { accessChecks, authenticator, rejectedRequestCounter, receivedDataLimiter } = this.options;
    const { appId, isDraft } = address;
    const route = selectRoute(routes, request.method)!;
    const { where, actionId } = route;
    const caller =
      author ??
      (await authenticator.check(route, request).catch((error: unknown) => {
        if (error instanceof TriggerAuthenticationError)
          rejectedRequestCounter.count(route.masterId, error, request.address);
        throw error;
      }));
    await accessChecks.countTriggerRequest(visitor, appId);
    const body = await parseBody(request.body, request.header("content-type") ?? null);
    const payload = buildPayload(route, address, request, body);
    if (where.auth.type === "none" && !isDraft) {
      const sender = { kind: "live" as const, credentialId: 0, ...(request.address && { address: request.address }) };
      receivedDataLimiter.countPayload(sender, appId, Buffer.byteLength(payload));
    }
    const requested: NewOnDemandRun = {
      appId,
      ref: { id: actionId },
      trigger: "http",
      needsPublishedApp: !isDraft,
      // Access rules apply only to runtime tokens (pages), which the sender of this request does not have.
      access: { metRules: null, user: null, meetsRule: async () => true },
      copy: isDraft ? "master" : "production",
      payload,
      personId: caller?.personId ?? null,
      credentialId: caller?.credentialId ?? null,
      idempotencyKey: null,
      // A draft ignores event IDs, so that editors can test repeatedly with the same request.
      eventKey: isDraft ? null : hashEventId(route, request, body),
    };
    try {
      return await this.runAndRespond(requested, where.respond !== "immediately", request.disconnectSignal);
    } catch (error) {
      throw isNotRunnable(error) ? new ActionError("NOT_FOUND") : error;
    }
  }
}
