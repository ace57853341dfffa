/**
 * Handles requests to HTTP triggers: finds the trigger, verifies the sender, runs the action, and builds the response.
 */
import { createHash } from "node:crypto";
import { LRUCache } from "lru-cache";
import type { DataSource } from "typeorm";
import { createTokenBucket } from "../../engine/token-bucket.js";
import { ActionError, rateLimitError } from "../../errors.js";
import { HTTP_ADDRESS_FACTOR, RATE_WINDOW_MS } from "../../limits.js";
import { type Caller, mayPerformOnApp } from "../../rules/access.js";
import { addressBlock } from "../../rules/address-block.js";
import { type HttpTriggerResponse, responseFromJson, responseFromOptions } from "../../rules/http/answer.js";
import { parseBody, selectHeadersForAction, toNamedValues } from "../../rules/http/body.js";
import { readPathParameters } from "../../rules/http/path.js";
import { eventIdOf } from "../../rules/http/signatures.js";
import { routeKey } from "../../rules/http/where.js";
import type { AccessGate, Visitor } from "../access/gate.js";
import type { ExecutionLogs, RunOutcome } from "../records/execution-logs.js";
import type { IntakeLimiter } from "../records/intake.js";
import { RoutesChangedError } from "../runs/matching-routes.js";
import { deleteEventKey, type NamedRun } from "../runs/run-inserts.js";
import { outcomeIn } from "../runs/run-texts.js";
import type { OnDemandRun, Runs } from "../runs/runs.js";
import type { Endpoints } from "./endpoints.js";
import { ProofRefusal, type TriggerProofs, type VerifiableRequest } from "./proofs.js";
import type { RefusalCounter } from "./refusals.js";
import { type FoundRoutes, findRoutes, type Route, routeFor } from "./routes.js";

/** Path and query of a request. */
export interface Address {
  appId: number;
  isDraft: boolean;
  /** Segments of the path: `raw` as sent, `decoded` without percent-encoding. */
  raw: readonly string[];
  decoded: readonly string[];
}

export interface TriggerRequest extends VerifiableRequest {
  method: string;
  body: Buffer<ArrayBuffer>;
  headers: NodeJS.Dict<string | string[]>;
  /** Query without its question mark. */
  query: string;
  requestId: string;
  gone: () => AbortSignal;
  /** Limits that already count this request. A request whose routes have changed is handled twice, but counts once. */
  counted: Set<"quota" | "payload">;
}

/** Triggers of one address. */
export interface MatchedTriggers extends FoundRoutes {
  address: Address;
  /** True if an earlier request has found these triggers. The triggers may have changed since then. */
  isCached: boolean;
}

/** Limits of the cache of triggers: number of addresses, bytes in total, and bytes of one address. */
const CACHED_ADDRESSES_MAX = 2_000;
const CACHED_BYTES_MAX = 8 * 1024 * 1024;
const CACHED_ENTRY_MAX_BYTES = CACHED_BYTES_MAX / 128;
/** Estimated memory of a string without its characters. */
const STRING_BYTES = 32;

const keyOf = ({ appId, raw }: Address): string => `${appId}/${raw.join("/")}`;

/** Returns the estimated memory of cached triggers. A path of eight segments has 384 shapes. */
function cachedSizeOf({ match }: FoundRoutes, key: string): number {
  const { shapes = [], shapesBeforeSecret = [], rowTexts = [] } = match ?? {};
  // The rows are stored as text and as objects.
  const texts = [key, ...shapes, ...shapesBeforeSecret, ...rowTexts, ...rowTexts];
  return texts.reduce((bytes, text) => bytes + STRING_BYTES + 2 * text.length, 0);
}

/**
 * Response to the sender, and the run that produced it. `isReplayed` is true if an earlier request with the same event
 * has already got this response.
 */
export interface TriggerAnswer extends HttpTriggerResponse {
  runId: number;
  isReplayed: boolean;
}

const isSuccess = ({ status }: HttpTriggerResponse): boolean => status >= 200 && status < 300;

const FAILED_ANSWER: HttpTriggerResponse = {
  status: 500,
  headers: { "content-type": "application/json; charset=utf-8" },
  body: JSON.stringify({ status: "EXECUTION_FAILED", error: "the action failed" }),
};

function answerOf(outcome: RunOutcome): HttpTriggerResponse {
  if (!outcome.ok) return FAILED_ANSWER;
  if (!outcome.isResponse) return responseFromJson(outcome.data);
  return responseFromOptions(JSON.parse(String(outcome.data ?? "null"))) ?? FAILED_ANSWER;
}

const acceptedAnswer = (runId: number): HttpTriggerResponse => ({
  status: 202,
  headers: { "content-type": "application/json; charset=utf-8" },
  body: JSON.stringify({ runId }),
});

/**
 * Statuses of actions that cannot run now. The sender gets the response for a missing action, which reveals nothing
 * about the action.
 */
const CLOSED_STATUSES = [
  "ACTION_NOT_FOUND",
  "APP_NOT_PUBLISHED",
  "ACTION_NOT_V3",
  "ACTION_INACTIVE",
  "TRIGGER_NOT_ALLOWED",
];

const isClosed = (error: unknown): boolean => error instanceof ActionError && CLOSED_STATUSES.includes(error.status);

/** True if the sender's proof is in the Authorization header. The action then does not receive this header. */
const usesAuthorization = ({ where: { auth } }: Route, isDraft: boolean): boolean =>
  isDraft || auth.type === "basic" || auth.type === "bearer";

/** Builds the payload of the action. `body` is the parsed body. */
function payloadOf(route: Route, address: Address, request: TriggerRequest, body: unknown): string {
  const { isDraft, raw, decoded } = address;
  const hasSecret = !isDraft && route.where.auth.type === "secret";
  const contentType = request.header("content-type") ?? null;
  const secret = hasSecret ? raw.at(-1)! : null;
  const headers = selectHeadersForAction(request.headers, {
    hidesAuthorization: usesAuthorization(route, isDraft),
    secret,
  });
  const described = {
    method: request.method,
    path: (hasSecret ? raw.slice(0, -1) : raw).join("/"),
    params: readPathParameters(route.where.path, decoded),
    query: toNamedValues(new URLSearchParams(request.query)),
    headers,
    body,
    rawBody: request.body.toString("base64"),
    contentType,
    ip: request.address ?? null,
    requestId: request.requestId,
  };
  return JSON.stringify({ trigger: "http", request: described });
}

/** Returns the hash of the ID of the event in the request; null if the request contains no event ID. */
function eventKeyOf({ where }: Route, request: TriggerRequest, body: unknown): Buffer | null {
  const id = eventIdOf(request, where, body);
  return id === null
    ? null
    : createHash("sha256")
        .update(`${routeKey(where)}\n${id}`)
        .digest();
}

export type HttpTriggers = ReturnType<typeof createHttpTriggers>;

export function createHttpTriggers(options: {
  db: DataSource;
  gate: AccessGate;
  endpoints: Endpoints;
  proofs: TriggerProofs;
  refusals: RefusalCounter;
  runs: Runs;
  logs: ExecutionLogs;
  intake: IntakeLimiter;
  /** Maximum requests per window and app; 0 means unlimited. */
  limit: number;
}) {
  const { db, gate, endpoints, proofs, refusals, runs, logs, intake, limit } = options;
  const cached = new LRUCache<string, FoundRoutes>({
    max: CACHED_ADDRESSES_MAX,
    maxSize: CACHED_BYTES_MAX,
    maxEntrySize: CACHED_ENTRY_MAX_BYTES,
    sizeCalculation: cachedSizeOf,
  });
  const addresses = createTokenBucket({ limit: Math.max(1, limit) * HTTP_ADDRESS_FACTOR, windowMs: RATE_WINDOW_MS });

  /**
   * Returns the response of an event's first run; null if the run's log entry was deleted, undefined while the run is
   * in progress.
   */
  async function earlierAnswer(runId: number): Promise<HttpTriggerResponse | null | undefined> {
    const [run] = (await db.query("SELECT finished_at IS NOT NULL AS ended FROM run WHERE id = $1", [runId])) as {
      ended: boolean;
    }[];
    if (run && !run.ended) return undefined;
    const entry = await logs.entryOfRun(runId);
    return entry ? answerOf(outcomeIn(entry)) : null;
  }

  /**
   * Returns the response for an event that already has a run. Null means that this run failed, so that the event must
   * start another run.
   */
  async function repeatAnswer(run: OnDemandRun, eventKey: Buffer, isAwaited: boolean): Promise<TriggerAnswer | null> {
    const storedAnswer = await earlierAnswer(run.id);
    if (storedAnswer === null || (storedAnswer && !isSuccess(storedAnswer))) {
      await deleteEventKey(db, eventKey, run.id);
      return null;
    }
    if (!isAwaited) return { ...acceptedAnswer(run.id), runId: run.id, isReplayed: true };
    const answer = storedAnswer ?? answerOf(await run.outcome());
    return { ...answer, runId: run.id, isReplayed: isSuccess(answer) };
  }

  async function answer(requested: NamedRun, isAwaited: boolean, gone: () => AbortSignal): Promise<TriggerAnswer> {
    for (;;) {
      const run = await runs.accept(requested, isAwaited, gone);
      if (run.isRepeated) {
        const repeatedAnswer = await repeatAnswer(run, requested.eventKey!, isAwaited);
        if (repeatedAnswer) return repeatedAnswer;
        continue;
      }
      if (!isAwaited) return { ...acceptedAnswer(run.id), runId: run.id, isReplayed: false };
      return { ...answerOf(await run.outcome()), runId: run.id, isReplayed: false };
    }
  }

  return {
    /** Counts a request by its network address before its outcome is known. @throws RATE_LIMIT_EXCEEDED */
    countAddress(address: string | undefined, appId: number): void {
      const wait = limit === 0 ? 0 : addresses.takeTokens(`${appId} ${addressBlock(address ?? "")}`);
      if (wait > 0) throw rateLimitError("too many requests from this address", wait);
    },

    /** Finds the triggers of a URL for all HTTP methods. */
    async find(address: Address): Promise<MatchedTriggers> {
      const found = await findRoutes(db, address, (route, segment) =>
        endpoints.isSecretSegment(route, address.appId, segment),
      );
      const { routes, match } = found;
      // Triggers with CORS are not cached, because every response must have their current CORS headers.
      const isCacheable = match !== null && routes.length > 0 && routes.every(({ where }) => !where.cors);
      const key = keyOf(address);
      if (isCacheable) cached.set(key, found);
      else if (match !== null) cached.delete(key);
      return { ...found, address, isCached: false };
    },

    /**
     * Returns the triggers that an earlier request to the URL has found, if one of them answers the method. Only `run`
     * checks whether they have changed, so a response without a run must not use them.
     */
    findCached(address: Address, method: string): MatchedTriggers | null {
      const found = address.isDraft ? undefined : cached.get(keyOf(address));
      return found && routeFor(found.routes, method) ? { ...found, address, isCached: true } : null;
    },

    /** @throws UNAUTHORIZED, FORBIDDEN unless the caller edits the app */
    checkAuthor(caller: Caller | null, appId: number): Caller {
      if (!caller) throw new ActionError("UNAUTHORIZED");
      if (mayPerformOnApp(caller, "updateAction", appId)) return caller;
      throw new ActionError("FORBIDDEN");
    },

    /**
     * @param author the editor whose credential replaces the proof, for drafts
     * @throws RoutesChangedError if the caller must find the triggers again, ProofRefusal, RATE_LIMIT_EXCEEDED,
     *   OVERLOADED, RUN_SKIPPED, NOT_FOUND if the action was deactivated meanwhile
     */
    async run(
      { address, routes, match, isCached }: MatchedTriggers,
      author: Caller | null,
      request: TriggerRequest,
      visitor: Visitor,
    ): Promise<TriggerAnswer> {
      const { appId, isDraft } = address;
      const route = routeFor(routes, request.method)!;
      const { where, actionId } = route;
      const caller =
        author ??
        (await proofs.check(route, request).catch((error: unknown) => {
          if (error instanceof ProofRefusal) {
            if (isCached) throw new RoutesChangedError();
            refusals.count(route.masterId, error, request.address);
          }
          throw error;
        }));
      if (!request.counted.has("quota")) {
        request.counted.add("quota");
        await gate.enterTrigger(visitor, appId);
      }
      const body = await parseBody(request.body, request.header("content-type") ?? null);
      const payload = payloadOf(route, address, request, body);
      if (where.auth.type === "none" && !isDraft && !request.counted.has("payload")) {
        request.counted.add("payload");
        const sender = { kind: "live" as const, credentialId: 0, ...(request.address && { address: request.address }) };
        intake.takePayload(sender, appId, Buffer.byteLength(payload));
      }
      const requested: NamedRun = {
        appId,
        ref: { id: actionId },
        trigger: "http",
        needsPublishedApp: !isDraft,
        // The access rules of actions concern runtime tokens, which this request does not have.
        access: { granted: null, user: null, isGranted: async () => true },
        copy: isDraft ? "master" : "production",
        payload,
        personId: caller?.personId ?? null,
        credentialId: caller?.credentialId ?? null,
        idempotencyKey: null,
        // In a draft, each repetition of an event starts a run, so that editors can test with the same request.
        eventKey: isDraft ? null : eventKeyOf(route, request, body),
        routeMatch: match,
      };
      try {
        return await answer(requested, where.respond !== "immediately", request.gone);
      } catch (error) {
        if (!isClosed(error)) throw error;
        throw isCached ? new RoutesChangedError() : new ActionError("NOT_FOUND");
      }
    },
  };
}
