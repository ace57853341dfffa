/** Finds the form field whose value caused the service to reject a save, by the status or the message of the error. */
import type { ApiError } from "../shared/api.js";
import type { ActionDraft } from "./draft.js";

export type ActionDraftField = keyof ActionDraft;

export interface FieldError {
  /** The form field with the error; null if the error does not concern a single field. */
  field: ActionDraftField | null;
  status: string;
  message: string;
  /** Position of the error in the code, with line and column counted from 1; null if the error has none. */
  at: { line: number; column: number } | null;
}

const FIELD_BY_STATUS_PREFIX: [prefix: string, field: ActionDraftField][] = [
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

/** Form fields that the service names at the beginning of an error message, because they have no error status of their own. */
const FIELDS_IN_MESSAGES: readonly ActionDraftField[] = ["concurrency", "debounce", "timeoutMs", "jitterSeconds"];

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
