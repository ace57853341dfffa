/**
 * Preconditions of a change: the header `If-Match` in REST, and the argument `ifUpdatedAt` in GraphQL. A change fails if the resource does
 * not have the expected version.
 */

import { hash } from "node:crypto";
import { ActionError } from "../errors.js";
import { describeValue } from "./describe-value.js";

/** Allowed values of the resource's `updatedAt` (ISO 8601 with milliseconds); undefined allows every value. */
export type ExpectedVersions = readonly string[] | undefined;

/** Separates the two parts of an entity tag: the version (`updatedAt`), and state that only the service changes. */
const TAG_SEPARATOR = ";";

/**
 * Returns the entity tag of a resource. `If-None-Match` compares the whole tag; `If-Match` ignores `serviceState`.
 * @param serviceState state that only the service changes, for example if an alert fires; null for none
 */
export const createEntityTag = (updatedAt: string, serviceState: string | null = null): string =>
  `"${updatedAt}${serviceState === null ? "" : TAG_SEPARATOR + serviceState}"`;

/** Matches an entity tag. Accepts the prefix W/, which proxies add when they compress a response. */
const ENTITY_TAG_PATTERN = /^(?:W\/)?"([\x21\x23-\x7e\x80-\xff]*)"$/;
const TAGS_MAX = 20;

/** Parses a list of entity tags; undefined if the header is absent or `*`. @throws ActionError REQUEST_INVALID for any other header */
function parseEntityTags(header: string | undefined, name: string): string[] | undefined {
  if (header === undefined || header.trim() === "*") return undefined;
  const tags = header.split(",", TAGS_MAX + 1).map((tag) => ENTITY_TAG_PATTERN.exec(tag.trim())?.[1]);
  if (tags.length <= TAGS_MAX && tags.every((tag) => tag !== undefined)) return tags;
  const expected = `* or at most ${TAGS_MAX} entity tags, each in double quotes as in the header ETag`;
  throw new ActionError("REQUEST_INVALID", `${name} must be ${expected} (got ${describeValue(header)})`);
}

/** Returns the versions that the header `If-Match` allows; undefined if it is absent or `*`. @throws REQUEST_INVALID */
export const parseIfMatch = (header: string | undefined): ExpectedVersions =>
  parseEntityTags(header, "If-Match")?.map((tag) => tag.split(TAG_SEPARATOR, 1)[0]!);

/**
 * True if the header `If-None-Match` is `*` or contains the tag: the client then already has the current state. @throws REQUEST_INVALID
 */
export function matchesIfNoneMatch(header: string | undefined, tag: string): boolean {
  if (header === undefined) return false;
  return parseEntityTags(header, "If-None-Match")?.includes(tag.slice(1, -1)) ?? true;
}

/** SQL for the new `updated_at` of a row: at least a millisecond after the old one, so that two versions never have the same tag. */
export const NEXT_UPDATED_AT_SQL =
  "date_trunc('milliseconds', greatest(clock_timestamp(), updated_at + interval '1 millisecond'))";

/** @throws RESOURCE_CHANGED with the current resource, if its `updatedAt` is not one of the expected values */
export function requireExpectedVersion<T extends { updatedAt: string }>(
  resource: T,
  precondition: ExpectedVersions,
): void {
  if (!precondition || precondition.includes(resource.updatedAt)) return;
  const message = `the resource was changed at ${resource.updatedAt}, after the version that the request expects; read it again`;
  throw new ActionError("RESOURCE_CHANGED", message, { resource });
}

export interface ListItemVersion {
  id: number;
  updatedAt: string;
}

/** Returns the version of a list. It changes when an item is added, changed or removed, but not with the order of the items. */
export const computeListVersion = (items: readonly ListItemVersion[]): string =>
  hash("sha256", JSON.stringify(items.map(({ id, updatedAt }) => `${id} ${updatedAt}`).sort()), "base64url").slice(
    0,
    22,
  );

/**
 * Checks the precondition of a change to an item that can be read only in a list. The expected value is the item's `updatedAt`, or the
 * version of a list that contains it.
 * @param item current item; undefined if there is none
 * @throws RESOURCE_CHANGED with the current item
 */
export function requireExpectedItemVersion(
  item: ListItemVersion | undefined,
  lists: readonly (readonly ListItemVersion[])[],
  precondition: ExpectedVersions,
): void {
  if (!precondition || (item && precondition.includes(item.updatedAt))) return;
  if (lists.some((list) => precondition.includes(computeListVersion(list)))) return;
  const message = "the resource or its list was changed after the version that the request expects; read it again";
  throw new ActionError("RESOURCE_CHANGED", message, item && { resource: item });
}

/** @throws the error that `createError` creates, if the row's `updatedAt` is not one of the expected values */
export function requireExpectedRowVersion(
  updatedAt: Date,
  precondition: ExpectedVersions,
  createError: () => ActionError,
): void {
  if (precondition && !precondition.includes(updatedAt.toISOString())) throw createError();
}

/** Returns the new `updatedAt` of a row: at least a millisecond after `before`, so that two versions never have the same time. */
export const computeNextUpdatedAt = (before: Date | undefined): Date =>
  new Date(Math.max(Date.now(), (before?.getTime() ?? 0) + 1));
