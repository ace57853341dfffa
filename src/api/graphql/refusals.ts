/** Sends errors of GraphQL over HTTP, in the media type that the client accepts, with the HTTP status for this media type. */
import type { FastifyReply, FastifyRequest } from "fastify";
import type { GraphQLFormattedError } from "graphql";
import Negotiator from "negotiator";
import { STATUS, type Status } from "../../errors.js";
import { createQuotaHeaders } from "../context.js";
import type { FormatError } from "../error-reply.js";

const JSON_TYPE = "application/json";
const RESPONSE_TYPE = "application/graphql-response+json";

/** Returns the preferred of the two media types of GraphQL over HTTP; JSON_TYPE if the client accepts neither. */
function choosePreferredMediaType({ headers: { accept = "*/*" } }: FastifyRequest): string {
  return new Negotiator({ headers: { accept } }).mediaType([JSON_TYPE, RESPONSE_TYPE]) ?? JSON_TYPE;
}

export function sendJsonText(request: FastifyRequest, reply: FastifyReply, text: string): FastifyReply {
  return reply
    .header("Cache-Control", "no-store")
    .type(`${choosePreferredMediaType(request)}; charset=utf-8`)
    .send(text);
}

export interface GraphqlErrorSender {
  /**
   * Sends errors for a well-formed request that the service does not execute. The HTTP status is 200 for `application/json`, and the
   * error's own status for `application/graphql-response+json`.
   */
  sendRefusal(request: FastifyRequest, reply: FastifyReply, errors: readonly unknown[]): FastifyReply;
  /** Sends an error for a request that the service cannot read. The HTTP status is the error's own in both media types. */
  sendFailure(request: FastifyRequest, reply: FastifyReply, error: unknown): FastifyReply;
}

const getHttpStatus = ({ extensions }: GraphQLFormattedError): number => STATUS[extensions?.["status"] as Status].http;

export function createGraphqlErrorSender(format: FormatError): GraphqlErrorSender {
  return {
    sendRefusal(request, reply, errors) {
      const formatted = errors.map(format);
      const isJson = choosePreferredMediaType(request) === JSON_TYPE;
      return sendJsonText(
        request,
        reply.code(isJson ? 200 : getHttpStatus(formatted[0]!)),
        JSON.stringify({ errors: formatted }),
      );
    },
    sendFailure(request, reply, error) {
      const formattedError = format(error);
      const retryAfter = formattedError.extensions?.["retryAfter"];
      reply.code(getHttpStatus(formattedError)).headers(createQuotaHeaders(request.context ?? { caller: null }));
      if (typeof retryAfter === "number") reply.header("Retry-After", String(retryAfter));
      return sendJsonText(request, reply, JSON.stringify({ errors: [formattedError] }));
    },
  };
}
