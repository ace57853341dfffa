/** What a backup says of itself, at its beginning and at its end, and the judgement of what a file says. Reads no file and no database. */
import { ArchiveError } from "../../engine/archive/failure.js";
import type { Part } from "../../engine/archive/tape.js";
import { isObject } from "../../rules/described.js";
import { type Bounds, isName, type Sequence, type Table } from "./tables.js";

export const FORMAT = 1;
export const MANIFEST = "manifest.json";
export const KEYS = "keys.json";
export const SUMMARY = "summary.json";

/** First in the file. */
export interface Manifest {
  format: number;
  /** ISO 8601; the moment that the backup shows. */
  madeAt: string;
  service: string;
  /** The version of PostgreSQL that it was read from; for people. */
  postgres: string;
  /** The schema, by the names of its changes. */
  migrations: string[];
  /** In the order in which they are in the file, and in which they are written. */
  tables: Table[];
  partitions: Record<string, Bounds[]>;
  /** The fingerprint of the key that new settings are encrypted under; null where none is yet. */
  settingsKey: string | null;
}

/** Last in the file. */
export interface Summary {
  rows: Record<string, number>;
  sequences: Sequence[];
  /** Files of which the store had lost the bytes before. */
  lostBlobs: string[];
  blobs: number;
}

const MIGRATION = /^\w{1,100}$/;

const isId = (value: unknown): boolean => Number.isSafeInteger(value);
const isList = <T>(value: unknown, judge: (one: unknown) => boolean): value is T[] =>
  Array.isArray(value) && value.every(judge);
const isText = (value: unknown): boolean => typeof value === "string" && value.length < 200;

const isTable = (value: unknown): boolean =>
  isObject(value) && isName(value["name"]) && isList(value["columns"], isName);
const isBounds = (value: unknown): boolean =>
  Array.isArray(value) && value.length === 2 && value.every((bound) => bound === null || isId(bound));
const isSequence = (value: unknown): boolean =>
  isObject(value) && isName(value["name"]) && isId(value["last"]) && typeof value["called"] === "boolean";

/** Whether the values of an object are as they must be. */
const isRecord = (value: unknown, judge: (one: unknown) => boolean): boolean =>
  isObject(value) && Object.entries(value).every(([name, one]) => isName(name) && judge(one));

function isManifest(said: Record<string, unknown>): boolean {
  return (
    [said["madeAt"], said["service"], said["postgres"]].every(isText) &&
    isList(said["migrations"], (name) => typeof name === "string" && MIGRATION.test(name)) &&
    isList(said["tables"], isTable) &&
    isRecord(said["partitions"], (bounds) => isList(bounds, isBounds)) &&
    (said["settingsKey"] === null || isText(said["settingsKey"]))
  );
}

function isSummary(said: Record<string, unknown>): boolean {
  return (
    isRecord(said["rows"], isId) &&
    isList(said["sequences"], isSequence) &&
    isList(said["lostBlobs"], isText) &&
    isId(said["blobs"])
  );
}

function parsed({ name, content }: Part): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(content.toString());
    if (isObject(value)) return value;
  } catch {
    // As any other that is none.
  }
  throw new ArchiveError(`the file is no backup of this service: its ${name} cannot be read`);
}

/** @throws ArchiveError where it is none, or another format's */
export function readManifest(part: Part | undefined): Manifest {
  if (part?.name !== MANIFEST) throw new ArchiveError("the file is no backup of this service");
  const said = parsed(part);
  if (said["format"] !== FORMAT)
    throw new ArchiveError("the file is of another version's format: restore it with that version");
  if (isManifest(said)) return said as unknown as Manifest;
  throw new ArchiveError("the file is no backup of this service: its manifest.json says what none says");
}

/** @throws ArchiveError where it is none */
export function readSummary(part: Part): Summary {
  const said = parsed(part);
  if (isSummary(said)) return said as unknown as Summary;
  throw new ArchiveError("the file is no backup of this service: its summary.json says what none says");
}

/** The master keys of the settings. @throws ArchiveError where they are none */
export function readKeys(part: Part): Buffer[] {
  const { keys } = parsed(part);
  const read = isList<string>(keys, isText) ? keys.map((key) => Buffer.from(key, "base64")) : [];
  if (read.length > 0 && read.every(({ length }) => length === 32)) return read;
  throw new ArchiveError("the file is no backup of this service: its keys.json holds no keys");
}

export const jsonPart = (name: string, value: object): Part => ({ name, content: Buffer.from(JSON.stringify(value)) });
