/** Validates the values with which a page signs in: columns with values, one of them a password or other secret. */

import { ActionError } from "../../errors.js";
import { describeValue, isObject, unstorableCharacterIndex } from "../described.js";
import { refuseField } from "../fields.js";
import type { EntryData } from "./entry-input.js";

const VALUE_MAX_CHARACTERS = 4_096;
const COLUMNS_MAX = 10;

function checkValue(value: unknown, field: string): void {
  // Operators would search instead of identifying an entry, and null must not equal null.
  const isText = typeof value === "string" && value !== "" && value.length <= VALUE_MAX_CHARACTERS;
  if ((isText && unstorableCharacterIndex(value) < 0) || (typeof value === "number" && Number.isFinite(value))) return;
  const receivedText = typeof value === "string" ? `a text of ${value.length} characters` : describeValue(value);
  throw new ActionError("REQUEST_INVALID", `${field} must be a text or a number (got ${receivedText})`);
}

/** A sign-in: values that identify an entry, values of hashed columns that prove it, and the keys by which attempts are counted. */
export interface SignIn {
  known: EntryData;
  secrets: EntryData;
  /** Subjects of an attempt. Each is counted separately, so that trying another value does not reset the count. */
  subjects: readonly EntryData[];
}

/**
 * A sign-in identifies an entry by a column and proves it by a hashed one, so that public values cannot sign in.
 * @throws DATA_SOURCE_ACCESS_DENIED if no hashed column is named, REQUEST_INVALID
 */
export function parseSignIn(where: unknown, hashed: readonly string[]): SignIn {
  if (!isObject(where) || Object.keys(where).length > COLUMNS_MAX) {
    refuseField("where", "an object of columns and values", where);
  }
  const entries = Object.entries(where);
  for (const [column, value] of entries) checkValue(value, `where.${column.slice(0, 60).toWellFormed()}`);
  const secrets = Object.fromEntries(entries.filter(([column]) => hashed.includes(column)));
  const knownColumns = Object.fromEntries(entries.filter(([column]) => !hashed.includes(column)));
  if (Object.keys(secrets).length === 0) {
    throw new ActionError("DATA_SOURCE_ACCESS_DENIED", "where must name a column that a hook hashes");
  }
  if (Object.keys(knownColumns).length === 0) {
    throw new ActionError("REQUEST_INVALID", "where must name an entry by a column that is not hashed");
  }
  const subjects = Object.entries(knownColumns).map(([column, value]) => ({ [column]: value }));
  return { known: knownColumns, secrets, subjects };
}
