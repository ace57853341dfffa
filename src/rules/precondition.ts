/** Preconditions of a change: `If-Match` over REST, `ifUpdatedAt` over GraphQL. */
import { hash } from "node:crypto";
import { ActionError } from "../errors.js";

/** Accepted `updatedAt` values, ISO 8601 with milliseconds; undefined: any. */
export type ExpectedTags = readonly string[] | undefined;

/** Separator in a tag between the state that `If-Match` compares and other displayed facts. */
const BEHIND_STATE = ";";

/**
 * The strong entity tag of a state. `shown` are displayed facts that no author changes, such as the firing state of an
 * alert: they affect `If-None-Match` and not `If-Match`. Runs do not change the tag of an action.
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

/** The states of `If-Match`. @throws REQUEST_INVALID */
export const readIfMatch = (header: string | undefined): ExpectedTags =>
  tagsIn(header, "If-Match")?.map((tag) => tag.split(BEHIND_STATE, 1)[0]!);

/** True if `If-None-Match` names the tag, or `*`: the client has this representation. @throws REQUEST_INVALID */
export function isKnownTag(header: string | undefined, tag: string): boolean {
  if (header === undefined) return false;
  return tagsIn(header, "If-None-Match")?.includes(tag.slice(1, -1)) ?? true;
}

/** SQL for the time of a change, at least a millisecond after the previous one, so that two states never share a tag. */
export const NEXT_UPDATED_AT =
  "date_trunc('milliseconds', greatest(clock_timestamp(), updated_at + interval '1 millisecond'))";

/** @throws RESOURCE_CHANGED with the current resource, if it has changed since the given state */
export function requireCurrent<T extends { updatedAt: string }>(resource: T, precondition: ExpectedTags): void {
  if (!precondition || precondition.includes(resource.updatedAt)) return;
  const message = `the resource was changed at ${resource.updatedAt}, after the state that this change started from`;
  throw new ActionError("RESOURCE_CHANGED", message, { resource });
}

/** Item of a list, as it enters the list's state. */
export interface StatedTag {
  id: number;
  updatedAt: string;
}

/**
 * State of a list: it changes whenever an item is added, changed or removed, and does not depend on the order. The tag
 * of the list starts with it.
 */
export const listState = (items: readonly StatedTag[]): string =>
  hash("sha256", JSON.stringify(items.map(({ id, updatedAt }) => `${id} ${updatedAt}`).sort()), "base64url").slice(
    0,
    22,
  );

/**
 * Checks the precondition of a change to an item that is only readable in a list. The tag is the item's `updatedAt`, or
 * that of the list.
 * @param item undefined if it is not in the list
 * @throws RESOURCE_CHANGED with the current item
 */
export function mustBeInList(
  item: StatedTag | undefined,
  lists: readonly (readonly StatedTag[])[],
  precondition: ExpectedTags,
): void {
  if (!precondition || (item && precondition.includes(item.updatedAt))) return;
  if (lists.some((list) => precondition.includes(listState(list)))) return;
  const message = "the resource or its list was changed after the state that this change started from";
  throw new ActionError("RESOURCE_CHANGED", message, item && { resource: item });
}

/** @throws the error of `changed`, if the row has changed since */
export function requireUnchanged(updatedAt: Date, precondition: ExpectedTags, changed: () => ActionError): void {
  if (precondition && !precondition.includes(updatedAt.toISOString())) throw changed();
}

/** Returns the time of a change, at least a millisecond after the previous one, so that two states never share one. */
export const changedAfter = (before: Date | undefined): Date =>
  new Date(Math.max(Date.now(), (before?.getTime() ?? 0) + 1));
