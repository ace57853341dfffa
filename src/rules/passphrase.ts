/** Rules for passphrases: their length, and a list of common passphrases that are rejected (contract, section 7). */
import { dictionary } from "@zxcvbn-ts/language-common";
import { ActionError } from "../errors.js";
import { describeType } from "./described.js";

const PASSPHRASE_MIN_CHARACTERS = 12;
const PASSPHRASE_MAX_CHARACTERS = 1_024;

/** Common passphrases. Shorter ones are left out of the list of 49,000, because their length is rejected anyway. */
const COMMON_PASSPHRASES: ReadonlySet<string> = new Set(
  [...dictionary["passwords-common"]].filter(({ length }) => length >= PASSPHRASE_MIN_CHARACTERS),
);

/** Returns the shortest text that gives `text` when it is repeated: `ab` for `abab`. */
const repeatedUnitOf = (text: string): string => text.slice(0, (text + text).indexOf(text, 1));

const weakPassphrase = (message: string): ActionError => new ActionError("PASSPHRASE_TOO_WEAK", message);

/**
 * Validates a new passphrase, and returns the form that is hashed. It is normalized to NFC, so that all keyboards give
 * the same bytes.
 * @throws REQUEST_INVALID if it is not a string; PASSPHRASE_TOO_WEAK
 */
export function checkPassphrase(value: unknown): string {
  const passphrase = readPassphrase(value);
  const characters = [...passphrase].length;
  if (characters < PASSPHRASE_MIN_CHARACTERS) {
    throw weakPassphrase(`passphrase must have at least ${PASSPHRASE_MIN_CHARACTERS} characters (got ${characters})`);
  }
  const lowerCasePassphrase = passphrase.toLowerCase();
  if (COMMON_PASSPHRASES.has(lowerCasePassphrase)) throw weakPassphrase("passphrase is too common; choose another");
  if (
    [...repeatedUnitOf(lowerCasePassphrase)].length < PASSPHRASE_MIN_CHARACTERS &&
    repeatedUnitOf(lowerCasePassphrase) !== lowerCasePassphrase
  ) {
    throw weakPassphrase("passphrase repeats a short text; choose another");
  }
  return passphrase;
}

/** Returns the form of a passphrase that is hashed. Does not check its strength, as for a sign-in. @throws REQUEST_INVALID */
export function readPassphrase(value: unknown): string {
  if (typeof value !== "string" || value === "" || !value.isWellFormed()) {
    throw new ActionError("REQUEST_INVALID", `passphrase must be a text (got ${describeType(value)})`);
  }
  if (value.length <= PASSPHRASE_MAX_CHARACTERS) return value.normalize("NFC");
  throw new ActionError(
    "REQUEST_INVALID",
    `passphrase must have at most ${PASSPHRASE_MAX_CHARACTERS} characters (got ${value.length})`,
  );
}
