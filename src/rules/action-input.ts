/**
 * Validates the data of a new or updated action with class-validator. The error is the first fault in the order of the
 * specification's validation table. The code that stores actions checks that their names are unique.
 */

import { ValidateBy, type ValidationError, validateSync } from "class-validator";
import type { ActionAccess, ActionSource, Environment, RunLimits, Trigger } from "../data/action-types.js";
import { ActionError, STATUS, type Status } from "../errors.js";
import { SERVER_TIMEOUT_MS } from "../limits.js";
import { accessFault, DEFAULT_ACCESS, toStoredAccess } from "./action-access.js";
import * as fields from "./action-fields.js";
import { SOURCE_SHAPE, sourceFault, toStoredSource } from "./action-source.js";
import { codeFault } from "./code.js";
import { isObject } from "./described.js";
import { refuseField } from "./fields.js";
import { integrationOriginsFault, toStoredOrigins } from "./integration-origins.js";
import {
  CONCURRENCY_SHAPE,
  concurrencyFault,
  DEBOUNCE_SHAPE,
  debounceFault,
  jitterFault,
  timeoutFault,
  toStoredConcurrency,
  toStoredDebounce,
} from "./run-limits.js";
import {
  forbiddenTriggerFault,
  toStoredTriggers,
  triggerShape,
  triggersFault,
  triggerTypeFault,
} from "./trigger-input.js";
import { flatShape, type Shape } from "./unknown-fields.js";
import { positionInValidationTable } from "./validation-table.js";

/** Fields of an action that its author sets (specification, Create parameters), after validation. */
export interface ActionInput extends RunLimits {
  name: string;
  code: string;
  description: string | null;
  active: boolean;
  environment: Environment;
  triggers: Trigger[];
  dependencies: string[];
  frequency: string | null;
  timezone: string | null;
  /** Origins that the action may send requests to, in normal form. */
  integrationOrigins: string[];
  /** Files from which `code` is built; absent if the author writes `code` itself. */
  source?: ActionSource;
  access: ActionAccess;
}

/** Run limits of an action that sets none. */
export const NO_LIMITS = { concurrency: null, debounce: null, timeoutMs: null, jitterSeconds: null } as const;

type NullableLimits = { [Limit in keyof RunLimits]-?: Required<RunLimits>[Limit] | null };

/** Returns only the run limits that are not null: an action without a limit must not have the field (specification). */
export function omitNullLimits(limits: NullableLimits): Pick<ActionInput, keyof NullableLimits> {
  const { concurrency, debounce, timeoutMs, jitterSeconds } = limits;
  return {
    ...(concurrency && { concurrency }),
    ...(debounce && { debounce }),
    ...(timeoutMs && { timeoutMs }),
    ...(jitterSeconds && { jitterSeconds }),
  };
}

/** Returns `{ source }`; an empty object if the action has no source, so that the field `source` is absent. */
export const omitNullSource = (source: ActionSource | null): Pick<ActionInput, "source"> => (source ? { source } : {});

/** Checks a field. Returns an error message with its name, the expected and the received value; null if it is valid. */
type FindFault = (value: unknown, body: ActionBody) => string | null;

interface RuleContext {
  status: Status;
  fault: FindFault;
}

/**
 * Decorator that adds a check with its error status to a field. `faultOf` builds the message, because class-validator
 * would replace `$value` in a text that the caller sent.
 */
function Rule(status: Status, fault: FindFault): PropertyDecorator {
  const context: RuleContext = { status, fault };
  return ValidateBy(
    {
      name: status,
      validator: {
        validate: (value, args) => fault(value, args?.object as ActionBody) === null,
        defaultMessage: () => STATUS[status].message,
      },
    },
    { context },
  );
}

/** Options of the validation: a function that checks code, the operator's time limit for runs, and if private networks are allowed. */
export interface CheckOptions {
  checkCode?: fields.CodeCheck;
  serverTimeoutMs?: number;
  allowPrivateNetwork?: boolean;
}

/** Action that class-validator checks: a new action, or an action after an update. Initial values are the defaults. */
class ActionBody {
  readonly #checkCode: fields.CodeCheck;
  readonly #serverTimeoutMs: number;
  readonly #allowPrivateNetwork: boolean;

  constructor({
    checkCode = codeFault,
    serverTimeoutMs = SERVER_TIMEOUT_MS,
    allowPrivateNetwork = false,
  }: CheckOptions) {
    this.#checkCode = checkCode;
    this.#serverTimeoutMs = serverTimeoutMs;
    this.#allowPrivateNetwork = allowPrivateNetwork;
  }

  get checkCode(): fields.CodeCheck {
    return this.#checkCode;
  }

  get serverTimeoutMs(): number {
    return this.#serverTimeoutMs;
  }

  get allowPrivateNetwork(): boolean {
    return this.#allowPrivateNetwork;
  }

  @Rule("NAME_REQUIRED", fields.missingNameFault)
  @Rule("NAME_EMPTY", fields.emptyNameFault)
  @Rule("NAME_TOO_LONG", fields.longNameFault)
  @Rule("NAME_INVALID_CHARS", fields.nameFault)
  name: unknown = undefined;

  @Rule("DESCRIPTION_INVALID", fields.descriptionFault)
  @Rule("DESCRIPTION_TOO_LONG", fields.longDescriptionFault)
  description: unknown = null;

  @Rule("CODE_REQUIRED", fields.missingCodeFault)
  @Rule("CODE_EMPTY", fields.emptyCodeFault)
  @Rule("CODE_VALIDATION_FAILED", (code, body) => fields.invalidCodeFault(code, body.dependencies, body.checkCode))
  code: unknown = undefined;

  @Rule("REQUEST_INVALID", fields.activeFault)
  active: unknown = false;

  @Rule("ENVIRONMENT_INVALID", fields.environmentFault)
  environment: unknown = "server";

  @Rule("FREQUENCY_INVALID", fields.invalidFrequencyFault)
  @Rule("FREQUENCY_TOO_FREQUENT", fields.highFrequencyFault)
  frequency: unknown = null;

  @Rule("TIMEZONE_INVALID", fields.invalidTimezoneFault)
  timezone: unknown = null;

  @Rule("TRIGGERS_INVALID", triggersFault)
  @Rule("TRIGGER_TYPE_INVALID", triggerTypeFault)
  @Rule("TRIGGER_NOT_ALLOWED", (triggers, body) => forbiddenTriggerFault(triggers, body.environment))
  triggers: unknown = [];

  @Rule("DEPENDENCIES_INVALID", fields.dependenciesFault)
  dependencies: unknown = [];

  @Rule("ACCESS_INVALID", accessFault)
  access: unknown = DEFAULT_ACCESS;

  @Rule("REQUEST_INVALID", (concurrency, body) => concurrencyFault(concurrency, body.environment))
  concurrency: unknown = null;

  @Rule("REQUEST_INVALID", (debounce, body) => debounceFault(debounce, body.environment))
  debounce: unknown = null;

  @Rule("REQUEST_INVALID", (timeoutMs, body) => timeoutFault(timeoutMs, body.environment, body.serverTimeoutMs))
  timeoutMs: unknown = null;

  @Rule("REQUEST_INVALID", (jitterSeconds, body) => jitterFault(jitterSeconds, body.triggers))
  jitterSeconds: unknown = null;

  @Rule("INTEGRATION_ORIGINS_INVALID", (origins, body) => integrationOriginsFault(origins, body.environment, body))
  integrationOrigins: unknown = [];

  @Rule("REQUEST_INVALID", sourceFault)
  source: unknown = null;
}

/** Names of the fields that an author sets. */
type ActionKey = Exclude<keyof ActionBody, keyof CheckOptions>;

/** Fields of an action or version that the service sets. Requests may contain them; they are ignored. */
const READ_ONLY = [
  ...["id", "appId", "actionVersion", "assets", "lastRunAt", "createdAt", "updatedAt", "isPublished", "endpoints"],
  ...["functions", "widgetInstanceIds", "masterTaskId", "productionTaskId"],
];

/** Fields that a request with an action may contain. */
export const ACTION_SHAPE: Shape = {
  fields: {
    ...flatShape(Object.keys(new ActionBody({}))).fields,
    ...{ triggers: [triggerShape], concurrency: CONCURRENCY_SHAPE, debounce: DEBOUNCE_SHAPE, source: SOURCE_SHAPE },
  },
  readOnly: READ_ONLY,
};

/** Fields in which an empty string means null (contract, section 3). `description` becomes null only after its check. */
const CLEARED_BY_EMPTY: ReadonlySet<ActionKey> = new Set(["frequency", "timezone"]);

/**
 * Validates a new action. Read-only properties are ignored, so that clients can send an action back as they read it.
 * @param checkOptions options of the validation. The service passes a `checkCode` with the result of a worker thread, because
 *   parsing a megabyte of code takes long.
 * @throws ActionError with a status of the validation table; REQUEST_INVALID if the data is not an object, or if the
 *   table has no status for the fault
 */
export function parseCreate(data: unknown, checkOptions: CheckOptions = {}): ActionInput {
  return checkBody(applyRequestData(new ActionBody(checkOptions), data));
}

/**
 * Returns the action after an update. Omitted properties stay unchanged; null or "" clears `description`. Validates the
 * whole action, because a new environment, code or list of dependencies must be consistent with the unchanged fields.
 * @throws ActionError as {@link parseCreate}
 */
export function parseUpdate(data: unknown, current: ActionInput, checkOptions: CheckOptions = {}): ActionInput {
  return checkBody(applyRequestData(applyRequestData(new ActionBody(checkOptions), current), data));
}

function applyRequestData(body: ActionBody, data: unknown): ActionBody {
  // A request without a body counts as an empty object, so that the error names the missing field.
  if (data === undefined) return body;
  if (!isObject(data)) {
    refuseField("the action's data", "an object", data);
  }
  for (const key of Object.keys(body) as ActionKey[]) {
    const value = Object.hasOwn(data, key) ? data[key] : undefined;
    if (value !== undefined) body[key] = value === "" && CLEARED_BY_EMPTY.has(key) ? null : value;
  }
  return body;
}

function checkBody(body: ActionBody): ActionInput {
  const errors = validateSync(body, { validationError: { target: false, value: false } });
  if (errors.length > 0) throw faultOf(errors, body);
  return {
    name: body.name as string,
    code: body.code as string,
    description: (body.description as string | null) || null,
    active: body.active as boolean,
    environment: body.environment as Environment,
    triggers: toStoredTriggers(body.triggers),
    dependencies: [...(body.dependencies as string[])],
    frequency: body.frequency as string | null,
    timezone: body.timezone as string | null,
    integrationOrigins: toStoredOrigins(body.integrationOrigins),
    access: toStoredAccess(body.access),
    ...omitNullSource(toStoredSource(body.source)),
    ...omitNullLimits({
      concurrency: toStoredConcurrency(body.concurrency),
      debounce: toStoredDebounce(body.debounce),
      timeoutMs: body.timeoutMs as number | null,
      jitterSeconds: body.jitterSeconds as number | null,
    }),
  };
}

/** Error for an invalid action. Its message is the first fault; `all` contains the faults of all fields. */
export class ActionInputError extends ActionError {
  constructor(readonly all: readonly { field: string; status: Status; error: string }[]) {
    super(all[0]!.status, all[0]!.error);
  }
}

function faultOf(errors: ValidationError[], body: ActionBody): ActionError {
  const brokenFields = errors
    .flatMap(({ property, contexts }) =>
      Object.values<RuleContext>(contexts ?? {}).map((rule) => ({ ...rule, property: property as ActionKey })),
    )
    .sort((a, b) => positionInValidationTable(a.status) - positionInValidationTable(b.status));
  if (brokenFields.length === 0) return new ActionError("REQUEST_INVALID");
  return new ActionInputError(
    brokenFields.map(({ status, fault, property }) => ({
      field: property,
      status,
      error: fault(body[property], body) ?? STATUS[status].message,
    })),
  );
}
