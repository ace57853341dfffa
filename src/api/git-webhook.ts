/**
 * POST `/v1/apps/:appId/git/webhook`: a git server notifies the service here of pushes. The only credential of a notification is its
 * signature, or for GitLab the webhook's secret.
 */
import type { Readable } from "node:stream";
import type { FastifyInstance, FastifyRequest } from "fastify";
import type { GitWebhooks } from "../operations/git/git-webhooks.js";
import { readBodyBytes } from "./bodies.js";
import { parsePathId } from "./rest/request.js";

/** Maximum size of a push notification, which lists the pushed commits and their changed files. */
const WEBHOOK_BODY_MAX_BYTES = 5 * 1024 * 1024;

export function registerGitWebhook(app: FastifyInstance, webhooks: GitWebhooks): void {
  app.register(async (scope) => {
    // The signature covers the body's bytes, so Fastify must not parse the body, whatever its content type.
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser("*", (request: FastifyRequest, payload: Readable) => readBodyBytes(request, payload));
    scope.post<{ Params: { appId: string } }>(
      "/v1/apps/:appId/git/webhook",
      {
        bodyLimit: WEBHOOK_BODY_MAX_BYTES,
        config: { checksOwnCredentials: true, allowsLargeBodyForAll: true },
        onRequest: async ({ context, params }) => webhooks.countRequest(context.address, parsePathId(params.appId)),
      },
      async ({ context, params, headers, body }, reply) => {
        reply.header("cache-control", "no-store");
        const receipt = await webhooks.receive(parsePathId(params.appId), {
          networkAddress: context.address,
          header: (name) => (typeof headers[name] === "string" ? headers[name] : undefined),
          body: (body as Buffer<ArrayBuffer> | undefined) ?? Buffer.alloc(0),
          urls: [],
        });
        return reply.code(receipt.status === "ACCEPTED" ? 202 : 200).send(receipt);
      },
    );
  });
}
