/** Who may see which setting, by its key's prefix, and which keys exist at all. Knows no storage and no credential. */
import { ActionError } from "../errors.js";
import { SETTING_KEY_MAX_CHARACTERS, SETTINGS_KEYS_PER_REQUEST, UNDERSCORE_SETTINGS_MAX_BYTES } from "../limits.js";
import { characters, described, isObject, nestsDeeperThan } from "./described.js";

export type Tier = "public" | "private" | "protected";

/** `runtime`: the app's users. `http`: editors, admins, API and task tokens. `serverAction`: `context.settings`. */
export type Reader = "runtime" | "http" | "serverAction" | "backend";

/** Top-level settings as entries: a Map, or what Object.entries gives. Keys are data, whatever they spell. */
export type SettingEntries = Iterable<readonly [string, unknown]>;

/** Without a prototype, so that a setting named `toString` is one and none appears unasked. */
export type SettingsView = Record<string, unknown>;

const READABLE: Record<Reader, readonly Tier[]> = {
  runtime: ["public"],
  http: ["public", "private"],
  serverAction: ["private", "protected"],
  backend: ["public", "private", "protected"],
};

/** Keys that would reach an object's prototype in code that is less careful than this. */
const REFUSED_KEYS: readonly string[] = ["__proto__", "constructor", "prototype"];

/** Deeper JSON parses, but neither serializes nor stores safely. */
const VALUE_MAX_DEPTH = 100;

export const UNDERSCORE_SIZE_MESSAGE = "private app settings exceed the 100 KB limit for server actions";

/** The tier of a top-level key (specification, App settings object). Nested keys have none. */
export function tierOf(key: string): Tier {
  if (key.startsWith("__")) return "protected";
  return key.startsWith("_") ? "private" : "public";
}

/** The tiers that a reader sees, as a predicate over top-level keys. */
export function readableBy(reader: Reader): (key: string) => boolean {
  const tiers = READABLE[reader];
  return (key) => tiers.includes(tierOf(key));
}

function view(settings: SettingEntries, reader: Reader): SettingsView {
  const readable = readableBy(reader);
  const result: SettingsView = Object.create(null);
  for (const [key, value] of settings) if (readable(key)) result[key] = value;
  return result;
}

/** `window.ENV.appSettings`: public keys alone. */
export const runtimeView = (settings: SettingEntries): SettingsView => view(settings, "runtime");

/** What GET settings answers: no protected key, for nobody. */
export const httpView = (settings: SettingEntries): SettingsView => view(settings, "http");

/** `context.settings` of a `server` action: the underscore keys, protected ones included. */
export const serverActionView = (settings: SettingEntries): SettingsView => view(settings, "serverAction");

/**
 * The underscore settings of one app fit in 100 KB of JSON in UTF-8 (specification, Limits and Other rules 3).
 * @param underscoreSettings what {@link serverActionView} gives
 * @throws ActionError EXECUTION_FAILED
 */
export function checkUnderscoreSize(underscoreSettings: SettingsView): void {
  const bytes = Buffer.byteLength(JSON.stringify(underscoreSettings));
  if (bytes <= UNDERSCORE_SETTINGS_MAX_BYTES) return;
  throw new ActionError("EXECUTION_FAILED", `${UNDERSCORE_SIZE_MESSAGE}: they take ${bytes} bytes`);
}

/**
 * The entries of a settings write: top-level keys flat (specification, Settings endpoints; contract, section 4).
 * @throws ActionError SETTINGS_INVALID
 */
export function checkSettingKeys(body: unknown): [string, unknown][] {
  if (!isObject(body)) throw invalid(`settings must be an object of top-level keys; ${described(body)} came`);
  const entries = Object.entries(body);
  checkCount(entries.length);
  for (const [key, value] of entries) {
    checkKey(key);
    if (nestsDeeperThan(value, VALUE_MAX_DEPTH)) {
      throw invalid(`the setting ${described(key)} nests deeper than ${VALUE_MAX_DEPTH} levels`);
    }
  }
  return entries;
}

/**
 * The keys of a settings deletion, `{keys: [string]}`, each once.
 * @throws ActionError SETTINGS_INVALID
 */
export function checkDeletedKeys(body: unknown): string[] {
  const keys = isObject(body) && Object.hasOwn(body, "keys") ? body["keys"] : undefined;
  if (!Array.isArray(keys)) throw invalid(`keys must be an array of top-level key names; ${described(keys)} came`);
  checkCount(keys.length);
  for (const key of keys) checkKey(key);
  return [...new Set<string>(keys)];
}

/** Where the AI builder's secure field keeps its value (specification, App settings object, rule 5). */
export function artifactKey(settingKey: string): string {
  return `_aiartifact_${settingKey.replace(/[^a-zA-Z0-9_.-]/gu, "_")}`;
}

function checkCount(count: number): void {
  if (count <= SETTINGS_KEYS_PER_REQUEST) return;
  throw invalid(`a request may name at most ${SETTINGS_KEYS_PER_REQUEST} settings; it names ${count}`);
}

function checkKey(key: unknown): void {
  const expected = `a setting's key must be a string of 1 to ${SETTING_KEY_MAX_CHARACTERS} characters`;
  if (typeof key !== "string" || key === "") throw invalid(`${expected}; ${described(key)} came`);
  const length = characters(key);
  if (length > SETTING_KEY_MAX_CHARACTERS) throw invalid(`${expected}; ${described(key)} has ${length}`);
  if (REFUSED_KEYS.includes(key)) throw invalid(`a setting must not be named ${key}`);
}

function invalid(message: string): ActionError {
  return new ActionError("SETTINGS_INVALID", message);
}
