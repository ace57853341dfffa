/** Sends errors of GraphQL over HTTP, in the media type that the client accepts, with the HTTP status for this media type. */
import type { FastifyReply, FastifyRequest } from "fastify";
import type { GraphQLFormattedError } from "graphql";
import Negotiator from "negotiator";
import { ActionError, STATUS, type Status } from "../../errors.js";
import { describeValue } from "../../rules/describe-value.js";
import { createQuotaHeaders } from "../context.js";
import type { FormatError } from "../error-reply.js";

// The media types contain the charset, because clients can require it in `Accept`.
const JSON_TYPE = "application/json; charset=utf-8";
const GRAPHQL_RESPONSE_TYPE = "application/graphql-response+json; charset=utf-8";

/** Returns the preferred of the two media types of GraphQL over HTTP; undefined if the client accepts neither. */
const negotiateMediaType = ({ headers: { accept } }: FastifyRequest): string | undefined =>
  new Negotiator({ headers: { accept: accept || "*/*" } }).mediaType([JSON_TYPE, GRAPHQL_RESPONSE_TYPE]);

const choosePreferredMediaType = (request: FastifyRequest): string => negotiateMediaType(request) ?? JSON_TYPE;

export const acceptsGraphqlResponse = (request: FastifyRequest): boolean => negotiateMediaType(request) !== undefined;

export function sendJsonText(request: FastifyRequest, reply: FastifyReply, text: string): FastifyReply {
  return reply.header("Cache-Control", "no-store").type(choosePreferredMediaType(request)).send(text);
}

export interface GraphqlErrorSender {
  /**
   * Sends errors for a well-formed request that the service does not execute. The HTTP status is 200 for `application/json`, and the
   * error's own status for `application/graphql-response+json`.
   */
  sendRejection(request: FastifyRequest, reply: FastifyReply, errors: readonly unknown[]): FastifyReply;
  /** Sends an error for a request whose header `Accept` excludes both media types. */
  sendNotAcceptable(request: FastifyRequest, reply: FastifyReply): FastifyReply;
  /** Sends an error for a request that the service cannot read. The HTTP status is the error's own in both media types. */
  sendFailure(request: FastifyRequest, reply: FastifyReply, error: unknown): FastifyReply;
}

const getHttpStatus = ({ extensions }: GraphQLFormattedError): number => STATUS[extensions?.["status"] as Status].http;

export function createGraphqlErrorSender(formatError: FormatError): GraphqlErrorSender {
  return {
    sendRejection(request, reply, errors) {
      const formattedErrors = errors.map(formatError);
      const isJson = choosePreferredMediaType(request) === JSON_TYPE;
      return sendJsonText(
        request,
        reply.code(isJson ? 200 : getHttpStatus(formattedErrors[0]!)),
        JSON.stringify({ errors: formattedErrors }),
      );
    },
    sendNotAcceptable(request, reply) {
      const received = describeValue(request.headers.accept);
      const error = new ActionError(
        "REQUEST_INVALID",
        `the header Accept must allow application/json or application/graphql-response+json (got ${received})`,
      );
      return sendJsonText(request, reply.code(406), JSON.stringify({ errors: [formatError(error)] }));
    },
    sendFailure(request, reply, error) {
      const formattedError = formatError(error);
      const retryAfter = formattedError.extensions?.["retryAfter"];
      reply.code(getHttpStatus(formattedError)).headers(createQuotaHeaders(request.context ?? { caller: null }));
      if (typeof retryAfter === "number") reply.header("Retry-After", String(retryAfter));
      return sendJsonText(request, reply, JSON.stringify({ errors: [formattedError] }));
    },
  };
}
