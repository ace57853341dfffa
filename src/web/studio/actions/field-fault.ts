/** Finds the form field that a rejected save is about, by the status of the error. */
import type { ApiError } from "../shared/api.js";
import type { Draft } from "./draft.js";

export type Field = keyof Draft;

export interface FieldFault {
  /** The field; null if the error is not about a single field. */
  field: Field | null;
  status: string;
  message: string;
  /** Position in the code, with line and column counted from 1. */
  at: { line: number; column: number } | null;
}

const FIELDS: [prefix: string, field: Field][] = [
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

/** Fields without a status of their own. The messages about them begin with the field's name. */
const NAMED: readonly Field[] = ["concurrency", "debounce", "timeoutMs", "jitterSeconds"];

export function fieldFault({ status, message }: ApiError): FieldFault {
  const field =
    FIELDS.find(([prefix]) => status.startsWith(prefix))?.[1] ?? NAMED.find((name) => message.startsWith(name)) ?? null;
  const place = field === "code" ? /line (\d+), column (\d+)/.exec(message) : null;
  return { field, status, message, at: place && { line: Number(place[1]), column: Number(place[2]) } };
}
