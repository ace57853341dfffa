/** Validates the fields of an action. Each function checks for one error status, and returns the error message or null. */

import { ACTION_DESCRIPTION_MAX_CHARACTERS, ACTION_NAME_MAX_CHARACTERS } from "../limits.js";
import { countCharacters, describeValue, findUnstorableCharacter } from "./describe-value.js";
import { UNSTORABLE_TEXT_FAULT } from "./fields.js";
import { findFrequencyFault, findTimezoneFault } from "./schedule.js";
import { ENVIRONMENTS, isActionEnvironment } from "./trigger-input.js";

/** Returns the reason why the code is invalid, or null if it is valid. If `dependencies` is null, missing dependencies are not reported. */
export type CheckActionCode = (code: string, dependencies: readonly string[] | null) => string | null;

export const ACTION_DEPENDENCIES_MAX = 100;
const DEPENDENCY_MAX_CHARACTERS = 2048;

export function findMissingNameFault(name: unknown): string | null {
  return name === undefined || name === null ? `name is required (got ${describeValue(name)})` : null;
}

export function findEmptyNameFault(name: unknown): string | null {
  return name === "" ? "name must not be empty" : null;
}

export function findLongNameFault(name: unknown): string | null {
  const length = typeof name === "string" ? countCharacters(name) : 0;
  if (length <= ACTION_NAME_MAX_CHARACTERS) return null;
  return `name must be at most ${ACTION_NAME_MAX_CHARACTERS} characters (got ${length})`;
}

/** Returns an error message if the name contains a character that is not allowed, or if it is not a string; otherwise null. */
export function findNameFault(name: unknown): string | null {
  if (findMissingNameFault(name) !== null || name === "") return null;
  if (typeof name === "string" && /^[A-Za-z0-9_-]+$/.test(name)) return null;
  return `name must be a string of letters, numbers, dashes and underscores (got ${describeValue(name)})`;
}

export function findDescriptionFault(description: unknown): string | null {
  if (description === null) return null;
  if (typeof description !== "string")
    return `description must be a string or null (got ${describeValue(description)})`;
  const at = findUnstorableCharacter(description);
  return at < 0 ? null : `description ${UNSTORABLE_TEXT_FAULT} (got one at position ${at + 1})`;
}

export function findLongDescriptionFault(description: unknown): string | null {
  const length = typeof description === "string" ? countCharacters(description) : 0;
  if (length <= ACTION_DESCRIPTION_MAX_CHARACTERS) return null;
  return `description must be at most ${ACTION_DESCRIPTION_MAX_CHARACTERS} characters (got ${length})`;
}

export function findMissingCodeFault(code: unknown): string | null {
  return code === undefined || code === null ? `code is required (got ${describeValue(code)})` : null;
}

export function findEmptyCodeFault(code: unknown): string | null {
  return typeof code === "string" && code.trim() === "" ? "code must not be empty" : null;
}

/** Returns the message of `checkCode` if it rejects the code, or a message if the code is not a string; otherwise null. */
export function findInvalidCodeFault(code: unknown, dependencies: unknown, checkCode: CheckActionCode): string | null {
  if (findMissingCodeFault(code) !== null || findEmptyCodeFault(code) !== null) return null;
  if (typeof code !== "string") return `code must be a string of JavaScript (got ${describeValue(code)})`;
  const listedNames = Array.isArray(dependencies) ? dependencies.filter((name) => typeof name === "string") : [];
  return checkCode(code, listedNames);
}

export function findActiveFault(active: unknown): string | null {
  return typeof active === "boolean" ? null : `active must be true or false (got ${describeValue(active)})`;
}

export function findEnvironmentFault(environment: unknown): string | null {
  if (isActionEnvironment(environment)) return null;
  return `environment must be one of ${ENVIRONMENTS.join(", ")} (got ${describeValue(environment)})`;
}

export function findInvalidFrequencyFault(frequency: unknown): string | null {
  const fault = frequency === null ? null : findFrequencyFault(frequency);
  return fault?.status === "FREQUENCY_INVALID" ? fault.message : null;
}

export function findHighFrequencyFault(frequency: unknown): string | null {
  const fault = frequency === null ? null : findFrequencyFault(frequency);
  return fault?.status === "FREQUENCY_TOO_FREQUENT" ? fault.message : null;
}

export function findInvalidTimezoneFault(timezone: unknown): string | null {
  return timezone === null ? null : (findTimezoneFault(timezone)?.message ?? null);
}

/** Checks only the format of `dependencies`. When an action is stored, other code checks that the packages exist. */
export function findDependenciesFault(dependencies: unknown): string | null {
  if (!Array.isArray(dependencies)) {
    return `dependencies must be an array of package names and https URLs (got ${describeValue(dependencies)})`;
  }
  if (dependencies.length > ACTION_DEPENDENCIES_MAX) {
    return `dependencies must have at most ${ACTION_DEPENDENCIES_MAX} items (got ${dependencies.length})`;
  }
  for (const [index, dependency] of dependencies.entries()) {
    const isText = typeof dependency === "string" && dependency !== "";
    const isStorable = isText && findUnstorableCharacter(dependency) < 0;
    if (isStorable && dependency.length <= DEPENDENCY_MAX_CHARACTERS) continue;
    const expected = `must be a string of 1 to ${DEPENDENCY_MAX_CHARACTERS} characters`;
    const fault = isText && !isStorable ? UNSTORABLE_TEXT_FAULT : expected;
    return `dependencies[${index}] ${fault} (got ${describeValue(dependency)})`;
  }
  return null;
}
