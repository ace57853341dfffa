/** Checks the names of columns, and finds columns of entries that are new for their data source. */

import { findUnstorableCharacter } from "../describe-value.js";
import { refuseField } from "../fields.js";

export const COLUMN_NAME_MAX_CHARACTERS = 255;
/**
 * Maximum number of names in a data source's list of columns. The limit stops visitors from making the list longer and longer: further
 * columns of entries are not listed.
 */
export const LISTED_COLUMNS_PER_DATA_SOURCE_MAX = 1_000;

/** Checks the name of a column. @throws REQUEST_INVALID that contains `fieldPath` */
export function checkColumnName(name: string, fieldPath: string): void {
  const isValid =
    name !== "" &&
    name.length <= COLUMN_NAME_MAX_CHARACTERS &&
    findUnstorableCharacter(name) < 0 &&
    name !== "__proto__";
  if (isValid) return;
  const expected = `a text of 1 to ${COLUMN_NAME_MAX_CHARACTERS} characters other than __proto__`;
  refuseField(`the name of each column in ${fieldPath}`, expected, name);
}

/** Validates the list of column names of a new data source. @throws REQUEST_INVALID */
export function parseColumnNames(value: unknown): string[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value) || value.length > LISTED_COLUMNS_PER_DATA_SOURCE_MAX) {
    refuseField("columns", `an array of at most ${LISTED_COLUMNS_PER_DATA_SOURCE_MAX} column names`, value);
  }
  for (const [index, name] of value.entries()) {
    if (typeof name !== "string") refuseField(`columns[${index}]`, "the name of a column", name);
    checkColumnName(name, "columns");
  }
  return [...new Set(value as string[])];
}

/** Collects columns of entries that the data source's list of columns lacks, up to the list's maximum length. */
export class NewColumnCollector {
  private readonly known: Set<string>;
  readonly added: string[] = [];

  constructor(listed: readonly string[]) {
    this.known = new Set(listed);
  }

  addColumnsOf(data: object): void {
    for (const name in data) {
      if (this.known.has(name) || this.known.size >= LISTED_COLUMNS_PER_DATA_SOURCE_MAX) continue;
      this.known.add(name);
      this.added.push(name);
    }
  }
}
