/**
 * Prepares entries for writing: checks the writer's rights, runs the hooks, computes hashes, and serializes the entries
 * to JSON. Stores nothing.
 */
import { ActionError } from "../../errors.js";
import { meetsTests } from "../../rules/caller-rules.js";
import { accessDenied, type EntryGrant, requireColumns } from "../../rules/entries/entry-access.js";
import { type EntryData, entryText } from "../../rules/entries/entry-input.js";
import { textHooks } from "../../rules/entries/hooks.js";
import { checkHashable, type HashTurn, hashText } from "../records/hashes.js";
import type { StoredDataSource } from "./data-source-rows.js";

/**
 * Maximum number of hashes in one request of a trusted caller, such as an editor or an action. A hash takes 30 ms of a
 * core.
 */
const HASHES_PER_REQUEST = 2_000;
/** Maximum number of hashes in one request of a page. */
const HASHES_OF_PAGES = 10;

/** A validated entry that can be stored: its data, and the same data as JSON. */
export interface ReadyEntry {
  data: EntryData;
  text: string;
}

/** Validates an entry. @param label describes the entry in error messages, such as "entry 3 of the import" */
export type EntryValidator = (data: EntryData, label: string) => Promise<ReadyEntry>;

/**
 * Returns a function that validates one entry. Use one function for all entries of a request, because it counts their
 * hashes. The function throws DATA_SOURCE_ACCESS_DENIED, REQUEST_INVALID, OVERLOADED
 */
export function createEntryValidator(
  source: Pick<StoredDataSource, "hooks" | "hashedColumns">,
  verb: "insert" | "update",
  { grant, trusted, turn }: { grant: EntryGrant; trusted: boolean; turn: HashTurn },
): EntryValidator {
  const hashesMax = trusted ? HASHES_PER_REQUEST : HASHES_OF_PAGES;
  const applyTextHooks = textHooks(source.hooks, verb);
  let hashes = 0;

  async function hashColumns(data: EntryData): Promise<EntryData> {
    const columns = source.hashedColumns.filter((column) => Object.hasOwn(data, column));
    // An empty password is not hashed. It matches no password at a sign-in.
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
    for (const column of input) result[column] = await hashText(checkHashable(data[column], column), turn);
    return result;
  }

  return async (input, label) => {
    // Serializes before hashing, because an invalid entry is then rejected without the cost of a hash.
    const text = entryText(input, label);
    if (Object.keys(input).some((column) => !grant.mayTouch(column))) throw accessDenied();
    const data = applyTextHooks(input);
    requireColumns(grant, new Set(Object.keys(data)), "data");
    // The written data must pass the tests of the access rule, like the entries that the caller can read.
    if (!meetsTests(data, grant.tests)) throw accessDenied();
    const done = await hashColumns(data);
    return done === input ? { data: input, text } : toReadyEntry(done, label);
  };
}

/** Serializes an entry. @throws REQUEST_INVALID, PAYLOAD_TOO_LARGE */
export const toReadyEntry = (data: EntryData, label: string): ReadyEntry => ({ data, text: entryText(data, label) });
