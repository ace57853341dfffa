/**
 * Validates the secret bindings of an app (contract, section 9). A binding adds the value of a setting to actions' requests to one origin.
 * Code cannot read a sealed setting. A change that reveals its value, or sends it to a new destination, must contain the value.
 */
import { ActionError } from "../errors.js";
import { SECRET_BINDINGS_PER_APP_MAX } from "../limits.js";
import { describeType, describeValue, isObject } from "./describe-value.js";
import { findIntegrationOriginsFault, normalizeOrigin } from "./integration-origins.js";
import { isHeaderName, isHeaderValue } from "./request-options.js";
import { refuseUnknownFields, type Shape } from "./unknown-fields.js";

export const SECRET_BINDING_TARGETS = ["header", "query", "basic", "aws-sigv4", "oauth2"] as const;
export type SecretBindingTarget = (typeof SECRET_BINDING_TARGETS)[number];
const OAUTH_GRANTS = ["client_credentials", "refresh_token"] as const;
type OAuthGrantType = (typeof OAUTH_GRANTS)[number];

export interface SecretBinding {
  key: string;
  /** Normalized origin. The service adds the value only to requests to this origin. */
  origin: string;
  in: SecretBindingTarget;
  /** Header or query parameter for the value. For `basic`: the user name. For `aws-sigv4`: the service and region (`s3/eu-west-1`). */
  name: string | null;
  /** Text to send, in which the setting's value replaces `{value}`; null to send only the value. */
  format: string | null;
  /** True if the setting is sealed: code does not receive its value. */
  sealed: boolean;
  tokenUrl: string | null;
  clientId: string | null;
  scopes: string[];
  grant: OAuthGrantType | null;
}

export type SecretBindingChange = SecretBinding & { value?: unknown };

const BINDING_FIELDS = [
  "key",
  "origin",
  "in",
  "name",
  "format",
  "sealed",
  "tokenUrl",
  "clientId",
  "scopes",
  "grant",
  "value",
];
const BINDING_SHAPE: Shape = {
  fields: { bindings: [{ fields: Object.fromEntries(BINDING_FIELDS.map((name) => [name, null])) }] },
  readOnly: ["updatedAt"],
};
const TEXT_MAX_CHARACTERS = 500;
const KEY_MAX_CHARACTERS = 512;
const SCOPES_MAX = 50;
const VALUE_PLACEHOLDER = "{value}";
/** Matches headers that a binding cannot set, because the service or the connection sets them. */
const RESERVED_HEADER_PATTERN =
  /^(?:host|content-length|connection|keep-alive|te|trailer|transfer-encoding|upgrade|expect|proxy-.*|http2-settings|:.*)$/i;
const AWS_NAME_PATTERN = /^[a-z0-9-]{1,64}\/[a-z0-9-]{1,64}$/;

function throwBindingError(message: string): never {
  throw new ActionError("REQUEST_INVALID", message);
}

function readOptionalText(value: unknown, path: string): string | null {
  if (value === undefined || value === null) return null;
  if (typeof value === "string" && value !== "" && value.length <= TEXT_MAX_CHARACTERS) return value;
  return throwBindingError(
    `${path} must be a string of 1 to ${TEXT_MAX_CHARACTERS} characters (got ${describeType(value)})`,
  );
}

function requireOneOf<Value extends string>(value: unknown, values: readonly Value[], path: string): Value {
  if (values.includes(value as Value)) return value as Value;
  return throwBindingError(`${path} must be one of ${values.join(", ")} (got ${describeValue(value)})`);
}

function readKey(key: unknown, path: string): string {
  if (typeof key === "string" && /^_./.test(key) && key.length <= KEY_MAX_CHARACTERS) return key;
  return throwBindingError(
    `${path} must be the key of a private or protected setting, such as "__stripe" (got ${describeValue(key)})`,
  );
}

function readOrigin(value: unknown, path: string, allowPrivateNetwork: boolean): string {
  const originProblem = findIntegrationOriginsFault([value], "server", { allowPrivateNetwork });
  if (originProblem !== null) throwBindingError(originProblem.replace("integrationOrigins[0]", path));
  return normalizeOrigin(new URL(value as string))!;
}

function readTokenUrl(value: unknown, path: string, allowPrivateNetwork: boolean): string {
  const url = typeof value === "string" && value.length <= TEXT_MAX_CHARACTERS ? URL.parse(value) : null;
  const isPlain = url !== null && url.username === "" && url.password === "" && url.hash === "";
  if (!isPlain || findIntegrationOriginsFault([url.origin], "server", { allowPrivateNetwork }) !== null) {
    const received =
      url !== null && url.username + url.password !== "" ? "a URL with credentials" : describeValue(value);
    return throwBindingError(`${path} must be an https URL without credentials and fragment (got ${received})`);
  }
  return url.href;
}

function readName(target: SecretBindingTarget, value: unknown, path: string): string | null {
  const name = readOptionalText(value, path);
  if (target === "query" && name === null) throwBindingError(`${path} is required if "in" is "query"`);
  if (target === "header" && name !== null && (!isHeaderName(name) || RESERVED_HEADER_PATTERN.test(name))) {
    throwBindingError(`${path} must be the name of a header that a request may set (got ${describeValue(name)})`);
  }
  if (target === "basic" && name?.includes(":"))
    throwBindingError(`${path} must be a user name without a colon (got ${describeValue(name)})`);
  if (target === "aws-sigv4" && name !== null && !AWS_NAME_PATTERN.test(name)) {
    throwBindingError(`${path} must be service and region, such as "s3/eu-west-1" (got ${describeValue(name)})`);
  }
  return name;
}

function readFormat(target: SecretBindingTarget, value: unknown, path: string): string | null {
  const format = readOptionalText(value, path);
  if (format === null) return null;
  if (target !== "header" && target !== "query")
    throwBindingError(`${path} is allowed only if "in" is "header" or "query"`);
  if (format.split(VALUE_PLACEHOLDER).length !== 2 || !isHeaderValue(format)) {
    throwBindingError(
      `${path} must be printable text that contains ${VALUE_PLACEHOLDER} once (got ${describeValue(format)})`,
    );
  }
  return format;
}

function readScopes(value: unknown, path: string): string[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value) || value.length > SCOPES_MAX) {
    return throwBindingError(`${path} must be an array of at most ${SCOPES_MAX} scopes (got ${describeValue(value)})`);
  }
  return value.map(
    (scope, index) =>
      readOptionalText(scope, `${path}[${index}]`) ??
      throwBindingError(`${path}[${index}] must be a string (got null)`),
  );
}

function readOauth(
  input: Record<string, unknown>,
  target: SecretBindingTarget,
  path: string,
  allowPrivateNetwork: boolean,
) {
  const { tokenUrl, clientId, scopes, grant } = input;
  if (target !== "oauth2") {
    const extraField = ["tokenUrl", "clientId", "scopes", "grant"].find(
      (name) => input[name] !== undefined && input[name] !== null,
    );
    const isEmpty = extraField === "scopes" && Array.isArray(scopes) && scopes.length === 0;
    if (extraField !== undefined && !isEmpty)
      throwBindingError(`${path}.${extraField} is allowed only if "in" is "oauth2"`);
    return { tokenUrl: null, clientId: null, scopes: [], grant: null };
  }
  return {
    tokenUrl: readTokenUrl(tokenUrl, `${path}.tokenUrl`, allowPrivateNetwork),
    clientId:
      readOptionalText(clientId, `${path}.clientId`) ??
      throwBindingError(`${path}.clientId is required if "in" is "oauth2"`),
    scopes: readScopes(scopes, `${path}.scopes`),
    grant: requireOneOf(grant, OAUTH_GRANTS, `${path}.grant`),
  };
}

function readBinding(input: unknown, path: string, allowPrivateNetwork: boolean): SecretBindingChange {
  if (!isObject(input)) return throwBindingError(`${path} must be an object (got ${describeValue(input)})`);
  const key = readKey(input["key"], `${path}.key`);
  const target = requireOneOf(input["in"], SECRET_BINDING_TARGETS, `${path}.in`);
  const { sealed = false, value } = input;
  if (typeof sealed !== "boolean")
    throwBindingError(`${path}.sealed must be true or false (got ${describeValue(sealed)})`);
  if (sealed && !key.startsWith("__"))
    throwBindingError(`${path}.sealed can be true only for keys that start with __ (got ${describeValue(key)})`);
  return {
    key,
    origin: readOrigin(input["origin"], `${path}.origin`, allowPrivateNetwork),
    in: target,
    name: readName(target, input["name"], `${path}.name`),
    format: readFormat(target, input["format"], `${path}.format`),
    sealed: sealed as boolean,
    ...readOauth(input, target, path, allowPrivateNetwork),
    ...(value !== undefined && value !== null && { value }),
  };
}

/** Validates the list of bindings in a request. @throws REQUEST_INVALID with the path of the invalid field */
export function parseSecretBindings(body: unknown, allowPrivateNetwork: boolean): SecretBindingChange[] {
  const list = isObject(body) ? body["bindings"] : undefined;
  if (!Array.isArray(list) || list.length > SECRET_BINDINGS_PER_APP_MAX) {
    return throwBindingError(
      `bindings must be an array of at most ${SECRET_BINDINGS_PER_APP_MAX} bindings (got ${describeValue(list)})`,
    );
  }
  const bindings = list.map((binding, index) => readBinding(binding, `bindings[${index}]`, allowPrivateNetwork));
  for (const [at, { key, origin, sealed }] of bindings.entries()) {
    const before = bindings.slice(0, at).filter((other) => other.key === key);
    if (before.some((other) => other.origin === origin))
      throwBindingError(`bindings[${at}] must not have the same key and origin as another binding`);
    if (before.some((other) => other.sealed !== sealed)) {
      throwBindingError(`bindings[${at}].sealed must be the same in all bindings of ${describeValue(key)}`);
    }
  }
  refuseUnknownFields(body, BINDING_SHAPE);
  return bindings;
}

/** Returns a text that is equal for bindings that send the value to the same destination in the same way. */
const createDestinationKey = ({ sealed, value, ...destination }: SecretBindingChange): string =>
  JSON.stringify(Object.entries(destination).sort());

/**
 * Returns the first sealed key whose value is missing in the request; null if no value is missing. A request must contain a sealed value if
 * it makes the value readable, or sends it to a new destination: only a caller who knows the value may do so.
 */
export function findSealedKeyMissingValue(
  before: readonly SecretBinding[],
  sealedKeys: readonly string[],
  after: readonly SecretBindingChange[],
): string | null {
  for (const key of sealedKeys) {
    const keyBindings = after.filter((binding) => binding.key === key);
    const knownDestinations = new Set(before.filter((binding) => binding.key === key).map(createDestinationKey));
    const isWider = keyBindings.some(
      (binding) => !binding.sealed || !knownDestinations.has(createDestinationKey(binding)),
    );
    if (isWider && !keyBindings.some(({ value }) => value !== undefined)) return key;
  }
  return null;
}

/** Returns the keys that are sealed (code cannot read their values) after a change. Removing all bindings of a key does not unseal it. */
export function computeSealedKeysAfterChange(
  sealedKeys: readonly string[],
  after: readonly SecretBindingChange[],
): string[] {
  const unsealedKeys = new Set(after.filter(({ sealed }) => !sealed).map(({ key }) => key));
  const stillSealedKeys = sealedKeys.filter((key) => !unsealedKeys.has(key));
  return [...new Set([...stillSealedKeys, ...after.filter(({ sealed }) => sealed).map(({ key }) => key)])];
}
