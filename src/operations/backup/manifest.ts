/** Parses and validates the JSON parts of a backup: manifest, master keys and summary. Reads no file and no database. */
import { ArchiveError } from "../../engine/archive/failure.js";
import type { ArchiveFile } from "../../engine/archive/tar.js";
import { describeValue, isObject } from "../../rules/describe-value.js";
import { type BackupSequence, type BackupTable, isTableName, type PartitionBounds } from "./tables.js";

export const BACKUP_FORMAT_VERSION = 1;
export const MANIFEST_FILE = "manifest.json";
export const KEYS_FILE = "keys.json";
export const SUMMARY_FILE = "summary.json";

/** First part of a backup. It describes the time of the backup, the database schema and the tables. */
export interface BackupManifest {
  format: number;
  /** Time at which the backup was made, ISO 8601. */
  madeAt: string;
  service: string;
  postgres: string;
  /** Names of the migrations that the backed-up database had applied. */
  migrations: string[];
  /** Tables in the order in which the backup contains them and a restore writes them. */
  tables: BackupTable[];
  partitions: Record<string, PartitionBounds[]>;
  /** Fingerprint of the key that encrypts the settings; null if the database stores no fingerprint. */
  settingsKey: string | null;
}

/** Last part of a backup: the counts with which a restore checks that nothing is missing, and the positions of sequences. */
export interface BackupSummary {
  rows: Record<string, number>;
  sequences: BackupSequence[];
  /** Keys of media files whose content was already missing in the media store at the time of the backup. */
  lostBlobs: string[];
  blobs: number;
}

const MIGRATION_NAME_PATTERN = /^\w{1,100}$/;

const isId = (value: unknown): boolean => Number.isSafeInteger(value);
const isList = <T>(value: unknown, isValid: (element: unknown) => boolean): value is T[] =>
  Array.isArray(value) && value.every(isValid);
const isShortText = (value: unknown): boolean => typeof value === "string" && value.length < 200;

const isTableEntry = (value: unknown): boolean =>
  isObject(value) && isTableName(value["name"]) && isList(value["columns"], isTableName);
const isPartitionBounds = (value: unknown): boolean =>
  Array.isArray(value) && value.length === 2 && value.every((bound) => bound === null || isId(bound));
const isBigintText = (value: unknown): boolean => typeof value === "string" && /^-?\d{16,19}$/.test(value);
const isSequence = (value: unknown): boolean =>
  isObject(value) &&
  isTableName(value["name"]) &&
  (isId(value["last"]) || isBigintText(value["last"])) &&
  typeof value["called"] === "boolean";

const isRecordByTable = (value: unknown, isValid: (field: unknown) => boolean): boolean =>
  isObject(value) && Object.entries(value).every(([name, field]) => isTableName(name) && isValid(field));

function isBackupManifest(fields: Record<string, unknown>): boolean {
  return (
    [fields["madeAt"], fields["service"], fields["postgres"]].every(isShortText) &&
    isList(fields["migrations"], (name) => typeof name === "string" && MIGRATION_NAME_PATTERN.test(name)) &&
    isList(fields["tables"], isTableEntry) &&
    isRecordByTable(fields["partitions"], (bounds) => isList(bounds, isPartitionBounds)) &&
    (fields["settingsKey"] === null || isShortText(fields["settingsKey"]))
  );
}

function isBackupSummary(fields: Record<string, unknown>): boolean {
  return (
    isRecordByTable(fields["rows"], isId) &&
    isList(fields["sequences"], isSequence) &&
    isList(fields["lostBlobs"], isShortText) &&
    isId(fields["blobs"])
  );
}

function parsePart({ name, content }: ArchiveFile): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(content.toString());
    if (isObject(value)) return value;
  } catch {
    // Ignores invalid JSON: the error below is thrown, as for JSON that is not an object.
  }
  throw new ArchiveError(`the file is not a backup of Svc App Actions: its ${name} is not a JSON object`);
}

/** Parses the first part of a backup. @throws ArchiveError if it is not a valid manifest, or has another format version */
export function parseBackupManifest(part: ArchiveFile | undefined): BackupManifest {
  if (part?.name !== MANIFEST_FILE) throw new ArchiveError("the file is not a backup of Svc App Actions");
  const fields = parsePart(part);
  if (fields["format"] !== BACKUP_FORMAT_VERSION)
    throw new ArchiveError(
      `the format of the backup must be ${BACKUP_FORMAT_VERSION} (got ${describeValue(fields["format"])}); ` +
        "restore the backup with the release of the service that made it",
    );
  if (isBackupManifest(fields)) return fields as unknown as BackupManifest;
  throw new ArchiveError("the file is not a backup of Svc App Actions: its manifest.json has unexpected content");
}

/** Parses the last part of a backup. @throws ArchiveError if it is not a summary */
export function parseBackupSummary(part: ArchiveFile): BackupSummary {
  const fields = parsePart(part);
  if (isBackupSummary(fields)) return fields as unknown as BackupSummary;
  throw new ArchiveError("the file is not a backup of Svc App Actions: its summary.json has unexpected content");
}

/** Returns the master keys of the settings from the part keys.json. @throws ArchiveError for no key or an invalid key */
export function parseMasterKeys(part: ArchiveFile): Buffer[] {
  const { keys } = parsePart(part);
  const keyBytes = isList<string>(keys, isShortText) ? keys.map((key) => Buffer.from(key, "base64")) : [];
  if (keyBytes.length > 0 && keyBytes.every(({ length }) => length === 32)) return keyBytes;
  throw new ArchiveError(
    "the file is not a backup of Svc App Actions: its keys.json contains no key or an invalid key",
  );
}

export const createJsonFile = (name: string, value: object): ArchiveFile => ({
  name,
  content: Buffer.from(JSON.stringify(value)),
});
