/**
 * Secret bindings define which setting is sent to which origin, and in which part of the request (contract, section 9).
 * This file validates the list that an editor stores, and decides which changes of a sealed key require its value
 * again.
 */
import { ActionError } from "../errors.js";
import { SECRET_BINDINGS_MAX } from "../limits.js";
import { describeType, describeValue, isObject } from "./described.js";
import { integrationOriginsFault, normalizeOrigin } from "./integration-origins.js";
import { isHeaderName, isHeaderValue } from "./request-options.js";
import { refuseUnknownFields, type Shape } from "./unknown-fields.js";

export const BINDING_PLACES = ["header", "query", "basic", "aws-sigv4", "oauth2"] as const;
export type BindingTarget = (typeof BINDING_PLACES)[number];
const OAUTH_GRANTS = ["client_credentials", "refresh_token"] as const;
type OAuthGrantType = (typeof OAUTH_GRANTS)[number];

export interface SecretBinding {
  /** Key of a private or protected setting. */
  key: string;
  /** Origin to which the value is sent, in normal form. */
  origin: string;
  in: BindingTarget;
  /** Name of the header or query parameter. For `basic` the user name; for `aws-sigv4` service and region (`s3/eu-west-1`). */
  name: string | null;
  /** Text with one `{value}`, which is replaced by the setting's value. */
  format: string | null;
  /** True if code does not receive the setting in `context.settings`. */
  sealed: boolean;
  tokenUrl: string | null;
  clientId: string | null;
  scopes: string[];
  grant: OAuthGrantType | null;
}

/** Binding in a request, with the new value of its setting if the request contains one. */
export type BindingInput = SecretBinding & { value?: unknown };

const FIELDS = ["key", "origin", "in", "name", "format", "sealed", "tokenUrl", "clientId", "scopes", "grant", "value"];
const BINDING_SHAPE: Shape = {
  fields: { bindings: [{ fields: Object.fromEntries(FIELDS.map((name) => [name, null])) }] },
  readOnly: ["updatedAt"],
};
const TEXT_MAX_CHARACTERS = 500;
const KEY_MAX_CHARACTERS = 512;
const SCOPES_MAX = 50;
const VALUE_PLACEHOLDER = "{value}";
/** Matches headers that a binding cannot set, because the service or the connection sets them. */
const FIXED_HEADER =
  /^(?:host|content-length|connection|keep-alive|te|trailer|transfer-encoding|upgrade|expect|proxy-.*|http2-settings|:.*)$/i;
const AWS_NAME = /^[a-z0-9-]{1,64}\/[a-z0-9-]{1,64}$/;

function bindingError(message: string): never {
  throw new ActionError("REQUEST_INVALID", message);
}

function text(value: unknown, path: string): string | null {
  if (value === undefined || value === null) return null;
  if (typeof value === "string" && value !== "" && value.length <= TEXT_MAX_CHARACTERS) return value;
  return bindingError(
    `${path} must be a string of 1 to ${TEXT_MAX_CHARACTERS} characters (got ${describeType(value)})`,
  );
}

function oneOf<Value extends string>(value: unknown, values: readonly Value[], path: string): Value {
  if (values.includes(value as Value)) return value as Value;
  return bindingError(`${path} must be one of ${values.join(", ")} (got ${describeValue(value)})`);
}

function readKey(key: unknown, path: string): string {
  if (typeof key === "string" && /^_./.test(key) && key.length <= KEY_MAX_CHARACTERS) return key;
  return bindingError(
    `${path} must be the key of a private or protected setting, such as "__stripe" (got ${describeValue(key)})`,
  );
}

function readOrigin(value: unknown, path: string, allowPrivateNetwork: boolean): string {
  const originProblem = integrationOriginsFault([value], "server", { allowPrivateNetwork });
  if (originProblem !== null) bindingError(originProblem.replace("integrationOrigins[0]", path));
  return normalizeOrigin(new URL(value as string))!;
}

function readTokenUrl(value: unknown, path: string, allowPrivateNetwork: boolean): string {
  const url = typeof value === "string" && value.length <= TEXT_MAX_CHARACTERS ? URL.parse(value) : null;
  const isPlain = url !== null && url.username === "" && url.password === "" && url.hash === "";
  if (!isPlain || integrationOriginsFault([url.origin], "server", { allowPrivateNetwork }) !== null) {
    return bindingError(`${path} must be an https URL without credentials (got ${describeValue(value)})`);
  }
  return url.href;
}

function readName(target: BindingTarget, value: unknown, path: string): string | null {
  const name = text(value, path);
  if (target === "query" && name === null) bindingError(`${path} is required if "in" is "query"`);
  if (target === "header" && name !== null && (!isHeaderName(name) || FIXED_HEADER.test(name))) {
    bindingError(`${path} must be the name of a header that a request may set (got ${describeValue(name)})`);
  }
  if (target === "basic" && name?.includes(":"))
    bindingError(`${path} must be a user name without a colon (got ${describeValue(name)})`);
  if (target === "aws-sigv4" && name !== null && !AWS_NAME.test(name)) {
    bindingError(`${path} must be service and region, such as "s3/eu-west-1" (got ${describeValue(name)})`);
  }
  return name;
}

function readFormat(target: BindingTarget, value: unknown, path: string): string | null {
  const format = text(value, path);
  if (format === null) return null;
  if (target !== "header" && target !== "query") bindingError(`${path} is allowed only if "in" is "header" or "query"`);
  if (format.split(VALUE_PLACEHOLDER).length !== 2 || !isHeaderValue(format)) {
    bindingError(
      `${path} must be printable text that contains ${VALUE_PLACEHOLDER} once (got ${describeValue(format)})`,
    );
  }
  return format;
}

function readScopes(value: unknown, path: string): string[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value) || value.length > SCOPES_MAX) {
    return bindingError(`${path} must be an array of at most ${SCOPES_MAX} scopes (got ${describeValue(value)})`);
  }
  return value.map(
    (scope, index) => text(scope, `${path}[${index}]`) ?? bindingError(`${path}[${index}] must be a string (got null)`),
  );
}

function readOauth(input: Record<string, unknown>, target: BindingTarget, path: string, allowPrivateNetwork: boolean) {
  const { tokenUrl, clientId, scopes, grant } = input;
  if (target !== "oauth2") {
    const extraField = ["tokenUrl", "clientId", "scopes", "grant"].find(
      (name) => input[name] !== undefined && input[name] !== null,
    );
    const isEmpty = extraField === "scopes" && Array.isArray(scopes) && scopes.length === 0;
    if (extraField !== undefined && !isEmpty) bindingError(`${path}.${extraField} is allowed only if "in" is "oauth2"`);
    return { tokenUrl: null, clientId: null, scopes: [], grant: null };
  }
  return {
    tokenUrl: readTokenUrl(tokenUrl, `${path}.tokenUrl`, allowPrivateNetwork),
    clientId: text(clientId, `${path}.clientId`) ?? bindingError(`${path}.clientId is required if "in" is "oauth2"`),
    scopes: readScopes(scopes, `${path}.scopes`),
    grant: oneOf(grant, OAUTH_GRANTS, `${path}.grant`),
  };
}

function readBinding(input: unknown, path: string, allowPrivateNetwork: boolean): BindingInput {
  if (!isObject(input)) return bindingError(`${path} must be an object (got ${describeValue(input)})`);
  const key = readKey(input["key"], `${path}.key`);
  const place = oneOf(input["in"], BINDING_PLACES, `${path}.in`);
  const { sealed = false, value } = input;
  if (typeof sealed !== "boolean") bindingError(`${path}.sealed must be true or false (got ${describeValue(sealed)})`);
  if (sealed && !key.startsWith("__"))
    bindingError(`${path}.sealed can be true only for keys that start with __ (got ${describeValue(key)})`);
  return {
    key,
    origin: readOrigin(input["origin"], `${path}.origin`, allowPrivateNetwork),
    in: place,
    name: readName(place, input["name"], `${path}.name`),
    format: readFormat(place, input["format"], `${path}.format`),
    sealed: sealed as boolean,
    ...readOauth(input, place, path, allowPrivateNetwork),
    ...(value !== undefined && value !== null && { value }),
  };
}

/** @throws REQUEST_INVALID with the path of the invalid field */
export function readSecretBindings(body: unknown, allowPrivateNetwork: boolean): BindingInput[] {
  const list = isObject(body) ? body["bindings"] : undefined;
  if (!Array.isArray(list) || list.length > SECRET_BINDINGS_MAX) {
    return bindingError(
      `bindings must be an array of at most ${SECRET_BINDINGS_MAX} bindings (got ${describeValue(list)})`,
    );
  }
  const bindings = list.map((binding, index) => readBinding(binding, `bindings[${index}]`, allowPrivateNetwork));
  for (const [at, { key, origin, sealed }] of bindings.entries()) {
    const before = bindings.slice(0, at).filter((other) => other.key === key);
    if (before.some((other) => other.origin === origin))
      bindingError(`bindings[${at}] must not have the same key and origin as another binding`);
    if (before.some((other) => other.sealed !== sealed)) {
      bindingError(`bindings[${at}].sealed must be the same in all bindings of ${describeValue(key)}`);
    }
  }
  refuseUnknownFields(body, BINDING_SHAPE);
  return bindings;
}

/** Returns a key of all fields that decide where and how the value is sent. A different key means a new destination. */
const destinationOf = ({ sealed: _sealed, value: _value, ...destination }: BindingInput): string =>
  JSON.stringify(Object.entries(destination).sort());

/**
 * Returns the first sealed key that must not change without its value; null if there is none. Whoever unseals a key, or
 * adds a destination, must send the secret value again, which proves that they know it.
 */
export function sealedKeyNeedingValue(
  before: readonly SecretBinding[],
  sealedKeys: readonly string[],
  after: readonly BindingInput[],
): string | null {
  for (const key of sealedKeys) {
    const keyBindings = after.filter((binding) => binding.key === key);
    const knownDestinations = new Set(before.filter((binding) => binding.key === key).map(destinationOf));
    const isWider = keyBindings.some((binding) => !binding.sealed || !knownDestinations.has(destinationOf(binding)));
    if (isWider && !keyBindings.some(({ value }) => value !== undefined)) return key;
  }
  return null;
}

/** Returns the keys that are sealed after a change. A key without bindings stays sealed. */
export function sealedKeysAfter(sealedKeys: readonly string[], after: readonly BindingInput[]): string[] {
  const unsealedKeys = new Set(after.filter(({ sealed }) => !sealed).map(({ key }) => key));
  const stillSealed = sealedKeys.filter((key) => !unsealedKeys.has(key));
  return [...new Set([...stillSealed, ...after.filter(({ sealed }) => sealed).map(({ key }) => key)])];
}
