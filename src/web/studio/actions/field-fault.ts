/** Which field a refusal is about: its status says so. Knows no form. */
import type { ApiError } from "../shared/api.js";
import type { Draft } from "./draft.js";

export type Field = keyof Draft;

export interface FieldFault {
  /** null: it is about no single field. */
  field: Field | null;
  status: string;
  message: string;
  /** Where in the code, both from 1. */
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

/** Fields without a status of their own: their refusals begin with their names. */
const NAMED: readonly Field[] = ["concurrency", "debounce", "timeoutMs", "jitterSeconds"];

export function fieldFault({ status, message }: ApiError): FieldFault {
  const field =
    FIELDS.find(([prefix]) => status.startsWith(prefix))?.[1] ?? NAMED.find((name) => message.startsWith(name)) ?? null;
  const place = field === "code" ? /line (\d+), column (\d+)/.exec(message) : null;
  return { field, status, message, at: place && { line: Number(place[1]), column: Number(place[2]) } };
}
