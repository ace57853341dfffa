/** Validates the data of a new or updated action with class-validator. Reports the fault that is first in the API specification's table. */

import { ValidateBy, type ValidationError, validateSync } from "class-validator";
import type { ActionAccess, ActionSource, Environment, RunLimits, Trigger } from "../data/action-types.js";
import { ActionError, STATUS, type Status } from "../errors.js";
import { SERVER_TIMEOUT_MS } from "../limits.js";
import { DEFAULT_ACTION_ACCESS, findActionAccessFault, toStoredActionAccess } from "./action-access.js";
import * as fields from "./action-fields.js";
import { ACTION_SOURCE_SHAPE, findActionSourceFault, toStoredActionSource } from "./action-source.js";
import { findCodeFault } from "./code.js";
import { isObject } from "./describe-value.js";
import { refuseField } from "./fields.js";
import { findIntegrationOriginsFault, toStoredIntegrationOrigins } from "./integration-origins.js";
import {
  CONCURRENCY_SHAPE,
  DEBOUNCE_SHAPE,
  findConcurrencyFault,
  findDebounceFault,
  findJitterFault,
  findTimeoutFault,
  toStoredConcurrency,
  toStoredDebounce,
} from "./run-limits.js";
import {
  findForbiddenTriggerFault,
  findTriggersFault,
  findTriggerTypeFault,
  getTriggerShape,
  toStoredTriggers,
} from "./trigger-input.js";
import { createFlatShape, type Shape } from "./unknown-fields.js";
import { getValidationTableIndex } from "./validation-table.js";

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
  /** Origins that the action may send requests to, in normalized form (`normalizeOrigin`). */
  integrationOrigins: string[];
  /** Files from which the service builds `code`; absent if the author writes `code` itself. */
  source?: ActionSource;
  access: ActionAccess;
}

export const NO_RUN_LIMITS = { concurrency: null, debounce: null, timeoutMs: null, jitterSeconds: null } as const;

type NullableLimits = { [Limit in keyof RunLimits]-?: Required<RunLimits>[Limit] | null };

/** Returns only the run limits that are set (neither null nor 0). A response has no field for a run limit that is not set. */
export function omitUnsetRunLimits(limits: NullableLimits): Pick<ActionInput, keyof NullableLimits> {
  const { concurrency, debounce, timeoutMs, jitterSeconds } = limits;
  return {
    ...(concurrency && { concurrency }),
    ...(debounce && { debounce }),
    ...(timeoutMs && { timeoutMs }),
    ...(jitterSeconds && { jitterSeconds }),
  };
}

/** Returns `{ source }`, or {} if the action has no source, so that responses then have no field `source`. */
export const omitActionSourceIfNull = (source: ActionSource | null): Pick<ActionInput, "source"> =>
  source ? { source } : {};

/** Checks the value of a field. Returns an error message with the field's name and the received value; null if the value is valid. */
type FindFault = (value: unknown, body: ActionBody) => string | null;

interface RuleContext {
  status: Status;
  findFault: FindFault;
}

/** Adds a check and its error status to a field. Messages are built elsewhere: class-validator would replace `$value` in received texts. */
function FieldCheck(status: Status, findFault: FindFault): PropertyDecorator {
  const context: RuleContext = { status, findFault };
  return ValidateBy(
    {
      name: status,
      validator: {
        validate: (value, args) => findFault(value, args?.object as ActionBody) === null,
        defaultMessage: () => STATUS[status].message,
      },
    },
    { context },
  );
}

/** Options of the validation: a function that checks code, the operator's time limit for runs, and if private networks are allowed. */
export interface ActionCheckOptions {
  checkCode?: fields.CheckActionCode;
  serverTimeoutMs?: number;
  allowPrivateNetwork?: boolean;
}

/** Fields of a new or updated action, with the checks of class-validator. The initial values are the defaults. */
class ActionBody {
  readonly #checkCode: fields.CheckActionCode;
  readonly #serverTimeoutMs: number;
  readonly #allowPrivateNetwork: boolean;

  constructor({
    checkCode = findCodeFault,
    serverTimeoutMs = SERVER_TIMEOUT_MS,
    allowPrivateNetwork = false,
  }: ActionCheckOptions) {
    this.#checkCode = checkCode;
    this.#serverTimeoutMs = serverTimeoutMs;
    this.#allowPrivateNetwork = allowPrivateNetwork;
  }

  get checkCode(): fields.CheckActionCode {
    return this.#checkCode;
  }

  get serverTimeoutMs(): number {
    return this.#serverTimeoutMs;
  }

  get allowPrivateNetwork(): boolean {
    return this.#allowPrivateNetwork;
  }

  @FieldCheck("NAME_REQUIRED", fields.findMissingNameFault)
  @FieldCheck("NAME_EMPTY", fields.findEmptyNameFault)
  @FieldCheck("NAME_TOO_LONG", fields.findLongNameFault)
  @FieldCheck("NAME_INVALID_CHARS", fields.findNameFault)
  name: unknown = undefined;

  @FieldCheck("DESCRIPTION_INVALID", fields.findDescriptionFault)
  @FieldCheck("DESCRIPTION_TOO_LONG", fields.findLongDescriptionFault)
  description: unknown = null;

  @FieldCheck("CODE_REQUIRED", fields.findMissingCodeFault)
  @FieldCheck("CODE_EMPTY", fields.findEmptyCodeFault)
  @FieldCheck("CODE_VALIDATION_FAILED", (code, body) =>
    fields.findInvalidCodeFault(code, body.dependencies, body.checkCode),
  )
  code: unknown = undefined;

  @FieldCheck("REQUEST_INVALID", fields.findActiveFault)
  active: unknown = false;

  @FieldCheck("ENVIRONMENT_INVALID", fields.findEnvironmentFault)
  environment: unknown = "server";

  @FieldCheck("FREQUENCY_INVALID", fields.findInvalidFrequencyFault)
  @FieldCheck("FREQUENCY_TOO_FREQUENT", fields.findHighFrequencyFault)
  frequency: unknown = null;

  @FieldCheck("TIMEZONE_INVALID", fields.findInvalidTimezoneFault)
  timezone: unknown = null;

  @FieldCheck("TRIGGERS_INVALID", findTriggersFault)
  @FieldCheck("TRIGGER_TYPE_INVALID", findTriggerTypeFault)
  @FieldCheck("TRIGGER_NOT_ALLOWED", (triggers, body) => findForbiddenTriggerFault(triggers, body.environment))
  triggers: unknown = [];

  @FieldCheck("DEPENDENCIES_INVALID", fields.findDependenciesFault)
  dependencies: unknown = [];

  @FieldCheck("ACCESS_INVALID", findActionAccessFault)
  access: unknown = DEFAULT_ACTION_ACCESS;

  @FieldCheck("REQUEST_INVALID", (concurrency, body) => findConcurrencyFault(concurrency, body.environment))
  concurrency: unknown = null;

  @FieldCheck("REQUEST_INVALID", (debounce, body) => findDebounceFault(debounce, body.environment))
  debounce: unknown = null;

  @FieldCheck("REQUEST_INVALID", (timeoutMs, body) =>
    findTimeoutFault(timeoutMs, body.environment, body.serverTimeoutMs),
  )
  timeoutMs: unknown = null;

  @FieldCheck("REQUEST_INVALID", (jitterSeconds, body) => findJitterFault(jitterSeconds, body.triggers))
  jitterSeconds: unknown = null;

  @FieldCheck("INTEGRATION_ORIGINS_INVALID", (origins, body) =>
    findIntegrationOriginsFault(origins, body.environment, body),
  )
  integrationOrigins: unknown = [];

  @FieldCheck("REQUEST_INVALID", findActionSourceFault)
  source: unknown = null;
}

type ActionKey = Exclude<keyof ActionBody, keyof ActionCheckOptions>;

/** Fields of an action or version that only the service sets. Requests may contain them; the service ignores them. */
const READ_ONLY_FIELDS = [
  ...["id", "appId", "actionVersion", "assets", "lastRunAt", "createdAt", "updatedAt", "isPublished", "endpoints"],
  ...["functions", "widgetInstanceIds", "masterTaskId", "productionTaskId"],
];

export const ACTION_SHAPE: Shape = {
  fields: {
    ...createFlatShape(Object.keys(new ActionBody({}))).fields,
    ...{
      triggers: [getTriggerShape],
      concurrency: CONCURRENCY_SHAPE,
      debounce: DEBOUNCE_SHAPE,
      source: ACTION_SOURCE_SHAPE,
    },
  },
  readOnly: READ_ONLY_FIELDS,
};

/** Fields for which "" in a request means null (contract, section 3). `description` becomes null only after its check. */
const FIELDS_CLEARED_BY_EMPTY_TEXT: ReadonlySet<ActionKey> = new Set(["frequency", "timezone"]);

/**
 * Validates a new action. Ignores read-only fields, so that clients can send back an action that they have read.
 * @throws ActionError with the status of the first fault; REQUEST_INVALID if no other status fits
 */
export function parseNewAction(data: unknown, checkOptions: ActionCheckOptions = {}): ActionInput {
  return checkBody(applyRequestData(new ActionBody(checkOptions), data));
}

/**
 * Returns the action after an update. Omitted fields stay unchanged. null clears a field that can be null; for `description`,
 * `frequency` and `timezone`, "" does so too. Validates the whole action, because changed and unchanged fields must fit together.
 * @throws ActionError as {@link parseNewAction}
 */
export function parseActionUpdate(
  data: unknown,
  current: ActionInput,
  checkOptions: ActionCheckOptions = {},
): ActionInput {
  return checkBody(applyRequestData(applyRequestData(new ActionBody(checkOptions), current), data));
}

function applyRequestData(body: ActionBody, data: unknown): ActionBody {
  // Without a body, the error names the first missing field, as for an empty object.
  if (data === undefined) return body;
  if (!isObject(data)) {
    refuseField("the action's data", "an object", data);
  }
  for (const key of Object.keys(body) as ActionKey[]) {
    const value = Object.hasOwn(data, key) ? data[key] : undefined;
    if (value !== undefined) body[key] = value === "" && FIELDS_CLEARED_BY_EMPTY_TEXT.has(key) ? null : value;
  }
  return body;
}

function checkBody(body: ActionBody): ActionInput {
  const errors = validateSync(body, { validationError: { target: false, value: false } });
  if (errors.length > 0) throw createInputError(errors, body);
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
    integrationOrigins: toStoredIntegrationOrigins(body.integrationOrigins),
    access: toStoredActionAccess(body.access),
    ...omitActionSourceIfNull(toStoredActionSource(body.source)),
    ...omitUnsetRunLimits({
      concurrency: toStoredConcurrency(body.concurrency),
      debounce: toStoredDebounce(body.debounce),
      timeoutMs: body.timeoutMs as number | null,
      jitterSeconds: body.jitterSeconds as number | null,
    }),
  };
}

/** Error for an invalid action. The message describes the first fault; `fieldFaults` contains the faults of all fields. */
export class ActionInputError extends ActionError {
  constructor(readonly fieldFaults: readonly { field: string; status: Status; error: string }[]) {
    super(fieldFaults[0]!.status, fieldFaults[0]!.error);
  }
}

function createInputError(errors: ValidationError[], body: ActionBody): ActionError {
  const fieldFaults = errors
    .flatMap(({ property, contexts }) =>
      Object.values<RuleContext>(contexts ?? {}).map((rule) => ({ ...rule, property: property as ActionKey })),
    )
    .sort((a, b) => getValidationTableIndex(a.status) - getValidationTableIndex(b.status));
  if (fieldFaults.length === 0) return new ActionError("REQUEST_INVALID");
  return new ActionInputError(
    fieldFaults.map(({ status, findFault, property }) => ({
      field: property,
      status,
      error: findFault(body[property], body) ?? STATUS[status].message,
    })),
  );
}
