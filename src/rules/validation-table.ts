/**
 * Order of the validation errors in the specification (Errors, Validation). If an action has several faults, the first
 * in this list is reported.
 */
import type { Status } from "../errors.js";

/** Error statuses in order. Statuses that only the contract has (section 4) come last. */
const VALIDATION_TABLE: readonly Status[] = [
  "NAME_REQUIRED",
  "NAME_EMPTY",
  "NAME_TOO_LONG",
  "NAME_INVALID_CHARS",
  "NAME_ALREADY_EXISTS",
  "DESCRIPTION_INVALID",
  "DESCRIPTION_TOO_LONG",
  "CODE_REQUIRED",
  "CODE_EMPTY",
  "CODE_VALIDATION_FAILED",
  "ENVIRONMENT_INVALID",
  "FREQUENCY_INVALID",
  "FREQUENCY_TOO_FREQUENT",
  "TIMEZONE_INVALID",
  "TRIGGERS_INVALID",
  "TRIGGER_TYPE_INVALID",
  "TRIGGER_NOT_ALLOWED",
  "DEPENDENCIES_INVALID",
  // These statuses are additions to the specification (contract, section 4).
  "ACCESS_INVALID",
  "INTEGRATION_ORIGINS_INVALID",
];

/** Returns the position of a status. All statuses that are not in the table have the last position. */
export function validationRow(status: Status): number {
  const row = VALIDATION_TABLE.indexOf(status);
  return row < 0 ? VALIDATION_TABLE.length : row;
}
