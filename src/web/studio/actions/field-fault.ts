/** Finds the form field that a rejected save is about, by the status of the error. */
import type { ApiError } from "../shared/api.js";
import type { Draft } from "./draft.js";

export type DraftField = keyof Draft;

export interface FieldError {
  /** The field; null if the error is not about a single field. */
  field: DraftField | null;
  status: string;
  message: string;
  /** Position in the code, with line and column counted from 1. */
  at: { line: number; column: number } | null;
}

const FIELD_BY_STATUS_PREFIX: [prefix: string, field: DraftField][] = [
  ["NAME_", "name"],
  ["DESCRIPTION_", "description"],
  ["CODE_", "code"],
  ["ENVIRONMENT_", "environment"],
  ["FREQUENCY_", "frequency"],
  ["TIMEZONE_", "timezone"],
  ["TRIGGER", "triggers"],
  ["DEPENDENC", "dependencies"],
  ["INTEGRATION_ORIGINS_", "integrationOrigins"],
  ["ACCESS_", "access"],
];

/** Fields whose errors have no status of their own. The error message begins with the name of the field. */
const FIELDS_IN_MESSAGES: readonly DraftField[] = ["concurrency", "debounce", "timeoutMs", "jitterSeconds"];

export function toFieldError({ status, message }: ApiError): FieldError {
  const field =
    FIELD_BY_STATUS_PREFIX.find(([prefix]) => status.startsWith(prefix))?.[1] ??
    FIELDS_IN_MESSAGES.find((name) => message.startsWith(name)) ??
    null;
  const codePosition = field === "code" ? /line (\d+), column (\d+)/.exec(message) : null;
  return {
    field,
    status,
    message,
    at: codePosition && { line: Number(codePosition[1]), column: Number(codePosition[2]) },
  };
}
