/** Preconditions of a change: `If-Match` over REST, `ifUpdatedAt` over GraphQL. */
import { hash } from "node:crypto";
import { ActionError } from "../errors.js";

/** Accepted `updatedAt` values, ISO 8601 with milliseconds; undefined: any. */
export type ExpectedTags = readonly string[] | undefined;

/** Separates, in an entity tag, the version that `If-Match` compares from facts that no author changes. */
const BEHIND_STATE = ";";

/**
 * Returns the strong entity tag of a version. `shownVariant` describes shown facts that no author changes, such as the
 * firing state of an alert; they affect `If-None-Match` but not `If-Match`.
 */
export const entityTag = (updatedAt: string, shownVariant: string | null = null): string =>
  `"${updatedAt}${shownVariant === null ? "" : BEHIND_STATE + shownVariant}"`;

/* Matches an entity tag. W/ is accepted, because a proxy that compresses weakens the tag, and the state is compared, not its bytes. */
const ENTITY_TAG = /^(?:W\/)?"([\x21\x23-\x7e\x80-\xff]*)"$/;
const TAGS_MAX = 20;

/**
 * Parses the tags of a header; undefined if absent, or `*`.
 * @throws ActionError REQUEST_INVALID for a header that is neither `*` nor entity tags
 */
function tagsIn(header: string | undefined, name: string): string[] | undefined {
  if (header === undefined || header.trim() === "*") return undefined;
  const tags = header.split(",", TAGS_MAX + 1).map((tag) => ENTITY_TAG.exec(tag.trim())?.[1]);
  if (tags.length <= TAGS_MAX && tags.every((tag) => tag !== undefined)) return tags;
  const expected = `* or at most ${TAGS_MAX} entity tags, each in double quotes as ETag has it`;
  throw new ActionError("REQUEST_INVALID", `${name} must be ${expected}`);
}

/** Returns the versions that `If-Match` names. @throws REQUEST_INVALID */
export const readIfMatch = (header: string | undefined): ExpectedTags =>
  tagsIn(header, "If-Match")?.map((tag) => tag.split(BEHIND_STATE, 1)[0]!);

/** True if `If-None-Match` names the tag, or `*`: the client has this representation. @throws REQUEST_INVALID */
export function isKnownTag(header: string | undefined, tag: string): boolean {
  if (header === undefined) return false;
  return tagsIn(header, "If-None-Match")?.includes(tag.slice(1, -1)) ?? true;
}

/** SQL of the time of a change, at least a millisecond after the previous one, so that two versions never have the same tag. */
export const NEXT_UPDATED_AT =
  "date_trunc('milliseconds', greatest(clock_timestamp(), updated_at + interval '1 millisecond'))";

/** @throws RESOURCE_CHANGED with the current resource, if its version is not one of the expected ones */
export function requireCurrent<T extends { updatedAt: string }>(resource: T, precondition: ExpectedTags): void {
  if (!precondition || precondition.includes(resource.updatedAt)) return;
  const message = `the resource was changed at ${resource.updatedAt}, after the state that this change started from`;
  throw new ActionError("RESOURCE_CHANGED", message, { resource });
}

/** What the version of a list depends on for each item. */
export interface StatedTag {
  id: number;
  updatedAt: string;
}

/** Returns the version of a list. It changes when an item is added, changed or removed, and does not depend on the order. */
export const listState = (items: readonly StatedTag[]): string =>
  hash("sha256", JSON.stringify(items.map(({ id, updatedAt }) => `${id} ${updatedAt}`).sort()), "base64url").slice(
    0,
    22,
  );

/**
 * Checks the precondition of a change to an item that can only be read in a list. The tag may be the item's `updatedAt`
 * or that of the list.
 * @param item undefined if it is not in the list
 * @throws RESOURCE_CHANGED with the current item
 */
export function requireInList(
  item: StatedTag | undefined,
  lists: readonly (readonly StatedTag[])[],
  precondition: ExpectedTags,
): void {
  if (!precondition || (item && precondition.includes(item.updatedAt))) return;
  if (lists.some((list) => precondition.includes(listState(list)))) return;
  const message = "the resource or its list was changed after the state that this change started from";
  throw new ActionError("RESOURCE_CHANGED", message, item && { resource: item });
}

/** @throws the error that `changed` returns, if the row's version is not one of the expected ones */
export function requireUnchanged(updatedAt: Date, precondition: ExpectedTags, changed: () => ActionError): void {
  if (precondition && !precondition.includes(updatedAt.toISOString())) throw changed();
}

/** Returns the time of a change, at least a millisecond after the previous one, so that two versions never have the same time. */
export const changeTimeAfter = (before: Date | undefined): Date =>
  new Date(Math.max(Date.now(), (before?.getTime() ?? 0) + 1));
