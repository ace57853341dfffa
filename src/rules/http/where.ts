/** Validates the `where` of an HTTP trigger, and builds its stored form (contract, section 8). */
import type { HttpAuth, HttpMethod, HttpWhere, SignatureScheme } from "../../data/action-types.js";
import { describeValue, isObject } from "../describe-value.js";
import { createFlatShape, type Shape } from "../unknown-fields.js";
import { findPathPatternFault, getPathPatternShape } from "./path.js";

export const HTTP_METHODS: readonly HttpMethod[] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"];
export const HTTP_AUTH_TYPES: readonly HttpAuth["type"][] = ["none", "secret", "basic", "bearer", "signature"];
export const SIGNATURE_SCHEMES: readonly SignatureScheme[] = [
  ...(["standard-webhooks", "stripe", "github", "slack", "shopify", "twilio", "sendgrid", "hmac"] as const),
];
const HMAC_ALGORITHMS = ["sha256", "sha1", "sha512"];
const SIGNATURE_ENCODINGS = ["hex", "base64"];
const RESPONSE_MODES = ["result", "immediately"];

export const DEFAULT_SIGNATURE_TOLERANCE_SECONDS = 300;
const TOLERANCE_MAX_SECONDS = 86_400;
const CORS_ORIGINS_MAX = 50;
const ORIGIN_MAX_CHARACTERS = 300;
const SETTING_MAX_CHARACTERS = 512;

/** Schemes whose signatures can include a time, which `toleranceSeconds` needs. `hmac` includes one only with `timestampHeader`. */
const TIMED_SCHEMES: readonly string[] = ["standard-webhooks", "stripe", "slack", "sendgrid", "hmac"];
const HMAC_FIELDS = ["header", "algorithm", "encoding", "prefix", "timestampHeader"];

const AUTH_SHAPE = createFlatShape(["type", "setting", "scheme", "toleranceSeconds", ...HMAC_FIELDS]);
export const HTTP_WHERE_FIELDS: Shape["fields"] = {
  ...createFlatShape(["method", "path", "respond", "idempotencyHeader"]).fields,
  auth: AUTH_SHAPE,
  cors: createFlatShape(["origins"]),
};

const HEADER_NAME_PATTERN = /^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}$/;

type Fields = Record<string, unknown>;
const getFieldOrNull = (object: Fields, key: string): unknown =>
  Object.hasOwn(object, key) ? (object[key] ?? null) : null;

function findOneOfFault(value: unknown, path: string, allowedValues: readonly string[]): string | null {
  if ((allowedValues as readonly unknown[]).includes(value)) return null;
  return `${path} must be one of ${allowedValues.join(", ")} (got ${describeValue(value)})`;
}

const checkIfPresent = (value: unknown, findFault: (value: unknown) => string | null): string | null =>
  value === null ? null : findFault(value);

function findHeaderFault(value: unknown, path: string): string | null {
  if (typeof value === "string" && HEADER_NAME_PATTERN.test(value)) return null;
  return `${path} must be the name of a header (got ${describeValue(value)})`;
}

function findSettingFault(auth: Fields): string | null {
  const setting = getFieldOrNull(auth, "setting");
  const isPrivateKey =
    typeof setting === "string" && setting.startsWith("_") && setting.length <= SETTING_MAX_CHARACTERS;
  if (isPrivateKey && !setting.includes("\0") && setting.isWellFormed()) return null;
  return `where.auth.setting must be the key of a private or protected setting, such as __stripe (got ${describeValue(setting)})`;
}

function findToleranceFault(value: unknown, scheme: string, includesTime: boolean): string | null {
  if (!includesTime)
    return `where.auth.toleranceSeconds is allowed only if the signature includes a time (got the scheme ${scheme})`;
  const isInRange = Number.isInteger(value) && (value as number) >= 1 && (value as number) <= TOLERANCE_MAX_SECONDS;
  if (isInRange) return null;
  return `where.auth.toleranceSeconds must be a whole number from 1 to ${TOLERANCE_MAX_SECONDS} (got ${describeValue(value)})`;
}

function findPrefixFault(value: unknown): string | null {
  if (typeof value === "string" && /^[\x21-\x7e]{1,50}$/.test(value)) return null;
  return `where.auth.prefix must be 1 to 50 printable ASCII characters without spaces (got ${describeValue(value)})`;
}

function findHmacFault(auth: Fields): string | null {
  return (
    findHeaderFault(getFieldOrNull(auth, "header"), "where.auth.header") ??
    checkIfPresent(getFieldOrNull(auth, "algorithm"), (value) =>
      findOneOfFault(value, "where.auth.algorithm", HMAC_ALGORITHMS),
    ) ??
    checkIfPresent(getFieldOrNull(auth, "encoding"), (value) =>
      findOneOfFault(value, "where.auth.encoding", SIGNATURE_ENCODINGS),
    ) ??
    checkIfPresent(getFieldOrNull(auth, "prefix"), findPrefixFault) ??
    checkIfPresent(getFieldOrNull(auth, "timestampHeader"), (value) =>
      findHeaderFault(value, "where.auth.timestampHeader"),
    )
  );
}

function findSignatureFault(auth: Fields): string | null {
  const scheme = getFieldOrNull(auth, "scheme");
  const fault = findOneOfFault(scheme, "where.auth.scheme", SIGNATURE_SCHEMES) ?? findSettingFault(auth);
  if (fault !== null) return fault;
  const isHmac = scheme === "hmac";
  const strayField = isHmac ? undefined : HMAC_FIELDS.find((field) => getFieldOrNull(auth, field) !== null);
  if (strayField !== undefined)
    return `where.auth.${strayField} is allowed only with the scheme hmac (got the scheme ${scheme})`;
  const includesTime =
    TIMED_SCHEMES.includes(scheme as string) && (!isHmac || getFieldOrNull(auth, "timestampHeader") !== null);
  return (
    (isHmac ? findHmacFault(auth) : null) ??
    checkIfPresent(getFieldOrNull(auth, "toleranceSeconds"), (value) =>
      findToleranceFault(value, String(scheme), includesTime),
    )
  );
}

function findAuthFault(auth: unknown): string | null {
  if (!isObject(auth)) return `where.auth must be an object such as {"type": "none"} (got ${describeValue(auth)})`;
  const type = getFieldOrNull(auth, "type");
  const fault = findOneOfFault(type, "where.auth.type", HTTP_AUTH_TYPES);
  if (fault !== null || type === "signature") return fault ?? findSignatureFault(auth);
  const allowedFields = type === "basic" ? ["type", "setting"] : ["type"];
  const strayField = Object.keys(AUTH_SHAPE.fields).find(
    (field) => !allowedFields.includes(field) && getFieldOrNull(auth, field) !== null,
  );
  if (strayField !== undefined) return `where.auth.${strayField} is not allowed with the type ${type}; remove it`;
  return type === "basic" ? findSettingFault(auth) : null;
}

function isOrigin(value: unknown): value is string {
  if (typeof value !== "string" || value.length > ORIGIN_MAX_CHARACTERS) return false;
  const url = URL.parse(value);
  return url !== null && /^https?:$/.test(url.protocol) && url.origin === value;
}

function findCorsFault(cors: unknown): string | null {
  const origins = isObject(cors) ? getFieldOrNull(cors, "origins") : null;
  if (!Array.isArray(origins) || origins.length > CORS_ORIGINS_MAX) {
    return `where.cors.origins must be an array of at most ${CORS_ORIGINS_MAX} origins (got ${describeValue(isObject(cors) ? origins : cors)})`;
  }
  const at = origins.findIndex((origin) => !isOrigin(origin));
  if (at < 0) return null;
  return `where.cors.origins[${at}] must be an origin such as https://shop.example (got ${describeValue(origins[at])})`;
}

/** Returns the error message for an invalid `where` of an HTTP trigger (TRIGGERS_INVALID); null if it is valid. */
export function findHttpWhereFault(where: unknown): string | null {
  if (!isObject(where)) return `where must be an object for an http trigger (got ${describeValue(where)})`;
  const path = getFieldOrNull(where, "path");
  const pathFault = findPathPatternFault(path);
  if (pathFault !== null) return `where.path ${pathFault} (got ${describeValue(path)})`;
  return (
    checkIfPresent(getFieldOrNull(where, "method"), (value) => findOneOfFault(value, "where.method", HTTP_METHODS)) ??
    findAuthFault(getFieldOrNull(where, "auth")) ??
    checkIfPresent(getFieldOrNull(where, "cors"), findCorsFault) ??
    checkIfPresent(getFieldOrNull(where, "respond"), (value) =>
      findOneOfFault(value, "where.respond", RESPONSE_MODES),
    ) ??
    checkIfPresent(getFieldOrNull(where, "idempotencyHeader"), (value) =>
      findHeaderFault(value, "where.idempotencyHeader"),
    )
  );
}

/**
 * Returns an error message if two HTTP triggers have the same method and match the same paths (TRIGGERS_INVALID); otherwise null. Callers
 * must pass only triggers that `findHttpWhereFault` accepts.
 */
export function findRepeatedRouteFault(wheres: readonly { at: number; where: HttpWhere }[]): string | null {
  const seenRoutes = new Map<string, number>();
  for (const { at, where } of wheres) {
    const key = createRouteKey(where);
    const first = seenRoutes.get(key);
    if (first !== undefined) return `triggers[${at}].where has the same method and path as triggers[${first}].where`;
    seenRoutes.set(key, at);
  }
  return null;
}

/** Returns a text of the method and the path shape of a trigger. No two triggers of an app's drafts, or of its live versions, can have the same text. */
export const createRouteKey = ({ method, path }: Pick<HttpWhere, "method" | "path">): string =>
  `${method ?? ""} ${getPathPatternShape(path)}`;

function pickSetFields<T extends object>(object: object, fields: readonly string[]): T {
  const fieldValues = fields.map((field) => [field, getFieldOrNull(object as Fields, field)] as const);
  return Object.fromEntries(fieldValues.filter(([, value]) => value !== null)) as T;
}

export function toStoredHttpWhere(where: Fields): HttpWhere {
  const auth = where["auth"] as Fields;
  const cors = getFieldOrNull(where, "cors") as { origins: string[] } | null;
  return {
    ...pickSetFields<Pick<HttpWhere, "method" | "path">>(where, ["method", "path"]),
    auth: pickSetFields<HttpAuth>(auth, Object.keys(AUTH_SHAPE.fields)),
    ...(cors !== null && { cors: { origins: [...cors.origins] } }),
    ...pickSetFields<Pick<HttpWhere, "respond" | "idempotencyHeader">>(where, ["respond", "idempotencyHeader"]),
  };
}
