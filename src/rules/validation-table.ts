/**
 * Order of validation errors in the API specification (Errors, Validation). Of several faults, the service reports the first in this order.
 */
import type { Status } from "../errors.js";

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
  // Statuses from here on are not in the API specification.
  "ACCESS_INVALID",
  "INTEGRATION_ORIGINS_INVALID",
];

/** Returns the index of a status in VALIDATION_TABLE. Any other status sorts last. */
export function getValidationTableIndex(status: Status): number {
  const row = VALIDATION_TABLE.indexOf(status);
  return row < 0 ? VALIDATION_TABLE.length : row;
}
