/**
 * Receives request bodies. Reserves memory before a body is read, disconnects senders that are too slow, and parses large bodies in their
 * sender's turn.
 */
import type { IncomingMessage } from "node:http";
import type { Readable } from "node:stream";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { ActionError } from "../errors.js";
import { BODY_MAX_BYTES, SMALL_BODY_BYTES } from "../limits.js";
import { readLargeReport } from "../operations/client/large-reports.js";
import { isPageCaller } from "../rules/access.js";
import { containsInfinity } from "../rules/described.js";
import { callWhenResponseEnds } from "./answer-end.js";
import type { BodyCapacities } from "./body-capacity.js";
import { parseInParts } from "./json-in-parts.js";
import { toId } from "./rest/request.js";
import { addressSender, senderOf } from "./sender.js";
import type { Turns } from "./turns.js";

/**
 * A sender must send this many bytes in PACE_MS milliseconds, or the rest of its body. 64 kilobits a second is the speed of a poor
 * connection.
 */
const PACE_MS = 10_000;
const PACE_BYTES = 80 * 1024;
/** Time to read, check and store one megabyte, here and in the database (measured). */
const MS_PER_MB = 20;

declare module "fastify" {
  interface FastifyContextConfig {
    /** True if the route reads the body itself, within its own limits. */
    streamed?: true;
    /**
     * True for reports of client runs. Visitors may then send bodies up to the route's limit, and one JSON value may
     * have this size.
     */
    isReport?: true;
    /** True if callers without a credential may use the whole limit of the route. */
    isLargeForAll?: true;
  }
}

/**
 * Returns the limit of the body in bytes. On routes with a larger limit than usual, only callers with rights on the app may exceed the
 * usual one.
 */
function limitOf({ routeOptions, context }: FastifyRequest): number {
  const { bodyLimit = BODY_MAX_BYTES } = routeOptions;
  const { isReport, isLargeForAll } = routeOptions.config;
  const isTrusted = context.caller !== null && !isPageCaller(context.caller);
  return isTrusted || isReport || isLargeForAll ? bodyLimit : Math.min(bodyLimit, BODY_MAX_BYTES);
}

/** Key of all requests that name a missing app. They share one quota, so that made-up IDs get no capacity of their own. */
const NO_APP = "none";

/**
 * Returns the app whose quota the request uses: the app of its credential, which the sender cannot choose; without one, the app in the path
 * if it exists.
 */
async function appOf({ context, params }: FastifyRequest, appExists: AppExists): Promise<string | null> {
  const callerAppId = context.caller?.appId;
  if (callerAppId) return String(callerAppId);
  const { appId } = (params ?? {}) as { appId?: string };
  if (appId === undefined) return context.caller === null ? NO_APP : null;
  const id = toId(appId);
  return (await appExists(id)) ? String(id) : NO_APP;
}

type AppExists = (appId: number) => Promise<boolean>;

/** Returns the announced bytes of the body, or the limit if the request announces none. @throws ActionError PAYLOAD_TOO_LARGE */
function announcedLength(request: FastifyRequest): number {
  const { headers } = request.raw;
  const limit = limitOf(request);
  if (headers["transfer-encoding"] !== undefined) return limit;
  const bytes = Number(headers["content-length"] ?? 0);
  if (bytes <= limit || request.routeOptions.config.streamed) return Math.min(bytes, limit);
  throw tooLarge(limit);
}

const tooLarge = (limit: number): ActionError =>
  new ActionError("PAYLOAD_TOO_LARGE", `the request is larger than ${limit / 2 ** 20} MB`);

/**
 * Reads a whole body. Fastify compares only the announced length with the limit of the route, and a chunked body announces none.
 * @throws ActionError PAYLOAD_TOO_LARGE, REQUEST_INVALID
 */
function readUpTo(body: Readable, limit: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let length = 0;
    const stop = () => {
      body.off("data", add).off("end", finish).off("error", fail);
    };
    const add = (chunk: Buffer) => {
      length += chunk.length;
      chunks.push(chunk);
      if (length <= limit) return;
      stop();
      reject(tooLarge(limit));
    };
    const finish = () => {
      stop();
      resolve(Buffer.concat(chunks, length));
    };
    const fail = () => {
      stop();
      reject(new ActionError("REQUEST_INVALID", "the connection ended before the whole body was received"));
    };
    body.on("data", add).on("end", finish).on("error", fail);
  });
}

/** Reads the whole body of the request. @throws PAYLOAD_TOO_LARGE, REQUEST_INVALID */
export const readBytes = (request: FastifyRequest, body: Readable): Promise<Buffer> => readUpTo(body, limitOf(request));

/**
 * Ends a request whose sender is too slow, with the error that the server sends for slow headers. Pauses that the service itself makes do
 * not count.
 */
function endLateBody(request: IncomingMessage, paceMs: number): () => void {
  const { socket } = request;
  let before = socket.bytesRead;
  const timer = setInterval(() => {
    const now = socket.bytesRead;
    const isUnread = request.complete || request.readableLength > 0 || socket.isPaused();
    if (isUnread || now - before >= PACE_BYTES) {
      before = now;
      return;
    }
    clearInterval(timer);
    const lateError = Object.assign(new Error("the body did not arrive in time"), { code: "ERR_HTTP_REQUEST_TIMEOUT" });
    const { server } = socket as { server?: NodeJS.EventEmitter };
    server?.emit("clientError", lateError, socket);
  }, paceMs);
  return () => clearInterval(timer);
}

const UTF8_DECODER = new TextDecoder("utf-8", { fatal: true });

/** Matches each text that can contain a number too large for a double. */
const MAY_BE_HUGE = /[eE]\+?\d{3}|\d{100}/;

function textOf(body: Buffer): string {
  try {
    return UTF8_DECODER.decode(body);
  } catch {
    throw new ActionError("REQUEST_INVALID", "the body must be UTF-8 (got other bytes)");
  }
}

/** Parses JSON of any shape. Returns undefined for an empty body. Keys such as `__proto__` stay data, which the rules check. */
function parseBody(body: Buffer, { routeOptions }: FastifyRequest): unknown {
  if (body.length === 0) return undefined;
  const text = textOf(body);
  const value = parseText(text);
  // JSON.parse turns 1e400 into Infinity, which would be stored as null.
  if (MAY_BE_HUGE.test(text) && containsInfinity(value)) {
    const status = routeOptions.url?.endsWith("/settings") ? "SETTINGS_INVALID" : "REQUEST_INVALID";
    throw new ActionError(status, "the body must not contain a number above 1.8e308");
  }
  return value;
}

function parseText(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    // Returns only the position from the parser's message: the rest may quote a secret.
    const [at = ""] = /at position \d+/.exec((error as Error).message) ?? [];
    throw new ActionError("REQUEST_INVALID", `the body is not valid JSON${at && ` (${at})`}`);
  }
}

async function refuseOtherContentTypes(request: FastifyRequest, payload: Readable): Promise<undefined> {
  const body = await readBytes(request, payload);
  if (body.length === 0) return undefined;
  const type = request.headers["content-type"] ?? "none";
  throw new ActionError(
    "REQUEST_INVALID",
    `the body must be JSON, with Content-Type: application/json (got ${type.slice(0, 60).toWellFormed()})`,
  );
}

/** Registers the body parser. Register the hook that sets `context` first. */
export function registerBodies(
  app: FastifyInstance,
  options: { rooms: BodyCapacities; turns: Turns; appExists: AppExists; paceMs?: number },
): void {
  const { rooms, turns, appExists, paceMs = PACE_MS } = options;
  const arrivalCallbacks = new WeakMap<FastifyRequest, () => void>();

  /** Resolves when there is capacity for the body. */
  async function admitBody(request: FastifyRequest, reply: FastifyReply, bytes: number): Promise<void> {
    const { raw, context } = request;
    const app = await appOf(request, appExists);
    const freeCapacity = await rooms.capacityFor(bytes).enter(addressSender(context.address), bytes, app);
    const stopWatching = endLateBody(raw, paceMs);
    raw.once("end", stopWatching);
    callWhenResponseEnds(raw, reply.raw, () => {
      freeCapacity();
      stopWatching();
    });
    arrivalCallbacks.set(request, freeCapacity);
  }

  app.addHook("preParsing", (request, reply, _payload, done) => {
    try {
      const bytes = announcedLength(request);
      // A body that arrived together with its headers is already in memory, so no capacity is reserved.
      if (bytes === 0 || request.raw.complete) done();
      else admitBody(request, reply, bytes).then(() => done(), done);
    } catch (error) {
      done(error as Error);
    }
  });
  // Releases the capacity: the body has been parsed, or its route streams the body without storing it in memory.
  app.addHook("preValidation", (request, _reply, done) => {
    arrivalCallbacks.get(request)?.();
    done();
  });

  app.removeAllContentTypeParsers();
  app.addContentTypeParser("application/json", async (request: FastifyRequest, payload: Readable) => {
    const body = await readBytes(request, payload);
    if (body.length <= SMALL_BODY_BYTES) return parseBody(body, request);
    const sender = senderOf(request.context);
    try {
      if (body.length > BODY_MAX_BYTES) {
        if (request.routeOptions.config.isReport) return await readLargeReport(sender, textOf(body));
        return await parseInParts(body, (step) => turns.takeTurn(sender, step));
      }
      return await turns.takeTurn(sender, () => parseBody(body, request));
    } finally {
      turns.owe(sender, (body.length / 2 ** 20) * MS_PER_MB);
    }
  });
  app.addContentTypeParser("*", refuseOtherContentTypes);
}
