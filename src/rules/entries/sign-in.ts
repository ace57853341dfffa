/** What a page gives to sign its user in: values by column, one of them a secret. Pure. */
import { ActionError } from "../../errors.js";
import { described, isObject, unstorableAt } from "../described.js";
import type { EntryData } from "./entry-input.js";

const VALUE_MAX_CHARACTERS = 4_096;
const COLUMNS_MAX = 10;

function checkValue(value: unknown, field: string): void {
  // Operators would ask instead of name, and nothing is compared with nothing.
  const isText = typeof value === "string" && value !== "" && value.length <= VALUE_MAX_CHARACTERS;
  if ((isText && unstorableAt(value) < 0) || (typeof value === "number" && Number.isFinite(value))) return;
  const came = typeof value === "string" ? `a text of ${value.length} characters` : described(value);
  throw new ActionError("REQUEST_INVALID", `${field} must be a text or a number; ${came} came`);
}

/**
 * Which values name the entry, and which prove it: those of hashed columns. Both must be there, so that nobody is signed in by what
 * others may know.
 * @throws REQUEST_INVALID
 */
export function parseSignIn(where: unknown, hashed: readonly string[]): { known: EntryData; secrets: EntryData } {
  if (!isObject(where) || Object.keys(where).length > COLUMNS_MAX) {
    throw new ActionError("REQUEST_INVALID", `where must be an object of columns and values; ${described(where)} came`);
  }
  const entries = Object.entries(where);
  for (const [column, value] of entries) checkValue(value, `where.${column.slice(0, 60)}`);
  const secrets = entries.filter(([column]) => hashed.includes(column));
  const known = entries.filter(([column]) => !hashed.includes(column));
  if (secrets.length === 0 || known.length === 0) {
    const message = "where must name an entry by a column, and prove it by one that a hook of the data source hashes";
    throw new ActionError("REQUEST_INVALID", message);
  }
  return { known: Object.fromEntries(known), secrets: Object.fromEntries(secrets) };
}
