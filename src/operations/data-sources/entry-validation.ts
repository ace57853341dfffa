/**
 * Prepares entries for writing: checks the caller's rights, runs hooks, hashes passwords and other hashed columns, and
 * serializes the entries to JSON. Writes nothing to the database.
 */
import { ActionError } from "../../errors.js";
import { meetsColumnConditions } from "../../rules/caller-rules.js";
import {
  checkRequiredColumns,
  createAccessDeniedError,
  type EntryPermissions,
} from "../../rules/entries/entry-access.js";
import { type EntryData, validateAndSerializeEntry } from "../../rules/entries/entry-input.js";
import { createTextNormalizer } from "../../rules/entries/hooks.js";
import { type HashQueueKey, hashText, requireHashableText } from "../records/hashes.js";
import type { StoredDataSource } from "./data-source-rows.js";

/** Maximum number of values that a request can write to hashed columns if it is not from a page. One hash takes 30 ms of a core. */
const MAX_HASHES_OF_TRUSTED_REQUEST = 2_000;
/** Maximum number of values that one request of a page can write to hashed columns. */
const MAX_HASHES_OF_PAGE_REQUEST = 10;

export interface StorableEntry {
  data: EntryData;
  text: string;
}

/** Validates an entry. @param label names the entry in error messages, such as "entry 3 of the import" */
export type EntryValidator = (data: EntryData, label: string) => Promise<StorableEntry>;

/**
 * Returns a function that validates one entry. Use the same function for all entries of a request, because it counts
 * how many values the request has hashed. The function throws DATA_SOURCE_ACCESS_DENIED, REQUEST_INVALID, PAYLOAD_TOO_LARGE, OVERLOADED.
 */
export function createEntryValidator(
  source: Pick<StoredDataSource, "hooks" | "hashedColumns">,
  verb: "insert" | "update",
  { grant, trusted, queueKey }: { grant: EntryPermissions; trusted: boolean; queueKey: HashQueueKey },
): EntryValidator {
  const hashesMax = trusted ? MAX_HASHES_OF_TRUSTED_REQUEST : MAX_HASHES_OF_PAGE_REQUEST;
  const applyTextHooks = createTextNormalizer(source.hooks, verb);
  let hashes = 0;

  async function hashColumns(data: EntryData): Promise<EntryData> {
    const columns = source.hashedColumns.filter((column) => Object.hasOwn(data, column));
    // Null and an empty text are stored without a hash, because no sign-in accepts them as a password.
    const input = columns.filter((column) => data[column] !== null && data[column] !== "");
    if (input.length === 0) return data;
    hashes += input.length;
    if (hashes > hashesMax) {
      throw new ActionError(
        "REQUEST_INVALID",
        `one request can write at most ${hashesMax} values to hashed columns (got ${hashes} or more); ` +
          "send fewer entries in one request",
      );
    }
    const result = { ...data };
    for (const column of input) result[column] = await hashText(requireHashableText(data[column], column), queueKey);
    return result;
  }

  return async (input, label) => {
    // Checks the entry's size and structure before hashing, so that no time is spent on hashes for an invalid entry.
    const text = validateAndSerializeEntry(input, label);
    if (Object.keys(input).some((column) => !grant.mayAccessColumn(column))) throw createAccessDeniedError();
    const data = applyTextHooks(input);
    checkRequiredColumns(grant, new Set(Object.keys(data)), "data");
    // The access rule may contain conditions on column values. The written data must meet these conditions too.
    if (!meetsColumnConditions(data, grant.conditions)) throw createAccessDeniedError();
    const done = await hashColumns(data);
    return done === input ? { data: input, text } : toStorableEntry(done, label);
  };
}

/** Serializes an entry to JSON. @throws REQUEST_INVALID, PAYLOAD_TOO_LARGE */
export const toStorableEntry = (data: EntryData, label: string): StorableEntry => ({
  data,
  text: validateAndSerializeEntry(data, label),
});
