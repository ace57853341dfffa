/** References to an action or a data source: by id or by name (contract, section 3). */
import { refuseField } from "./fields.js";

export type EntityReference = { readonly id: number } | { readonly name: string };

/** Interpretations of a path segment or an argument. */
export const REFERENCE_KINDS = ["id", "name"] as const;
export type ReferenceKind = (typeof REFERENCE_KINDS)[number];

const ID = /^[1-9]\d{0,15}$/;

/** ID that no row has, for digits that are not an ID. */
const NO_ID = { id: 0 } as const;

function byId(text: string): EntityReference {
  const id = ID.test(text) ? Number(text) : 0;
  return Number.isSafeInteger(id) ? { id } : NO_ID;
}

/** A text of only digits is an ID, and any other text is a name, unless `by` is set. A number is an ID. */
export function referenceOf(value: string | number, by?: ReferenceKind | null): EntityReference {
  const text = String(value);
  if (by === "name") return { name: text };
  return by === "id" || typeof value === "number" || /^\d+$/.test(text) ? byId(text) : { name: text };
}

/** The `by` of a query. @throws REQUEST_INVALID */
export function referenceKind(value: unknown): ReferenceKind | null {
  if (value === undefined) return null;
  if ((REFERENCE_KINDS as readonly unknown[]).includes(value)) return value as ReferenceKind;
  refuseField("by", "id or name", value);
}

/** Unique text of a reference. */
export const referenceKey = (ref: EntityReference): string => ("id" in ref ? `#${ref.id}` : `=${ref.name}`);

/** Name and id as statement parameters; null for the absent one. No name contains U+0000. */
export function referenceParameters(ref: EntityReference): [name: string | null, id: number | null] {
  if ("id" in ref) return [null, ref.id];
  return [ref.name.includes("\0") ? null : ref.name, null];
}
