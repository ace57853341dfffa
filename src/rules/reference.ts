/** Parses references to an action or a data source, which are an ID or a name (contract, section 3). */
import { refuseField } from "./fields.js";

export type EntityReference = { readonly id: number } | { readonly name: string };

/** Ways in which a path segment or an argument can be interpreted. */
export const REFERENCE_KINDS = ["id", "name"] as const;
export type ReferenceKind = (typeof REFERENCE_KINDS)[number];

const ID = /^[1-9]\d{0,15}$/;

/** Reference to no row, for digits that cannot be an ID. */
const NO_ID = { id: 0 } as const;

function referenceById(text: string): EntityReference {
  const id = ID.test(text) ? Number(text) : 0;
  return Number.isSafeInteger(id) ? { id } : NO_ID;
}

/** Interprets a reference. Unless `kind` is set, a text of digits is an ID and any other text is a name. A number is an ID. */
export function referenceOf(value: string | number, kind?: ReferenceKind | null): EntityReference {
  const text = String(value);
  if (kind === "name") return { name: text };
  return kind === "id" || typeof value === "number" || /^\d+$/.test(text) ? referenceById(text) : { name: text };
}

/** Returns the `by` parameter of a request. @throws REQUEST_INVALID */
export function referenceKind(value: unknown): ReferenceKind | null {
  if (value === undefined) return null;
  if ((REFERENCE_KINDS as readonly unknown[]).includes(value)) return value as ReferenceKind;
  refuseField("by", "id or name", value);
}

/** Returns a text that is equal only for equal references. */
export const referenceKey = (ref: EntityReference): string => ("id" in ref ? `#${ref.id}` : `=${ref.name}`);

/** Returns name and ID as parameters of a statement, of which one is null. U+0000 stands for no name, because no name contains it. */
export function referenceParameters(ref: EntityReference): [name: string | null, id: number | null] {
  if ("id" in ref) return [null, ref.id];
  return [ref.name.includes("\0") ? null : ref.name, null];
}
