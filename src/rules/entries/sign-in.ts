/** Validates the `where` of an app user's sign-in: columns that identify the user's entry, and hashed columns, such as the password. */

import { ActionError } from "../../errors.js";
import { describeValue, findUnstorableCharacter, isObject } from "../describe-value.js";
import { refuseField, UNSTORABLE_TEXT_FAULT } from "../fields.js";
import type { EntryData } from "./entry-input.js";

const VALUE_MAX_CHARACTERS = 4_096;
const COLUMNS_MAX = 10;

function checkValue(value: unknown, field: string): void {
  // Rejects objects: query operators in them could match any entry. Rejects null: it would match an entry without a password.
  if (typeof value === "number" && Number.isFinite(value)) return;
  if (typeof value === "string" && value !== "" && value.length <= VALUE_MAX_CHARACTERS) {
    if (findUnstorableCharacter(value) < 0) return;
    throw new ActionError("REQUEST_INVALID", `${field} ${UNSTORABLE_TEXT_FAULT}`);
  }
  const receivedText = typeof value === "string" ? `a text of ${value.length} characters` : describeValue(value);
  throw new ActionError(
    "REQUEST_INVALID",
    `${field} must be a number, or a text of 1 to ${VALUE_MAX_CHARACTERS} characters (got ${receivedText})`,
  );
}

/** Values of a sign-in. `identifyingValues` find the app user's entry; `secretValues` are compared with the entry's hashed columns. */
export interface SignInValues {
  identifyingValues: EntryData;
  secretValues: EntryData;
  /** Keys of the counters of failed sign-ins: one counter for each column of `identifyingValues`. */
  attemptKeys: readonly EntryData[];
}

/**
 * Validates the `where` of a sign-in. Without a hashed column, callers could sign in without a secret value.
 * @throws DATA_SOURCE_ACCESS_DENIED without a hashed column; REQUEST_INVALID for other faults
 */
export function parseSignInWhere(where: unknown, hashed: readonly string[]): SignInValues {
  if (!isObject(where) || Object.keys(where).length > COLUMNS_MAX) {
    refuseField("where", `an object with values for at most ${COLUMNS_MAX} columns`, where);
  }
  const entries = Object.entries(where);
  for (const [column, value] of entries) checkValue(value, `where.${column.slice(0, 60).toWellFormed()}`);
  const secretValues = Object.fromEntries(entries.filter(([column]) => hashed.includes(column)));
  const identifyingValues = Object.fromEntries(entries.filter(([column]) => !hashed.includes(column)));
  if (Object.keys(secretValues).length === 0) {
    throw new ActionError("DATA_SOURCE_ACCESS_DENIED", "where must contain a hashed column, such as the password");
  }
  if (Object.keys(identifyingValues).length === 0) {
    throw new ActionError(
      "REQUEST_INVALID",
      "where must contain a column that is not hashed, such as the e-mail address",
    );
  }
  const attemptKeys = Object.entries(identifyingValues).map(([column, value]) => ({ [column]: value }));
  return { identifyingValues, secretValues, attemptKeys };
}
