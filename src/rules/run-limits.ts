/**
 * Validates the run limits of an action: `concurrency`, `debounce`, `timeoutMs` and `jitterSeconds`. `find…Fault` returns an error message,
 * or null. `toStored…` returns the form in which the database stores a limit.
 */
import type { Concurrency, ConcurrencyPolicy, Debounce } from "../data/action-types.js";
import {
  CONCURRENCY_LIMIT_MAX,
  DEBOUNCE_DELAY_MAX_MS,
  DEBOUNCE_WAIT_MAX_MS,
  RUN_TIMEOUT_MIN_MS,
  SCHEDULE_JITTER_MAX_SECONDS,
} from "../limits.js";
import { describeValue, findUnstorableCharacter, isObject } from "./describe-value.js";
import { createFlatShape } from "./unknown-fields.js";

const CONCURRENCY_POLICIES: readonly ConcurrencyPolicy[] = ["skip", "queue", "cancel"];

const KEY_MAX_CHARACTERS = 255;
const KEY_PATH_PATTERN = /^[^\s.{}",\\]+(\.[^\s.{}",\\]+)*$/;
/** Default of `maxWaitMs` as a multiple of `delayMs`. */
const DEFAULT_DELAYS_PER_WAIT = 10;

const isAbsent = (value: unknown): value is null | undefined => value === null || value === undefined;

const isWithin = (value: unknown, min: number, max: number): value is number =>
  Number.isSafeInteger(value) && (value as number) >= min && (value as number) <= max;

/** Allowed fields of `concurrency`. The validation of the action rejects other fields. */
export const CONCURRENCY_SHAPE = createFlatShape(["policy", "limit", "key"]);
export const DEBOUNCE_SHAPE = createFlatShape(["delayMs", "maxWaitMs", "manual"]);

function findNumberFault(
  value: unknown,
  field: string,
  [min, max]: readonly [number, number],
  unit = "",
): string | null {
  if (isWithin(value, min, max)) return null;
  return `${field} must be a whole number${unit} from ${min} to ${max} (got ${describeValue(value)})`;
}

function findKeyFault(key: unknown): string | null {
  if (isAbsent(key)) return null;
  const isValid =
    typeof key === "string" &&
    key.length <= KEY_MAX_CHARACTERS &&
    KEY_PATH_PATTERN.test(key) &&
    findUnstorableCharacter(key) < 0;
  const expected = `the path of a property of the payload, such as "order.id", of at most ${KEY_MAX_CHARACTERS} characters`;
  return isValid ? null : `concurrency.key must be ${expected} (got ${describeValue(key)})`;
}

const findClientFault = (field: string, environment: unknown): string | null =>
  environment === "client"
    ? `${field} must not be set if environment is "client", because it limits only runs on the server`
    : null;

export function findConcurrencyFault(value: unknown, environment: unknown): string | null {
  if (isAbsent(value)) return null;
  if (!isObject(value)) return `concurrency must be an object or null (got ${describeValue(value)})`;
  const { policy, limit, key } = value;
  if (!CONCURRENCY_POLICIES.includes(policy as ConcurrencyPolicy)) {
    return `concurrency.policy must be one of ${CONCURRENCY_POLICIES.join(", ")} (got ${describeValue(policy)})`;
  }
  const limitFault = isAbsent(limit) ? null : findNumberFault(limit, "concurrency.limit", [1, CONCURRENCY_LIMIT_MAX]);
  return limitFault ?? findKeyFault(key) ?? findClientFault("concurrency", environment);
}

export function findDebounceFault(value: unknown, environment: unknown): string | null {
  if (isAbsent(value)) return null;
  if (!isObject(value)) return `debounce must be an object or null (got ${describeValue(value)})`;
  const { delayMs, maxWaitMs, manual } = value;
  const unitText = " (milliseconds)";
  const delayFault = findNumberFault(delayMs, "debounce.delayMs", [1, DEBOUNCE_DELAY_MAX_MS], unitText);
  if (delayFault !== null) return delayFault;
  const bounds = [delayMs as number, DEBOUNCE_WAIT_MAX_MS] as const;
  const waitFault = isAbsent(maxWaitMs) ? null : findNumberFault(maxWaitMs, "debounce.maxWaitMs", bounds, unitText);
  if (waitFault !== null) return waitFault;
  if (!isAbsent(manual) && typeof manual !== "boolean") {
    return `debounce.manual must be true or false (got ${describeValue(manual)})`;
  }
  return findClientFault("debounce", environment);
}

/** Returns an error message for an invalid `timeoutMs`; null if valid. @param max maximum in milliseconds, which the operator sets */
export function findTimeoutFault(value: unknown, environment: unknown, max: number): string | null {
  if (isAbsent(value)) return null;
  const minimumMs = Math.min(RUN_TIMEOUT_MIN_MS, max);
  return (
    findNumberFault(value, "timeoutMs", [minimumMs, max], " (milliseconds)") ??
    findClientFault("timeoutMs", environment)
  );
}

/** Returns an error message for an invalid `jitterSeconds`; null if valid. Without a schedule trigger, only 0 and null are valid. */
export function findJitterFault(value: unknown, triggers: unknown): string | null {
  if (isAbsent(value)) return null;
  const fault = findNumberFault(value, "jitterSeconds", [0, SCHEDULE_JITTER_MAX_SECONDS]);
  if (fault !== null || value === 0) return fault;
  const isScheduled =
    Array.isArray(triggers) && triggers.some((trigger) => isObject(trigger) && trigger["trigger"] === "schedule");
  return isScheduled
    ? null
    : `jitterSeconds must be 0 or null for an action without a schedule trigger (got ${describeValue(value)})`;
}

/** Returns a valid `concurrency` as the service stores it, with the defaults filled in. */
export function toStoredConcurrency(validInput: unknown): Concurrency | null {
  if (!isObject(validInput)) return null;
  const { policy, limit, key } = validInput as unknown as Concurrency;
  return { policy, limit: limit ?? 1, key: key ?? null };
}

/** Returns a valid `debounce` as the service stores it, with the defaults filled in. */
export function toStoredDebounce(validInput: unknown): Debounce | null {
  if (!isObject(validInput)) return null;
  const { delayMs, maxWaitMs, manual } = validInput as unknown as Debounce;
  const longestWaitMs = maxWaitMs ?? Math.min(delayMs * DEFAULT_DELAYS_PER_WAIT, DEBOUNCE_WAIT_MAX_MS);
  return { delayMs, maxWaitMs: longestWaitMs, manual: manual ?? false };
}
