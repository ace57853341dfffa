/** What a change says of the state that it started from: `If-Match` over REST, `ifUpdatedAt` over GraphQL. Finds no row. */
import { hash } from "node:crypto";
import { ActionError } from "../errors.js";

/** The `updatedAt` that are acceptable, ISO 8601 with milliseconds; undefined: whatever stands. */
export type Precondition = readonly string[] | undefined;

/** Stands in a tag between the state that `If-Match` compares and what else the representation shows. */
const BEHIND_STATE = ";";

/**
 * The strong entity tag of a state. `shown` is what the representation shows beside it and no author changes, such as what an alert fires
 * for: a tag that differs only there is another one for `If-None-Match`, and the same for `If-Match`. Runs change no tag of an action.
 */
export const entityTag = (updatedAt: string, shown: string | null = null): string =>
  `"${updatedAt}${shown === null ? "" : BEHIND_STATE + shown}"`;

/* W/ is let pass: a proxy that compresses weakens the tag, and what is compared is the state, not its bytes. */
const ENTITY_TAG = /^(?:W\/)?"([\x21\x23-\x7e\x80-\xff]*)"$/;
const TAGS_MAX = 20;

/** The tags of a header; undefined: absent, or `*`. @throws REQUEST_INVALID for a header that is neither `*` nor entity tags */
function tagsIn(header: string | undefined, name: string): string[] | undefined {
  if (header === undefined || header.trim() === "*") return undefined;
  const tags = header.split(",", TAGS_MAX + 1).map((tag) => ENTITY_TAG.exec(tag.trim())?.[1]);
  if (tags.length <= TAGS_MAX && tags.every((tag) => tag !== undefined)) return tags;
  const expected = `* or at most ${TAGS_MAX} entity tags, each in double quotes as ETag has it`;
  throw new ActionError("REQUEST_INVALID", `${name} must be ${expected}`);
}

/** The states of `If-Match`. @throws REQUEST_INVALID */
export const readIfMatch = (header: string | undefined): Precondition =>
  tagsIn(header, "If-Match")?.map((tag) => tag.split(BEHIND_STATE, 1)[0]!);

/** True if `If-None-Match` names the tag, or `*`: the client has this representation. @throws REQUEST_INVALID */
export function isKnownTag(header: string | undefined, tag: string): boolean {
  if (header === undefined) return false;
  return tagsIn(header, "If-None-Match")?.includes(tag.slice(1, -1)) ?? true;
}

/** SQL: the time of a change of the row, at least a millisecond after the one before, so that two states never share a tag. */
export const NEXT_UPDATED_AT =
  "date_trunc('milliseconds', greatest(clock_timestamp(), updated_at + interval '1 millisecond'))";

/** @throws RESOURCE_CHANGED with the resource as it stands, if it was changed after the state that the change started from */
export function mustBeAt<T extends { updatedAt: string }>(resource: T, precondition: Precondition): void {
  if (!precondition || precondition.includes(resource.updatedAt)) return;
  const message = `the resource was changed at ${resource.updatedAt}, after the state that this change started from`;
  throw new ActionError("RESOURCE_CHANGED", message, { resource });
}

/** Item of a list, as its state goes into that of the list. */
export interface Stated {
  id: number;
  updatedAt: string;
}

/** State of a list: another one after each item that is added, changed or removed, whatever the order. The tag of the list begins with it. */
export const listState = (items: readonly Stated[]): string =>
  hash("sha256", JSON.stringify(items.map(({ id, updatedAt }) => `${id} ${updatedAt}`).sort()), "base64url").slice(
    0,
    22,
  );

/**
 * Checks a change of an item that has no read of its own: the state is the item's `updatedAt`, or that of a list with the item.
 * @param item undefined if the list does not have it
 * @throws RESOURCE_CHANGED with the item as it stands
 */
export function mustBeInList(
  item: Stated | undefined,
  lists: readonly (readonly Stated[])[],
  precondition: Precondition,
): void {
  if (!precondition || (item && precondition.includes(item.updatedAt))) return;
  if (lists.some((list) => precondition.includes(listState(list)))) return;
  const message = "the resource or its list was changed after the state that this change started from";
  throw new ActionError("RESOURCE_CHANGED", message, item && { resource: item });
}

/** @throws what `changed` makes, where the row was changed since */
export function mustStand(updatedAt: Date, precondition: Precondition, changed: () => ActionError): void {
  if (precondition && !precondition.includes(updatedAt.toISOString())) throw changed();
}

/** The moment of a change, later than the one before by a millisecond at least: two states never share one. */
export const changedAfter = (before: Date | undefined): Date =>
  new Date(Math.max(Date.now(), (before?.getTime() ?? 0) + 1));
