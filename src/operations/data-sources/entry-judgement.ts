/** Prepares entries for writing: checks the writer's right, runs the hooks, computes hashes, and serializes. Stores nothing. */
import { ActionError } from "../../errors.js";
import { meetsTests } from "../../rules/caller-rules.js";
import { accessDenied, type EntryGrant, requireColumns } from "../../rules/entries/entry-access.js";
import { type EntryData, entryText } from "../../rules/entries/entry-input.js";
import { textHooks } from "../../rules/entries/hooks.js";
import { checkHashable, type HashTurn, hashText } from "../records/hashes.js";
import type { StoredDataSource } from "./data-source-rows.js";

/** Maximum number of hashes for one request of the app itself, and for one of a page. A hash takes 30 ms of a processor. */
const HASHES_PER_REQUEST = 2_000;
const HASHES_OF_PAGES = 10;

/** Data that can be stored. */
export interface ReadyEntry {
  data: EntryData;
  text: string;
}

export type CheckEntry = (data: EntryData, place: string) => Promise<ReadyEntry>;

/**
 * Returns a function that prepares the entries of one request one by one.
 * @throws (in that function) DATA_SOURCE_ACCESS_DENIED, REQUEST_INVALID, OVERLOADED
 */
export function createEntryValidator(
  source: Pick<StoredDataSource, "hooks" | "hashedColumns">,
  verb: "insert" | "update",
  { grant, trusted, turn }: { grant: EntryGrant; trusted: boolean; turn: HashTurn },
): CheckEntry {
  const hashesMax = trusted ? HASHES_PER_REQUEST : HASHES_OF_PAGES;
  const hooked = textHooks(source.hooks, verb);
  let hashes = 0;

  async function hashColumns(data: EntryData): Promise<EntryData> {
    const columns = source.hashedColumns.filter((column) => Object.hasOwn(data, column));
    // A missing password stays null, which equals nothing.
    const input = columns.filter((column) => data[column] !== null && data[column] !== "");
    if (input.length === 0) return data;
    hashes += input.length;
    if (hashes > hashesMax) {
      throw new ActionError(
        "REQUEST_INVALID",
        `one request can hash at most ${hashesMax} values; send fewer entries at once`,
      );
    }
    const result = { ...data };
    for (const column of input) result[column] = await hashText(checkHashable(data[column], column), turn);
    return result;
  }

  return async (input, place) => {
    // Serializing comes before hashing, because a failure then costs no hash.
    const text = entryText(input, place);
    if (Object.keys(input).some((column) => !grant.mayTouch(column))) throw accessDenied();
    const data = hooked(input);
    requireColumns(grant, new Set(Object.keys(data)), "data");
    // The new data must meet the tests of the rule, and an update must not change columns that it does not name.
    if (!meetsTests(data, grant.tests)) throw accessDenied();
    const done = await hashColumns(data);
    return done === input ? { data: input, text } : toReadyEntry(done, place);
  };
}

/** @throws REQUEST_INVALID, PAYLOAD_TOO_LARGE */
export const toReadyEntry = (data: EntryData, place: string): ReadyEntry => ({ data, text: entryText(data, place) });
