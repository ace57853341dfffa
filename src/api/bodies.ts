/**
 * Receives request bodies. Reserves memory before it reads a body, and disconnects senders that are too slow. Senders
 * of large bodies take turns, so that the service parses one large body at a time.
 */
import type { IncomingMessage } from "node:http";
import type { Readable } from "node:stream";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { ActionError } from "../errors.js";
import { BODY_MAX_BYTES, IMMEDIATELY_PARSED_BODY_MAX_BYTES } from "../limits.js";
import { parseLargeRunReport } from "../operations/client/large-reports.js";
import { isPageCaller } from "../rules/access.js";
import { containsInfinity, mayContainInfinity } from "../rules/describe-value.js";
import type { FairTaskQueue } from "./fair-task-queue.js";
import { INFINITE_NUMBER_MESSAGE, parseJsonInSteps } from "./json-in-steps.js";
import type { RequestBodyBudgetsBySize } from "./request-body-budget.js";
import { getRequestSenderKey, getRequestSenderKeyByAddress } from "./request-sender.js";
import { callWhenResponseEnds } from "./response-end.js";
import { parsePathId } from "./rest/request.js";

/** Length of a period in milliseconds. In each period, a sender must send BODY_BYTES_PER_INTERVAL bytes, or the rest of the body. */
const BODY_PACE_INTERVAL_MS = 10_000;
const BODY_BYTES_PER_INTERVAL = 80 * 1024;
/** Time to parse, check and store one megabyte of a body, in this process and in the database (measured). */
const PROCESSING_MS_PER_MB = 20;

declare module "fastify" {
  interface FastifyContextConfig {
    /** True if the route's handler reads the body itself and enforces its own limits. */
    isStreamed?: true;
    /** True for routes that receive reports of runs in browsers. All callers may send bodies up to the route's `bodyLimit` there. */
    isReport?: true;
    /** True if callers without a credential may send bodies up to the route's `bodyLimit`, not only up to BODY_MAX_BYTES. */
    allowsLargeBodyForAll?: true;
    /** True if the route forwards the bytes of the body as they arrive. The header `Content-Encoding` can then have any value. */
    acceptsEncodedBody?: true;
  }
}

function getBodyLimit({ routeOptions, context }: FastifyRequest): number {
  const { bodyLimit = BODY_MAX_BYTES } = routeOptions;
  const { isReport, allowsLargeBodyForAll } = routeOptions.config;
  const isTrusted = context.caller !== null && !isPageCaller(context.caller);
  return isTrusted || isReport || allowsLargeBodyForAll ? bodyLimit : Math.min(bodyLimit, BODY_MAX_BYTES);
}

/**
 * Key of the quota that all requests for missing apps and all anonymous requests without an app share. Otherwise, each made-up ID would
 * have its own quota.
 */
const MISSING_APP_QUOTA_KEY = "none";

/**
 * Returns the key of the memory quota for the request's body.
 *
 * - The ID of the credential's app.
 * - Otherwise, the ID of the app in the path. It comes second, because a sender can name any app there.
 * - MISSING_APP_QUOTA_KEY for a missing app, and for an anonymous caller if the path names no app.
 * - null (no quota) for other callers, such as people, if the path names no app.
 */
async function findQuotaKey({ context, params }: FastifyRequest, appExists: AppExistsCheck): Promise<string | null> {
  const callerAppId = context.caller?.appId;
  if (callerAppId) return String(callerAppId);
  const { appId } = (params ?? {}) as { appId?: string };
  if (appId === undefined) return context.caller === null ? MISSING_APP_QUOTA_KEY : null;
  const id = parsePathId(appId);
  return (await appExists(id)) ? String(id) : MISSING_APP_QUOTA_KEY;
}

type AppExistsCheck = (appId: number) => Promise<boolean>;

/**
 * Returns the number of bytes to reserve: the `Content-Length`, or the maximum size of the body if the request is chunked. If the route
 * streams the body, a larger `Content-Length` counts as this maximum.
 * @throws ActionError PAYLOAD_TOO_LARGE
 */
function computeBytesToReserve(request: FastifyRequest): number {
  const { headers } = request.raw;
  const limit = getBodyLimit(request);
  if (headers["transfer-encoding"] !== undefined) return limit;
  const bytes = Number(headers["content-length"] ?? 0);
  if (bytes <= limit || request.routeOptions.config.isStreamed) return Math.min(bytes, limit);
  throw createTooLargeError(limit);
}

/** Matches the start of a Content-Type: a type and a subtype. */
const MEDIA_TYPE_PATTERN = /^[^\s/;]+\/[^\s/;]+/;

const quoteHeaderValue = (value: string): string => JSON.stringify(value.slice(0, 60).toWellFormed());

/**
 * Checks the headers that describe the body. The service decompresses no bodies.
 * @throws REQUEST_INVALID
 */
function checkBodyHeaders({ headers, routeOptions }: FastifyRequest): void {
  const { "content-encoding": encoding = "identity", "content-type": type } = headers;
  if (encoding.trim().toLowerCase() !== "identity" && !routeOptions.config.acceptsEncodedBody)
    throw new ActionError(
      "REQUEST_INVALID",
      `the body must not be compressed; send it without the header Content-Encoding (got ${quoteHeaderValue(encoding)})`,
    );
  if (type !== undefined && !MEDIA_TYPE_PATTERN.test(type))
    throw new ActionError(
      "REQUEST_INVALID",
      `the header Content-Type must be a media type such as application/json (got ${quoteHeaderValue(type)})`,
    );
}

const createTooLargeError = (limit: number): ActionError =>
  new ActionError(
    "PAYLOAD_TOO_LARGE",
    `the request is larger than ${limit < 2 ** 20 ? `${limit / 1024} KB` : `${limit / 2 ** 20} MB`}`,
  );

/**
 * Reads a whole body of at most `limit` bytes. Fastify checks only `Content-Length`, which a chunked request does not send.
 * @throws ActionError PAYLOAD_TOO_LARGE, REQUEST_INVALID
 */
function readBodyUpTo(body: Readable, limit: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let length = 0;
    const removeListeners = () => {
      body.off("data", addChunk).off("end", resolveBody).off("error", rejectBody);
    };
    const addChunk = (chunk: Buffer) => {
      length += chunk.length;
      chunks.push(chunk);
      if (length <= limit) return;
      removeListeners();
      reject(createTooLargeError(limit));
    };
    const resolveBody = () => {
      removeListeners();
      resolve(Buffer.concat(chunks, length));
    };
    const rejectBody = () => {
      removeListeners();
      reject(
        new ActionError(
          "REQUEST_INVALID",
          "the connection ended before the whole body had arrived; send the request again",
        ),
      );
    };
    body.on("data", addChunk).on("end", resolveBody).on("error", rejectBody);
  });
}

/** Reads the whole body of the request. @throws PAYLOAD_TOO_LARGE, REQUEST_INVALID */
export const readBodyBytes = (request: FastifyRequest, body: Readable): Promise<Buffer> =>
  readBodyUpTo(body, getBodyLimit(request));

/** Ends a request with HTTP 408 if its body arrives too slowly. Returns a function that stops this check. */
function rejectSlowBody(request: IncomingMessage, paceIntervalMs: number): () => void {
  const { socket } = request;
  let bytesBefore = socket.bytesRead;
  const timer = setInterval(() => {
    const bytesNow = socket.bytesRead;
    const waitsForService = request.complete || request.readableLength > 0 || socket.isPaused();
    if (waitsForService || bytesNow - bytesBefore >= BODY_BYTES_PER_INTERVAL) {
      bytesBefore = bytesNow;
      return;
    }
    clearInterval(timer);
    const timeoutError = Object.assign(new Error("the request body did not arrive in time"), {
      code: "ERR_HTTP_REQUEST_TIMEOUT",
    });
    const { server } = socket as { server?: NodeJS.EventEmitter };
    server?.emit("clientError", timeoutError, socket);
  }, paceIntervalMs);
  return () => clearInterval(timer);
}

const UTF8_DECODER = new TextDecoder("utf-8", { fatal: true });

function decodeUtf8(body: Buffer, { headers }: FastifyRequest): string {
  try {
    return UTF8_DECODER.decode(body);
  } catch {
    const [, charset = "utf-8"] = /charset="?([\w-]{1,40})/i.exec(headers["content-type"] ?? "") ?? [];
    const received = /^utf-?8$/i.test(charset) ? "bytes that are not UTF-8" : `Content-Type with charset=${charset}`;
    throw new ActionError("REQUEST_INVALID", `the body must be UTF-8 text (got ${received})`);
  }
}

/** Parses JSON of any type. Returns undefined for an empty body. */
function parseBody(body: Buffer, request: FastifyRequest): unknown {
  if (body.length === 0) return undefined;
  const text = decodeUtf8(body, request);
  const value = parseJson(text);
  // JSON.parse turns 1e400 into Infinity, which would be stored as null.
  if (mayContainInfinity(text) && containsInfinity(value)) {
    const status = request.routeOptions.url?.endsWith("/settings") ? "SETTINGS_INVALID" : "REQUEST_INVALID";
    throw new ActionError(status, INFINITE_NUMBER_MESSAGE);
  }
  return value;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    // Returns only the position from the parser's message, because the rest of the message may quote a secret.
    const [at = ""] = /at position \d+/.exec((error as Error).message) ?? [];
    throw new ActionError("REQUEST_INVALID", `the body is not valid JSON${at && ` (${at})`}`);
  }
}

async function rejectOtherContentTypes(request: FastifyRequest, payload: Readable): Promise<undefined> {
  const body = await readBodyBytes(request, payload);
  if (body.length === 0) return undefined;
  const type = request.headers["content-type"] ?? "none";
  throw new ActionError(
    "REQUEST_INVALID",
    `the body must be JSON, with Content-Type: application/json (got ${type.slice(0, 60).toWellFormed()})`,
  );
}

/** Registers the hooks and the parser for request bodies. The hook that sets `request.context` must be registered first. */
export function registerBodyParsing(
  app: FastifyInstance,
  options: {
    bodyBudgets: RequestBodyBudgetsBySize;
    taskQueue: FairTaskQueue;
    appExists: AppExistsCheck;
    paceIntervalMs?: number;
  },
): void {
  const { bodyBudgets, taskQueue, appExists, paceIntervalMs = BODY_PACE_INTERVAL_MS } = options;
  const arrivalCallbacks = new WeakMap<FastifyRequest, () => void>();

  /** Waits until memory for the body is free. From then on, ends the request if its body arrives too slowly. */
  async function admitBody(request: FastifyRequest, reply: FastifyReply, bytes: number): Promise<void> {
    const { raw, context } = request;
    const quotaKey = await findQuotaKey(request, appExists);
    const releaseMemory = await bodyBudgets
      .selectBudget(bytes)
      .reserveBytes(getRequestSenderKeyByAddress(context.address), bytes, quotaKey);
    const stopPaceCheck = rejectSlowBody(raw, paceIntervalMs);
    raw.once("end", stopPaceCheck);
    callWhenResponseEnds(raw, reply.raw, () => {
      releaseMemory();
      stopPaceCheck();
    });
    arrivalCallbacks.set(request, releaseMemory);
  }

  app.addHook("preParsing", (request, reply, _payload, done) => {
    try {
      const bytes = computeBytesToReserve(request);
      if (bytes > 0) checkBodyHeaders(request);
      // A body that arrived together with its headers is already in memory, so no memory is reserved for it.
      if (bytes === 0 || request.raw.complete) done();
      else admitBody(request, reply, bytes).then(() => done(), done);
    } catch (error) {
      done(error as Error);
    }
  });
  // Frees the memory that was reserved for the body. At this point the body has been parsed, or the route reads it as a stream.
  app.addHook("preValidation", (request, _reply, done) => {
    arrivalCallbacks.get(request)?.();
    done();
  });

  app.removeAllContentTypeParsers();
  app.addContentTypeParser("application/json", async (request: FastifyRequest, payload: Readable) => {
    const body = await readBodyBytes(request, payload);
    if (body.length <= IMMEDIATELY_PARSED_BODY_MAX_BYTES) return parseBody(body, request);
    const sender = getRequestSenderKey(request.context);
    try {
      if (body.length > BODY_MAX_BYTES) {
        if (request.routeOptions.config.isReport) return await parseLargeRunReport(sender, decodeUtf8(body, request));
        return await parseJsonInSteps(body, (step) => taskQueue.runInTurn(sender, step));
      }
      return await taskQueue.runInTurn(sender, () => parseBody(body, request));
    } finally {
      taskQueue.extendPause(sender, (body.length / 2 ** 20) * PROCESSING_MS_PER_MB);
    }
  });
  app.addContentTypeParser("*", rejectOtherContentTypes);
}
