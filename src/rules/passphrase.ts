/** Rules for passphrases (contract, section 7): minimum and maximum length, and a list of common passphrases that are rejected. */
import { dictionary } from "@zxcvbn-ts/language-common";
import { ActionError } from "../errors.js";
import { describeType } from "./describe-value.js";

const PASSPHRASE_MIN_CHARACTERS = 12;
const PASSPHRASE_MAX_CHARACTERS = 1_024;

/** Common passphrases that have the minimum length. Leaves out shorter ones, because they are rejected for their length. */
const COMMON_PASSPHRASES: ReadonlySet<string> = new Set(
  [...dictionary["passwords-common"]].filter(({ length }) => length >= PASSPHRASE_MIN_CHARACTERS),
);

/** Returns the shortest text of which `text` is a repetition: `ab` for `abab`, and `text` itself if there is no shorter one. */
const findRepeatedUnit = (text: string): string => text.slice(0, (text + text).indexOf(text, 1));

const createWeakPassphraseError = (message: string): ActionError => new ActionError("PASSPHRASE_TOO_WEAK", message);

/**
 * Validates a new passphrase. Returns it in Unicode form NFC, because keyboards produce different code points for the same character.
 * @throws REQUEST_INVALID if it is no text, empty, not well-formed or too long; PASSPHRASE_TOO_WEAK if it is too short, common or repetitive
 */
export function parseNewPassphrase(value: unknown): string {
  const passphrase = normalizePassphrase(value);
  const characters = [...passphrase].length;
  if (characters < PASSPHRASE_MIN_CHARACTERS) {
    throw createWeakPassphraseError(
      `passphrase must have at least ${PASSPHRASE_MIN_CHARACTERS} characters (got ${characters})`,
    );
  }
  const lowerCasePassphrase = passphrase.toLowerCase();
  if (COMMON_PASSPHRASES.has(lowerCasePassphrase))
    throw createWeakPassphraseError("passphrase is too common; choose another");
  if (
    [...findRepeatedUnit(lowerCasePassphrase)].length < PASSPHRASE_MIN_CHARACTERS &&
    findRepeatedUnit(lowerCasePassphrase) !== lowerCasePassphrase
  ) {
    throw createWeakPassphraseError("passphrase repeats a short text; choose another");
  }
  return passphrase;
}

/** Returns a passphrase in Unicode form NFC, as the service hashes it. Does not check its strength. @throws REQUEST_INVALID */
export function normalizePassphrase(value: unknown, field = "passphrase"): string {
  if (typeof value !== "string" || value === "" || !value.isWellFormed()) {
    throw new ActionError(
      "REQUEST_INVALID",
      `${field} must be a text of at least one character, without lone surrogates (got ${value === "" ? "an empty text" : describeType(value)})`,
    );
  }
  if (value.length <= PASSPHRASE_MAX_CHARACTERS) return value.normalize("NFC");
  throw new ActionError(
    "REQUEST_INVALID",
    `${field} must have at most ${PASSPHRASE_MAX_CHARACTERS} characters (got ${value.length})`,
  );
}
