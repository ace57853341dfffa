/** Serves the rows of the REST table: reads the request, writes the answer, handles entity tags. */
import { createHash } from "node:crypto";
import type { Readable } from "node:stream";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { ActionError } from "../../errors.js";
import { throwDeferred } from "../../operations/access/gate.js";
import type { RequestTracing } from "../../operations/watch/tracing.js";
import { writeJsonParts } from "../../rules/json-text.js";
import { createEntityTag, isKnownTag } from "../../rules/precondition.js";
import { reportUnknownField } from "../../rules/unknown-fields.js";
import { quotaHeaders } from "../context.js";
import { requireAdmission } from "../gated.js";
import type { Resolvers } from "../graphql/schema.js";
import { Lines } from "../lines.js";
import { endSlowReader } from "../reader-pace.js";
import { LARGE_CHARACTERS, streamSlices } from "../sliced.js";
import { traceRequest } from "../traces.js";
import { restRequest } from "./request.js";
import type { Route } from "./route.js";

/** Joins JSON texts into a body. A large one is sent in parts. */
function taggedBody(parts: readonly (string | Buffer)[], reply: FastifyReply): string | Readable {
  if (parts.reduce((sum, { length }) => sum + length, 0) <= LARGE_CHARACTERS) return parts.join("");
  return streamSlices(parts, () => reply.raw.destroy());
}

/** Returns an ETag for a response without a version: a digest of its text. */
function digestTag(parts: readonly (string | Buffer)[]): string {
  const hash = createHash("sha256");
  for (const part of parts) hash.update(part);
  return `"${hash.digest("base64url").slice(0, 22)}"`;
}

/** @throws REQUEST_INVALID for `If-Match` on a resource without a version: to ignore the header could overwrite newer data */
function refuseIfMatch({ headers }: FastifyRequest): void {
  const tag = headers["if-match"];
  if (tag === undefined || tag.trim() === "*") return;
  throw new ActionError(
    "REQUEST_INVALID",
    "If-Match is not supported here: this resource has no state to compare with",
  );
}

export function registerRest(
  app: FastifyInstance,
  routes: readonly Route[],
  { resolvers, tracing }: { resolvers: Resolvers; tracing: RequestTracing },
): void {
  for (const { method, path, http = 200, handle: answer, open, stateless, bodyLimit, isReport } of routes) {
    app.route({
      method,
      url: path,
      ...(!open && { onRequest: requireAdmission }),
      ...(bodyLimit !== undefined && { bodyLimit }),
      ...(isReport && { config: { isReport } }),
      handler: async (request, reply) => {
        const { context } = request;
        if (stateless) refuseIfMatch(request);
        let tag: string | null = null;
        const restInput = restRequest(request, context, (named) => {
          tag = named;
        });
        const body = await traceRequest(tracing, context, () =>
          context.answer!.part(() => answer(resolvers, restInput)),
        );
        throwDeferred(context);
        // Reports an unknown field of the body for operations that do not report it themselves.
        reportUnknownField(context);
        if (body instanceof Lines) {
          // Raises the limit of listeners: the check for slow readers adds the eleventh, and Node warns above ten.
          reply.raw.setMaxListeners(reply.raw.getMaxListeners() + 1);
          endSlowReader(reply);
          reply.header("Cache-Control", "no-store").type("application/x-ndjson; charset=utf-8");
          return reply.send(body.stream());
        }
        const parts = writeJsonParts(body);
        if (context.updatedAt !== undefined) tag ??= createEntityTag(context.updatedAt);
        if (method === "GET") tag ??= digestTag(parts);
        reply.headers(quotaHeaders(context));
        // Reads `If-None-Match` before the ETag is set: an invalid header is an error, and an error response must have
        // no ETag.
        const isKnown = method === "GET" && isKnownTag(request.headers["if-none-match"], tag!);
        if (tag !== null) reply.header("ETag", tag);
        // The response depends on the caller and may hold data that caches must not store.
        reply.header("Cache-Control", "no-store");
        if (isKnown) return reply.code(304).send();
        return reply
          .code(context.http ?? http)
          .type("application/json; charset=utf-8")
          .send(taggedBody(parts, reply));
      },
    });
  }
}
