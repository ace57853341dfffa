/**
 * How the bodies of requests come in: each has its room before it is read, arrives at an honest speed or not at all, and is parsed in
 * its sender's turn where it is large. Knows no route.
 */
import type { IncomingMessage } from "node:http";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { ActionError } from "../errors.js";
import { BODY_MAX_BYTES, SMALL_BODY_BYTES } from "../limits.js";
import { whenOver } from "./answer-end.js";
import type { BodyRooms } from "./body-room.js";
import { addressSender, senderOf } from "./sender.js";
import type { Turns } from "./turns.js";

/** So much of a body comes in so long, or the rest of it: 64 kilobits in a second, as of a poor line. */
const PACE_MS = 10_000;
const PACE_BYTES = 80 * 1024;
/** Measured: what a megabyte costs, here and in the database, to be read, checked and stored. */
const MS_PER_MB = 20;

/** Bytes that the request says it will bring; of one that does not say, as many as it may. */
function announced({ headers }: IncomingMessage): number {
  if (headers["transfer-encoding"] !== undefined) return BODY_MAX_BYTES;
  return Math.min(Number(headers["content-length"] ?? 0), BODY_MAX_BYTES);
}

/** Ends a request that does not arrive, as the server ends those whose headers do not. @returns what stops watching it */
function endLate({ socket }: IncomingMessage, paceMs: number): () => void {
  let before = socket.bytesRead;
  const timer = setInterval(() => {
    const now = socket.bytesRead;
    if (now - before >= PACE_BYTES) {
      before = now;
      return;
    }
    clearInterval(timer);
    const late = Object.assign(new Error("the body did not arrive in time"), { code: "ERR_HTTP_REQUEST_TIMEOUT" });
    const { server } = socket as { server?: NodeJS.EventEmitter };
    server?.emit("clientError", late, socket);
  }, paceMs);
  return () => clearInterval(timer);
}

/** JSON of any shape, and nothing for an empty body; prototype keys stay data and are judged by the rules. */
function parse(body: Buffer): unknown {
  try {
    return body.length === 0 ? undefined : JSON.parse(body.toString());
  } catch (error) {
    // Of what the parser says, the place alone: the rest may quote a secret.
    const [at = ""] = /at position \d+/.exec((error as Error).message) ?? [];
    throw new ActionError("REQUEST_INVALID", `the body is not valid JSON${at && `: ${at}`}`);
  }
}

async function refuseOther(request: FastifyRequest, body: Buffer): Promise<undefined> {
  if (body.length === 0) return undefined;
  const type = request.headers["content-type"] ?? "none";
  throw new ActionError(
    "REQUEST_INVALID",
    `the body must be JSON, with Content-Type: application/json; ${type.slice(0, 60)} came`,
  );
}

/** For requests whose `context` is there already. */
export function registerBodies(
  app: FastifyInstance,
  options: { rooms: BodyRooms; turns: Turns; paceMs?: number },
): void {
  const { rooms, turns, paceMs = PACE_MS } = options;
  const arrivals = new WeakMap<FastifyRequest, () => void>();

  /** Resolves when there is room for the body. */
  async function admit(request: FastifyRequest, reply: FastifyReply, bytes: number): Promise<void> {
    const { raw } = request;
    try {
      const leave = await rooms.roomFor(bytes).enter(addressSender(request.context.address), bytes);
      const unwatch = endLate(raw, paceMs);
      const arrived = () => {
        leave();
        unwatch();
      };
      whenOver(raw, reply.raw, arrived);
      arrivals.set(request, arrived);
    } catch (error) {
      // What it goes on sending is not read.
      reply.header("Connection", "close");
      throw error;
    }
  }

  app.addHook("preParsing", (request, reply, _payload, done) => {
    const bytes = announced(request.raw);
    // What has come along with its headers takes no room that could be spared it.
    if (bytes === 0 || request.raw.complete) done();
    else admit(request, reply, bytes).then(() => done(), done);
  });
  // It is parsed by now, or left to its route, which reads it as it can use it.
  app.addHook("preValidation", (request, _reply, done) => {
    arrivals.get(request)?.();
    done();
  });

  app.removeAllContentTypeParsers();
  app.addContentTypeParser("application/json", { parseAs: "buffer" }, async (request: FastifyRequest, body: Buffer) => {
    if (body.length <= SMALL_BODY_BYTES) return parse(body);
    const sender = senderOf(request.context);
    try {
      return await turns.take(sender, () => parse(body));
    } finally {
      turns.owe(sender, (body.length / 2 ** 20) * MS_PER_MB);
    }
  });
  app.addContentTypeParser("*", { parseAs: "buffer" }, refuseOther);
}
