/**
 * Parses and validates the manifest at the beginning of a backup and the summary at its end. Reads no file and no
 * database.
 */
import { ArchiveError } from "../../engine/archive/failure.js";
import type { TapePart } from "../../engine/archive/tape.js";
import { isObject } from "../../rules/described.js";
import { isTableName, type PartitionBounds, type Sequence, type Table } from "./tables.js";

export const BACKUP_FORMAT = 1;
export const MANIFEST = "manifest.json";
export const KEYS_FILE = "keys.json";
export const SUMMARY_FILE = "summary.json";

/** First part of a backup: describes the snapshot, its schema and its tables. */
export interface Manifest {
  format: number;
  /** Time of the snapshot, ISO 8601. */
  madeAt: string;
  service: string;
  /** Version of the PostgreSQL that was backed up, shown to people. */
  postgres: string;
  /** Names of the applied migrations. */
  migrations: string[];
  /** Tables in the order of the file, which is the order of writing. */
  tables: Table[];
  partitions: Record<string, PartitionBounds[]>;
  /** Fingerprint of the key that encrypts new settings; null if there is none yet. */
  settingsKey: string | null;
}

/** Last part of a backup: counts, by which a restore checks that nothing is missing, and positions of sequences. */
export interface BackupSummary {
  rows: Record<string, number>;
  sequences: Sequence[];
  /** Files whose bytes were already missing in the store. */
  lostBlobs: string[];
  blobs: number;
}

const MIGRATION_NAME = /^\w{1,100}$/;

const isId = (value: unknown): boolean => Number.isSafeInteger(value);
const isList = <T>(value: unknown, isValid: (element: unknown) => boolean): value is T[] =>
  Array.isArray(value) && value.every(isValid);
const isText = (value: unknown): boolean => typeof value === "string" && value.length < 200;

const isTableEntry = (value: unknown): boolean =>
  isObject(value) && isTableName(value["name"]) && isList(value["columns"], isTableName);
const isRowBounds = (value: unknown): boolean =>
  Array.isArray(value) && value.length === 2 && value.every((bound) => bound === null || isId(bound));
const isSequence = (value: unknown): boolean =>
  isObject(value) && isTableName(value["name"]) && isId(value["last"]) && typeof value["called"] === "boolean";

/** True if all values of an object pass `isValid`. */
const isRecord = (value: unknown, isValid: (field: unknown) => boolean): boolean =>
  isObject(value) && Object.entries(value).every(([name, field]) => isTableName(name) && isValid(field));

function isManifest(text: Record<string, unknown>): boolean {
  return (
    [text["madeAt"], text["service"], text["postgres"]].every(isText) &&
    isList(text["migrations"], (name) => typeof name === "string" && MIGRATION_NAME.test(name)) &&
    isList(text["tables"], isTableEntry) &&
    isRecord(text["partitions"], (bounds) => isList(bounds, isRowBounds)) &&
    (text["settingsKey"] === null || isText(text["settingsKey"]))
  );
}

function isSummaryText(text: Record<string, unknown>): boolean {
  return (
    isRecord(text["rows"], isId) &&
    isList(text["sequences"], isSequence) &&
    isList(text["lostBlobs"], isText) &&
    isId(text["blobs"])
  );
}

function parsePart({ name, content }: TapePart): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(content.toString());
    if (isObject(value)) return value;
  } catch {
    // A part that is not JSON gets the same error as JSON that is not an object.
  }
  throw new ArchiveError(`the file is not a backup of this service: its ${name} cannot be read`);
}

/** @throws ArchiveError if the part is no manifest, or has another format */
export function readManifest(part: TapePart | undefined): Manifest {
  if (part?.name !== MANIFEST) throw new ArchiveError("the file is not a backup of this service");
  const text = parsePart(part);
  if (text["format"] !== BACKUP_FORMAT)
    throw new ArchiveError(
      "another release of the service made this backup in another format; restore the backup with that release",
    );
  if (isManifest(text)) return text as unknown as Manifest;
  throw new ArchiveError("the file is not a backup of this service: its manifest.json has unexpected content");
}

/** @throws ArchiveError if the part is no summary */
export function readSummary(part: TapePart): BackupSummary {
  const text = parsePart(part);
  if (isSummaryText(text)) return text as unknown as BackupSummary;
  throw new ArchiveError("the file is not a backup of this service: its summary.json has unexpected content");
}

/** Returns the master keys of the settings. @throws ArchiveError if the part has none */
export function readKeys(part: TapePart): Buffer[] {
  const { keys } = parsePart(part);
  const keyBytes = isList<string>(keys, isText) ? keys.map((key) => Buffer.from(key, "base64")) : [];
  if (keyBytes.length > 0 && keyBytes.every(({ length }) => length === 32)) return keyBytes;
  throw new ArchiveError("the file is not a backup of this service: its keys.json has no keys");
}

export const jsonPart = (name: string, value: object): TapePart => ({
  name,
  content: Buffer.from(JSON.stringify(value)),
});
