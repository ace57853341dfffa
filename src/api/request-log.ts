/**
 * Writes one log line for each finished request if `LOG_LEVEL=debug`. The line contains the route's pattern instead of the path, and no
 * query string, headers or body, because these contain values and credentials.
 */
import { randomUUID } from "node:crypto";
import type { FastifyInstance } from "fastify";
import type { Logger } from "pino";
import { callWhenResponseEnds } from "./response-end.js";

/** Registers the logging hooks. Call it before all other hooks, so that requests which another hook answers are logged, too. */
export function registerRequestLog(app: FastifyInstance, log: Logger): void {
  if (!log.isLevelEnabled("debug")) return;
  app.addHook("onRequest", ({ method, routeOptions, raw }, reply, done) => {
    const startedAt = performance.now();
    const requestId = randomUUID();
    reply.header("x-request-id", requestId);
    callWhenResponseEnds(raw, reply.raw, () => {
      const { statusCode: status, writableFinished } = reply.raw;
      const durationMs = Math.round((performance.now() - startedAt) * 10) / 10;
      const requestFields = { requestId, method, route: routeOptions.url ?? "none", status, durationMs };
      log.debug({ ...requestFields, ...(!writableFinished && { isCutOff: true }) }, "request");
    });
    done();
  });
}
