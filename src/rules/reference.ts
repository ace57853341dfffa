/** Parses references to actions and data sources (contract, section 3): a reference is an ID or a name. */
import { refuseField } from "./fields.js";

export type IdOrName = { readonly id: number } | { readonly name: string };

/** Values of the request parameter `by`, which says if a reference is an ID or a name. */
export const REFERENCE_KINDS = ["id", "name"] as const;
export type ReferenceKind = (typeof REFERENCE_KINDS)[number];

const ID_PATTERN = /^[1-9]\d{0,15}$/;

/** Reference that matches no row, for a number that cannot be an ID. */
const UNMATCHED_REFERENCE = { id: 0 } as const;

function createIdReference(text: string): IdOrName {
  const id = ID_PATTERN.test(text) ? Number(text) : 0;
  return Number.isSafeInteger(id) ? { id } : UNMATCHED_REFERENCE;
}

/** Parses a reference. Without `kind`, a number or a text of digits is an ID, and any other text is a name. */
export function parseReference(value: string | number, kind?: ReferenceKind | null): IdOrName {
  const text = String(value);
  if (kind === "name") return { name: text };
  return kind === "id" || typeof value === "number" || /^\d+$/.test(text) ? createIdReference(text) : { name: text };
}

/** Parses the request parameter `by`; null if absent. @throws REQUEST_INVALID */
export function parseReferenceKind(value: unknown): ReferenceKind | null {
  if (value === undefined) return null;
  if ((REFERENCE_KINDS as readonly unknown[]).includes(value)) return value as ReferenceKind;
  refuseField("by", "id or name", value);
}

export const getReferenceKey = (ref: IdOrName): string => ("id" in ref ? `#${ref.id}` : `=${ref.name}`);

/** Returns the name and the ID as SQL parameters; the missing one is null. A name with U+0000 becomes null too: PostgreSQL rejects it. */
export function getReferenceSqlParameters(ref: IdOrName): [name: string | null, id: number | null] {
  if ("id" in ref) return [null, ref.id];
  return [ref.name.includes("\0") ? null : ref.name, null];
}
