/** Registers the REST routes with Fastify: reads the request, sends the response, handles entity tags. */
import { createHash } from "node:crypto";
import type { Readable } from "node:stream";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { ActionError } from "../../errors.js";
import { throwDeferredError } from "../../operations/access/access-checks.js";
import type { RequestTracing } from "../../operations/watch/tracing.js";
import { serializeJsonParts } from "../../rules/json-text.js";
import { createEntityTag, matchesIfNoneMatch } from "../../rules/precondition.js";
import { throwIfUnknownField } from "../../rules/unknown-fields.js";
import { createQuotaHeaders } from "../context.js";
import type { Resolvers } from "../graphql/schema.js";
import { JsonLineStream } from "../lines.js";
import { disconnectSlowClient } from "../reader-pace.js";
import { requireCredential } from "../require-credential.js";
import { LARGE_RESPONSE_MIN_CHARACTERS, streamResponseParts } from "../sliced.js";
import { runInRequestSpan } from "../traces.js";
import { createRestRequest } from "./request.js";
import type { Route } from "./route.js";

/** Joins JSON texts to one response body: a string, or for a large body a stream of slices. */
function createResponseBody(parts: readonly (string | Buffer)[], reply: FastifyReply): string | Readable {
  if (parts.reduce((sum, { length }) => sum + length, 0) <= LARGE_RESPONSE_MIN_CHARACTERS) return parts.join("");
  return streamResponseParts(parts, () => reply.raw.destroy());
}

/** Returns the hash of the response's text, which is the ETag of a resource without a version. */
function computeDigestTag(parts: readonly (string | Buffer)[]): string {
  const hash = createHash("sha256");
  for (const part of parts) hash.update(part);
  return `"${hash.digest("base64url").slice(0, 22)}"`;
}

/**
 * Rejects `If-Match` for a resource without a version. If the service ignored the header, the change could overwrite newer data.
 * @throws REQUEST_INVALID
 */
function rejectIfMatch({ headers }: FastifyRequest): void {
  const tag = headers["if-match"];
  if (tag === undefined || tag.trim() === "*") return;
  throw new ActionError(
    "REQUEST_INVALID",
    "this resource does not support If-Match, because it has no version to compare with; omit the header",
  );
}

export function registerRest(
  app: FastifyInstance,
  routes: readonly Route[],
  { resolvers, tracing }: { resolvers: Resolvers; tracing: RequestTracing },
): void {
  for (const {
    method,
    path,
    successStatus = 200,
    handle: handleRoute,
    allowsAnonymous,
    hasNoVersion,
    bodyLimit,
    isReport,
  } of routes) {
    app.route({
      method,
      url: path,
      ...(!allowsAnonymous && { onRequest: requireCredential }),
      ...(bodyLimit !== undefined && { bodyLimit }),
      ...(isReport && { config: { isReport } }),
      handler: async (request, reply) => {
        const { context } = request;
        if (hasNoVersion) rejectIfMatch(request);
        let tag: string | null = null;
        const restRequest = createRestRequest(request, context, (entityTag) => {
          tag = entityTag;
        });
        const body = await runInRequestSpan(tracing, context, () =>
          context.responseBudget!.runPart(() => handleRoute(resolvers, restRequest)),
        );
        throwDeferredError(context);
        // If the route has found an unknown field in the body, rejects the request now, after all checks of the operation.
        throwIfUnknownField(context);
        if (body instanceof JsonLineStream) {
          // The check for slow readers adds a listener to `reply.raw`, which then has more than ten. Node would print a warning.
          reply.raw.setMaxListeners(reply.raw.getMaxListeners() + 1);
          disconnectSlowClient(reply);
          reply.header("Cache-Control", "no-store").type("application/x-ndjson; charset=utf-8");
          return reply.send(body.createStream());
        }
        const parts = serializeJsonParts(body);
        if (context.updatedAt !== undefined) tag ??= createEntityTag(context.updatedAt);
        if (method === "GET") tag ??= computeDigestTag(parts);
        reply.headers(createQuotaHeaders(context));
        // Reads `If-None-Match` before it sets the ETag: an invalid header is an error, and an error response must have no ETag.
        const isNotModified = method === "GET" && matchesIfNoneMatch(request.headers["if-none-match"], tag!);
        if (tag !== null) reply.header("ETag", tag);
        // The response depends on the caller and may contain data that caches must not store.
        reply.header("Cache-Control", "no-store");
        if (isNotModified) return reply.code(304).send();
        return reply
          .code(context.httpStatus ?? successStatus)
          .type("application/json; charset=utf-8")
          .send(createResponseBody(parts, reply));
      },
    });
  }
}
