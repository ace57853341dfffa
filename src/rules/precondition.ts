/** What a change says of the state that it started from: `If-Match` over REST, `ifUpdatedAt` over GraphQL. Finds no row. */
import { ActionError } from "../errors.js";

/** The `updatedAt` that are acceptable, ISO 8601 with milliseconds; undefined: whatever stands. */
export type Precondition = readonly string[] | undefined;

/** The strong entity tag of what was changed last at that moment. Runs touch no `updatedAt`, so they change no tag. */
export const entityTag = (updatedAt: string): string => `"${updatedAt}"`;

/* W/ is let pass: a proxy that compresses weakens the tag, and what is compared is the state, not its bytes. */
const ENTITY_TAG = /^(?:W\/)?"([\x21\x23-\x7e\x80-\xff]*)"$/;
const TAGS_MAX = 20;

/** @throws REQUEST_INVALID for a header that is neither `*` nor entity tags */
export function readIfMatch(header: string | undefined): Precondition {
  if (header === undefined || header.trim() === "*") return undefined;
  const tags = header.split(",", TAGS_MAX + 1).map((tag) => ENTITY_TAG.exec(tag.trim())?.[1]);
  if (tags.length <= TAGS_MAX && tags.every((tag) => tag !== undefined)) return tags;
  const expected = `* or at most ${TAGS_MAX} entity tags, each in double quotes as ETag has it`;
  throw new ActionError("REQUEST_INVALID", `If-Match must be ${expected}`);
}

/** @throws what `changed` makes, where the row was changed since */
export function mustStand(updatedAt: Date, precondition: Precondition, changed: () => ActionError): void {
  if (precondition && !precondition.includes(updatedAt.toISOString())) throw changed();
}

/** The moment of a change, later than the one before by a millisecond at least: two states never share one. */
export const changedAfter = (before: Date | undefined): Date =>
  new Date(Math.max(Date.now(), (before?.getTime() ?? 0) + 1));
