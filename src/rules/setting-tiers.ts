/** Determines the tier of a setting from the prefix of its key. The tier says who can read the setting. Also validates keys. */

import { ActionError } from "../errors.js";
import {
  JSON_MAX_DEPTH,
  NON_PUBLIC_SETTINGS_PER_APP_MAX_BYTES,
  SETTING_KEY_MAX_CHARACTERS,
  SETTINGS_KEYS_PER_REQUEST,
} from "../limits.js";
import { AI_SETTING_KEY } from "./ai/setting.js";
import {
  containsInfinity,
  countCharacters,
  describeType,
  describeValue,
  isObject,
  nestsDeeperThan,
} from "./describe-value.js";

export type SettingTier = "public" | "private" | "protected";

/**
 * Readers of settings. `runtime`: pages of the app; `http`: API requests; `serverAction`: code of server actions; `backend`: the service.
 */
export type SettingReader = "runtime" | "http" | "serverAction" | "backend";

export type SettingEntries = Iterable<readonly [string, unknown]>;

/** Settings by key, in an object without a prototype, so that a missing setting such as `toString` is undefined. */
export type SettingsByKey = Record<string, unknown>;

const READABLE_TIERS: Record<SettingReader, readonly SettingTier[]> = {
  runtime: ["public"],
  http: ["public", "private"],
  serverAction: ["private", "protected"],
  backend: ["public", "private", "protected"],
};

/** Keys that no setting can have, because assigning them to an object could change its prototype. */
const FORBIDDEN_KEYS: readonly string[] = ["__proto__", "constructor", "prototype"];

const ARTIFACT_PREFIX = "_aiartifact_";
const ARTIFACT_NAME_MAX_CHARACTERS = SETTING_KEY_MAX_CHARACTERS - ARTIFACT_PREFIX.length;

const PRIVATE_SETTINGS_SIZE_MESSAGE = "private app settings exceed the 100 KB limit for server actions";

/** Returns the tier (group of readers) of a top-level key (specification, App settings object). Nested keys have no tier. */
export function getSettingTier(key: string): SettingTier {
  if (key.startsWith("__")) return "protected";
  return key.startsWith("_") ? "private" : "public";
}

export function createSettingReadCheck(reader: SettingReader): (key: string) => boolean {
  const tiers = READABLE_TIERS[reader];
  return (key) => tiers.includes(getSettingTier(key));
}

function selectSettings(settings: SettingEntries, reader: SettingReader): SettingsByKey {
  const canRead = createSettingReadCheck(reader);
  const result: SettingsByKey = Object.create(null);
  for (const [key, value] of settings) if (canRead(key)) result[key] = value;
  return result;
}

/** Returns the public settings, which pages get in `window.ENV.appSettings`. */
export const selectRuntimeSettings = (settings: SettingEntries): SettingsByKey => selectSettings(settings, "runtime");

/** Returns the public and private settings, which API requests can read; never protected ones. */
export const selectHttpSettings = (settings: SettingEntries): SettingsByKey => selectSettings(settings, "http");

/** Settings that server actions do not receive in `context.settings`, because only the service uses them. */
const SETTINGS_HIDDEN_FROM_CODE: readonly string[] = [AI_SETTING_KEY];

/**
 * Returns the private and protected settings for `context.settings` of a server action, without sealed ones and
 * SETTINGS_HIDDEN_FROM_CODE. The limit of {@link checkPrivateSettingsSize} counts these settings.
 */
export function selectServerActionSettings(settings: SettingEntries, sealedKeys: readonly string[]): SettingsByKey {
  const hiddenKeys = new Set([...SETTINGS_HIDDEN_FROM_CODE, ...sealedKeys]);
  return selectSettings(
    [...settings].filter(([key]) => !hiddenKeys.has(key)),
    "serverAction",
  );
}

/**
 * Checks that the private and protected settings of an app have at most 100 KB of JSON (specification, Limits and Other rules 3).
 * @param json JSON of the result of {@link selectServerActionSettings}
 * @throws ActionError EXECUTION_FAILED
 */
export function checkPrivateSettingsSize(json: string): void {
  const bytes = Buffer.byteLength(json);
  if (bytes <= NON_PUBLIC_SETTINGS_PER_APP_MAX_BYTES) return;
  throw new ActionError("EXECUTION_FAILED", `${PRIVATE_SETTINGS_SIZE_MESSAGE} (got ${bytes} bytes)`);
}

/**
 * Checks a request that writes settings, and returns its key-value pairs (specification, Settings endpoints).
 * @throws ActionError SETTINGS_INVALID
 */
export function parseSettingsBody(body: unknown): [string, unknown][] {
  if (!isObject(body))
    throw createInvalidSettingError(
      `settings must be an object of keys and values, such as {"theme": "dark"} (got ${describeType(body)})`,
    );
  const entries = Object.entries(body);
  checkCount(entries.length);
  for (const [key, value] of entries) {
    checkKey(key);
    if (nestsDeeperThan(value, JSON_MAX_DEPTH)) {
      throw createInvalidSettingError(
        `the value of the setting ${describeValue(key)} must nest at most ${JSON_MAX_DEPTH} levels`,
      );
    }
    if (containsInfinity(value))
      throw createInvalidSettingError(
        `the value of the setting ${describeValue(key)} must not contain a number above 1.8e308 or below -1.8e308`,
      );
  }
  return entries;
}

/** Checks a request that deletes settings, `{keys: [string]}`. Returns its keys without duplicates. @throws ActionError SETTINGS_INVALID */
export function parseDeletedSettingKeys(body: unknown): string[] {
  const keys = isObject(body) && Object.hasOwn(body, "keys") ? body["keys"] : undefined;
  if (!Array.isArray(keys))
    throw createInvalidSettingError(`keys must be an array of top-level key names (got ${describeValue(keys)})`);
  checkCount(keys.length);
  for (const key of keys) checkKey(key);
  return [...new Set<string>(keys)];
}

/**
 * Parses a request that marks private settings as secret or not secret: `{keys: [string], secret: boolean}` (contract, section 6).
 * @throws ActionError SETTINGS_INVALID
 */
export function parseSecretFlagRequest(body: unknown): { keys: string[]; secret: boolean } {
  const keys = parseDeletedSettingKeys(body);
  const secret = isObject(body) ? body["secret"] : undefined;
  if (typeof secret !== "boolean")
    throw createInvalidSettingError(`secret must be true or false (got ${describeValue(secret)})`);
  const wrongKey = keys.find((key) => getSettingTier(key) !== "private");
  if (wrongKey === undefined) return { keys, secret };
  const reason =
    getSettingTier(wrongKey) === "protected"
      ? "protected settings are always secret"
      : "public settings are never secret";
  throw createInvalidSettingError(
    `keys must contain only private settings, which start with one _ (got ${describeValue(wrongKey)}); ${reason}`,
  );
}

/**
 * Returns the key of a setting in which a tool that generates apps stores a secret (specification, App settings object, rule 5).
 * @throws ActionError SETTINGS_INVALID
 */
export function createAiArtifactSettingKey(settingKey: unknown): string {
  const length = typeof settingKey === "string" ? countCharacters(settingKey) : 0;
  if (typeof settingKey === "string" && length > 0 && length <= ARTIFACT_NAME_MAX_CHARACTERS) {
    return ARTIFACT_PREFIX + settingKey.replace(/[^a-zA-Z0-9_.-]/gu, "_");
  }
  const receivedText = length > 0 ? `${length} characters` : describeValue(settingKey);
  throw createInvalidSettingError(
    `settingKey must be a string of 1 to ${ARTIFACT_NAME_MAX_CHARACTERS} characters (got ${receivedText})`,
  );
}

/**
 * Returns the body of an administrator's PUT request without protected keys, because this request must not change protected settings
 * (specification, Settings endpoints).
 */
export function removeProtectedKeys(body: unknown): unknown {
  if (!isObject(body)) return body;
  return Object.fromEntries(Object.entries(body).filter(([key]) => getSettingTier(key) !== "protected"));
}

/** @throws ActionError SETTINGS_INVALID if there are too many keys, or if one of them is invalid */
export function checkRequestedSettingKeys(keys: readonly string[]): void {
  checkCount(keys.length);
  for (const key of keys) checkKey(key);
}

function checkCount(count: number): void {
  if (count <= SETTINGS_KEYS_PER_REQUEST) return;
  throw createInvalidSettingError(
    `a request must contain at most ${SETTINGS_KEYS_PER_REQUEST} settings (got ${count})`,
  );
}

function checkKey(key: unknown): void {
  const expected = `a setting's key must be a string of 1 to ${SETTING_KEY_MAX_CHARACTERS} characters`;
  if (typeof key !== "string" || key === "") throw createInvalidSettingError(`${expected} (got ${describeValue(key)})`);
  const length = countCharacters(key);
  if (length > SETTING_KEY_MAX_CHARACTERS)
    throw createInvalidSettingError(`${expected} (got ${length} characters: ${describeValue(key)})`);
  if (FORBIDDEN_KEYS.includes(key)) throw createInvalidSettingError(`a setting must not have the key ${key}`);
}

function createInvalidSettingError(message: string): ActionError {
  return new ActionError("SETTINGS_INVALID", message);
}
