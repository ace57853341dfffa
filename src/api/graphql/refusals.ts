/** Sends refusals of GraphQL over HTTP: in the media type that the client accepts, with HTTP status and errors. */
import type { FastifyReply, FastifyRequest } from "fastify";
import type { GraphQLFormattedError } from "graphql";
import Negotiator from "negotiator";
import { STATUS, type Status } from "../../errors.js";
import { quotaHeaders } from "../context.js";
import type { FormatError } from "../error-reply.js";

const JSON_TYPE = "application/json";
const RESPONSE_TYPE = "application/graphql-response+json";

/** Returns the media type that the client prefers, or JSON if it accepts neither. */
function mediaTypeOf({ headers: { accept = "*/*" } }: FastifyRequest): string {
  return new Negotiator({ headers: { accept } }).mediaType([JSON_TYPE, RESPONSE_TYPE]) ?? JSON_TYPE;
}

/** Sends JSON text as the media type that the client prefers. */
export function sendText(request: FastifyRequest, reply: FastifyReply, text: string): FastifyReply {
  return reply
    .header("Cache-Control", "no-store")
    .type(`${mediaTypeOf(request)}; charset=utf-8`)
    .send(text);
}

export interface GraphqlRefusals {
  /**
   * Sends errors for a well-formed request that is not executed. The HTTP status is 200 for plain JSON, and that of the
   * error for a GraphQL response.
   */
  refuse(request: FastifyRequest, reply: FastifyReply, errors: readonly unknown[]): FastifyReply;
  /** Sends an error for a request that cannot be read. The HTTP status is that of the error in both media types. */
  fail(request: FastifyRequest, reply: FastifyReply, error: unknown): FastifyReply;
}

const httpStatusOf = ({ extensions }: GraphQLFormattedError): number => STATUS[extensions?.["status"] as Status].http;

export function createRefusals(format: FormatError): GraphqlRefusals {
  return {
    refuse(request, reply, errors) {
      const formatted = errors.map(format);
      const isJson = mediaTypeOf(request) === JSON_TYPE;
      return sendText(
        request,
        reply.code(isJson ? 200 : httpStatusOf(formatted[0]!)),
        JSON.stringify({ errors: formatted }),
      );
    },
    fail(request, reply, error) {
      const formattedError = format(error);
      const retryAfter = formattedError.extensions?.["retryAfter"];
      reply.code(httpStatusOf(formattedError)).headers(quotaHeaders(request.context ?? { caller: null }));
      if (typeof retryAfter === "number") reply.header("Retry-After", String(retryAfter));
      return sendText(request, reply, JSON.stringify({ errors: [formattedError] }));
    },
  };
}
