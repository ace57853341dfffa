/**
 * A REST request as the routes read it: IDs, query, body. An invalid value is reported only after the access check has accepted the caller.
 */

import { hash } from "node:crypto";
import type { FastifyRequest } from "fastify";
import { ActionError } from "../../errors.js";
import { describeValue } from "../../rules/describe-value.js";
import { refuseField } from "../../rules/fields.js";
import {
  computeListVersion,
  createEntityTag,
  type ExpectedVersions,
  type ListItemVersion,
  parseIfMatch,
} from "../../rules/precondition.js";
import { type IdOrName, parseReference, parseReferenceKind } from "../../rules/reference.js";
import { createFlatShape, createUnknownFieldError, NO_FIELDS, type Shape } from "../../rules/unknown-fields.js";
import type { RequestContext } from "../context.js";

export interface RestRequest {
  context: RequestContext;
  /** The parsed JSON body; undefined if the request has no body. */
  body: unknown;
  /** Returns a path parameter as text. */
  pathText(name: string): string;
  /** Returns a path parameter as a list of names. Commas separate the names; a comma within a name is written %2C. */
  pathNames(name: string): string[];
  /**
   * Returns a path parameter as an ID. If the parameter is not a positive integer, returns 0, which no resource has as
   * its ID.
   */
  pathId(name: string): number;
  /** Returns a path parameter that contains an ID or a name. With `?by=name`, even digits are a name. */
  pathReference(name: string): IdOrName;
  /** Returns a query parameter as a whole number; undefined if absent. */
  queryNumber(name: string): number | undefined;
  queryText(name: string): string | undefined;
  /** Returns a query parameter as a boolean; false if absent. */
  queryFlag(name: string): boolean;
  /** Returns a query parameter that contains a JSON array of strings; undefined if absent. */
  queryStrings(name: string): string[] | undefined;
  /**
   * Returns the result of `read`. If `read` throws an error, returns undefined and reports the error only after the access check. A caller
   * without access therefore does not see it.
   */
  check<T>(read: () => T): T | undefined;
  /** Returns the entity tags in `If-Match`: versions of the resource on which the change may be based. */
  readExpectedVersions(): ExpectedVersions;
  /**
   * Sets the `ETag` header and returns `answer`. The ETag consists of the resource's version (`updatedAt`) and of `answerTag`, a digest of
   * state that only the service changes. `If-Match` ignores `answerTag`.
   */
  setTag<T extends object>(state: { updatedAt: string }, answer: T, answerTag?: string | null): T;
  /** Sets the `ETag` header for a returned list, and returns `answer`. `If-Match` with this tag is then valid for each item of the list. */
  setListTag<T extends object>(items: readonly ListItemVersion[], answer: T): T;
  /**
   * Returns the body as an object; `{}` if the request has no body.
   * @param shape fields that the body may have. `throwIfUnknownField` rejects another field after all other checks. Omit
   * the shape if the operation itself checks the names of the fields
   */
  bodyFields(shape?: Shape): Record<string, unknown>;
  /** Ignores these fields of the body on a route that needs no body. A client can then send the resource back as it read it. */
  ignoreBodyFields(names: readonly string[]): void;
}

export function parsePathId(text: string | undefined): number {
  const id = /^[1-9]\d{0,15}$/.test(text ?? "") ? Number(text) : 0;
  return Number.isSafeInteger(id) ? id : 0;
}

/** Returns a path parameter as the client sent it, still percent-encoded. */
function getRawPathParameter({ url, routeOptions }: FastifyRequest, name: string): string {
  const patternSegments = routeOptions.url!.split("/");
  // Counts path segments from the end, because the target of a request can be a complete URL (http://host/path), which Fastify routes too.
  return (
    url
      .split("?")[0]!
      .replace(/\/$/, "")
      .split("/")
      .at(patternSegments.indexOf(`:${name}`) - patternSegments.length) ?? ""
  );
}

function parseStringArray(text: string, name: string): string[] {
  try {
    const value: unknown = JSON.parse(text);
    if (Array.isArray(value) && value.every((item) => typeof item === "string")) return value;
  } catch {
    // The text is not JSON, so the code below rejects it.
  }
  throw new ActionError(
    "REQUEST_INVALID",
    `the query parameter ${name} must be a JSON array of strings (got ${describeValue(text)})`,
  );
}

export function createRestRequest(
  request: FastifyRequest,
  context: RequestContext,
  onTag: (tag: string) => void = () => undefined,
): RestRequest {
  const params = request.params as Record<string, string>;
  const query = request.query as Record<string, string | string[]>;
  // A handler that accepts a body reads it before it calls the operation. For other handlers, each field of the body is unknown.
  let unreadBodyError: ActionError | null = null;
  function rejectUnreadBody(shape: Shape): void {
    if (context.unknownField === unreadBodyError) delete context.unknownField;
    unreadBodyError = createUnknownFieldError(request.body, shape);
    if (unreadBodyError) context.unknownField ??= unreadBodyError;
  }
  function readBody(): unknown {
    if (context.unknownField === unreadBodyError) delete context.unknownField;
    return request.body;
  }
  if (request.method !== "GET") rejectUnreadBody(NO_FIELDS);
  /** Returns the result of `read`. If `read` fails, returns `fallback`, and reports the error after the access check. */
  function readOrDefer<T, U>(read: () => T, fallback: U): T | U {
    try {
      return read();
    } catch (error) {
      if (!(error instanceof ActionError)) throw error;
      context.deferredError ??= error;
      return fallback;
    }
  }
  function readSingleParameter(name: string): string | undefined {
    const text = query[name];
    if (text === undefined || typeof text === "string") return text;
    throw new ActionError(
      "REQUEST_INVALID",
      `the query parameter ${name} must occur only once in the URL (got it ${text.length} times)`,
    );
  }
  function requireBodyObject(): Record<string, unknown> {
    const body = readBody();
    if (body === undefined || body === null) return {};
    if (typeof body === "object" && !Array.isArray(body)) return body as Record<string, unknown>;
    throw new ActionError("REQUEST_INVALID", `the body must be a JSON object (got ${describeValue(body)})`);
  }
  return {
    context,
    get body() {
      return readBody();
    },
    pathText: (name) => params[name] ?? "",
    pathNames: (name) => getRawPathParameter(request, name).split(",").map(decodeURIComponent),
    pathId: (name) => parsePathId(params[name]),
    pathReference: (name) =>
      parseReference(
        params[name] ?? "",
        readOrDefer(() => parseReferenceKind(query["by"]), null),
      ),
    queryNumber: (name) =>
      readOrDefer(() => {
        const text = query[name];
        if (text === undefined) return undefined;
        if (typeof text === "string" && /^\d+$/.test(text)) return Math.min(Number(text), Number.MAX_SAFE_INTEGER);
        refuseField(name, "a whole number of 0 or more", text);
      }, undefined),
    queryText: (name) => readOrDefer(() => readSingleParameter(name), undefined),
    queryFlag: (name) =>
      readOrDefer(() => {
        const text = query[name] ?? "false";
        if (text === "true" || text === "false") return text === "true";
        refuseField(name, "true or false", text);
      }, false),
    queryStrings: (name) =>
      readOrDefer(() => {
        const text = readSingleParameter(name);
        return text === undefined ? undefined : parseStringArray(text, name);
      }, undefined),
    check: (read) => readOrDefer(read, undefined),
    readExpectedVersions: () => readOrDefer(() => parseIfMatch(request.headers["if-match"]), undefined),
    setTag({ updatedAt }, answer, answerTag = null) {
      onTag(createEntityTag(updatedAt, answerTag));
      return answer;
    },
    setListTag(items, answer) {
      const answerTag = hash("sha256", JSON.stringify(answer), "base64url").slice(0, 22);
      onTag(createEntityTag(computeListVersion(items), answerTag));
      return answer;
    },
    bodyFields(shape) {
      return readOrDefer(() => {
        const object = requireBodyObject();
        const unknownFieldError = shape ? createUnknownFieldError(object, shape) : null;
        if (unknownFieldError) context.unknownField ??= unknownFieldError;
        return object;
      }, {});
    },
    ignoreBodyFields: (names) => rejectUnreadBody(createFlatShape([], names)),
  };
}
