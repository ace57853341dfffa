/** A REST request as the routes read it: IDs, query, body. Faults are reported after the gate has checked the caller. */

import { hash } from "node:crypto";
import type { FastifyRequest } from "fastify";
import { ActionError } from "../../errors.js";
import { refuseField } from "../../rules/fields.js";
import {
  computeListVersion,
  createEntityTag,
  type ExpectedTags,
  type ListItemVersion,
  readIfMatch,
} from "../../rules/precondition.js";
import { type EntityReference, parseReference, parseReferenceKind } from "../../rules/reference.js";
import { createUnknownFieldError, type Shape } from "../../rules/unknown-fields.js";
import type { RequestContext } from "../context.js";

export interface RestRequest {
  context: RequestContext;
  /** The parsed JSON body; undefined when there was none. */
  body: unknown;
  /** Returns a path parameter as text. */
  param(name: string): string;
  /** Returns a path parameter as a list of names. They are separated by commas; a comma in a name is written %2C. */
  names(name: string): string[];
  /** Returns a path parameter as an ID; 0, which no row has, if it is not a positive integer. */
  id(name: string): number;
  /** Returns a path parameter with an ID or a name. With `?by=name` it is always a name. */
  reference(name: string): EntityReference;
  /** Returns a query parameter as a whole number. */
  number(name: string): number | undefined;
  /** Returns a query parameter as text. */
  text(name: string): string | undefined;
  /** Returns a query parameter as a boolean; false if absent. */
  flag(name: string): boolean;
  /** Returns a query parameter that is a JSON array of strings. */
  strings(name: string): string[] | undefined;
  /**
   * Returns the result of `read`. If it throws, the error is reported after the access check, so that a caller without access does not
   * learn it.
   */
  check<T>(read: () => T): T | undefined;
  /** Returns the versions in `If-Match` on which the change may be based. */
  ifMatch(): ExpectedTags;
  /**
   * Sets the version of the returned resource for the `ETag` header. Without a version, the ETag of a read is a digest of its body. Returns
   * the response.
   */
  at<T extends object>(state: { updatedAt: string }, answer: T, answerTag?: string | null): T;
  /** Sets the version of the returned list. `If-Match` then accepts the version for each of its items. Returns the response. */
  ofList<T extends object>(items: readonly ListItemVersion[], answer: T): T;
  /**
   * Returns the body as an object, `{}` if there was none.
   * @param shape fields that the body may have, unless the operation checks them itself: it then reports an unknown field after all other
   * faults, by `reportUnknownField`
   */
  object(shape?: Shape): Record<string, unknown>;
}

export function toId(text: string | undefined): number {
  const id = /^[1-9]\d{0,15}$/.test(text ?? "") ? Number(text) : 0;
  return Number.isSafeInteger(id) ? id : 0;
}

/** Returns a segment of the path as it was sent, percent-encoded. */
function rawSegment({ url, routeOptions }: FastifyRequest, name: string): string {
  const pattern = routeOptions.url!.split("/");
  // Segments are counted from the end, because the pattern does not contain a path prefix.
  return (
    url
      .split("?")[0]!
      .replace(/\/$/, "")
      .split("/")
      .at(pattern.indexOf(`:${name}`) - pattern.length) ?? ""
  );
}

function stringsIn(text: string, name: string): string[] {
  try {
    const value: unknown = JSON.parse(text);
    if (Array.isArray(value) && value.every((item) => typeof item === "string")) return value;
  } catch {
    // Text that is not JSON is rejected after this block.
  }
  throw new ActionError("REQUEST_INVALID", `${name} must be a JSON array of strings`);
}

export function restRequest(
  request: FastifyRequest,
  context: RequestContext,
  onTag: (tag: string) => void = () => undefined,
): RestRequest {
  const params = request.params as Record<string, string>;
  const query = request.query as Record<string, string | string[]>;
  const { body } = request;
  /** Reads a value. A fault is reported after the gate has checked the caller, so that REST and GraphQL report faults in the same order. */
  function readOrDefer<T, U>(read: () => T, otherwise: U): T | U {
    try {
      return read();
    } catch (error) {
      if (!(error instanceof ActionError)) throw error;
      context.deferred ??= error;
      return otherwise;
    }
  }
  function readSingleParameter(name: string): string | undefined {
    const text = query[name];
    if (text === undefined || typeof text === "string") return text;
    throw new ActionError("REQUEST_INVALID", `${name} must be given once (got it ${text.length} times)`);
  }
  function bodyObject(): Record<string, unknown> {
    if (body === undefined || body === null) return {};
    if (typeof body === "object" && !Array.isArray(body)) return body as Record<string, unknown>;
    throw new ActionError("REQUEST_INVALID", "the body must be a JSON object");
  }
  return {
    context,
    body,
    param: (name) => params[name] ?? "",
    names: (name) => rawSegment(request, name).split(",").map(decodeURIComponent),
    id: (name) => toId(params[name]),
    reference: (name) =>
      parseReference(
        params[name] ?? "",
        readOrDefer(() => parseReferenceKind(query["by"]), null),
      ),
    number: (name) =>
      readOrDefer(() => {
        const text = query[name];
        if (text === undefined) return undefined;
        if (typeof text === "string" && /^\d+$/.test(text)) return Math.min(Number(text), Number.MAX_SAFE_INTEGER);
        refuseField(name, "a whole number from 0", text);
      }, undefined),
    text: (name) => readOrDefer(() => readSingleParameter(name), undefined),
    flag: (name) =>
      readOrDefer(() => {
        const text = query[name] ?? "false";
        if (text === "true" || text === "false") return text === "true";
        refuseField(name, "true or false", text);
      }, false),
    strings: (name) =>
      readOrDefer(() => {
        const text = readSingleParameter(name);
        return text === undefined ? undefined : stringsIn(text, name);
      }, undefined),
    check: (read) => readOrDefer(read, undefined),
    ifMatch: () => readOrDefer(() => readIfMatch(request.headers["if-match"]), undefined),
    at({ updatedAt }, answer, answerTag = null) {
      onTag(createEntityTag(updatedAt, answerTag));
      return answer;
    },
    ofList(items, answer) {
      const answerTag = hash("sha256", JSON.stringify(answer), "base64url").slice(0, 22);
      onTag(createEntityTag(computeListVersion(items), answerTag));
      return answer;
    },
    object(shape) {
      return readOrDefer(() => {
        const object = bodyObject();
        const unknown = shape ? createUnknownFieldError(object, shape) : null;
        if (unknown) context.unknownField ??= unknown;
        return object;
      }, {});
    },
  };
}
