/** Validates the `where` of an HTTP trigger (contract, section 8), and builds its stored form. */
import type { HttpAuth, HttpMethod, HttpWhere, SignatureScheme } from "../../data/action-types.js";
import { described, isObject } from "../described.js";
import { flat, type Shape } from "../unknown-fields.js";
import { patternFault, shapeOf } from "./path.js";

export const HTTP_METHODS: readonly HttpMethod[] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"];
export const AUTH_TYPES: readonly HttpAuth["type"][] = ["none", "secret", "basic", "bearer", "signature"];
export const SIGNATURE_SCHEMES: readonly SignatureScheme[] = [
  ...(["standard-webhooks", "stripe", "github", "slack", "shopify", "twilio", "sendgrid", "hmac"] as const),
];
const ALGORITHMS = ["sha256", "sha1", "sha512"];
const ENCODINGS = ["hex", "base64"];
const RESPONSES = ["result", "immediately"];

export const TOLERANCE_SECONDS = 300;
const TOLERANCE_MAX_SECONDS = 86_400;
const CORS_ORIGINS_MAX = 50;
const ORIGIN_MAX_CHARACTERS = 300;
const SETTING_MAX_CHARACTERS = 512;

/** Schemes that sign a time, for which `toleranceSeconds` has an effect. */
const TIMED: readonly string[] = ["standard-webhooks", "stripe", "slack", "sendgrid", "hmac"];
const HMAC_FIELDS = ["header", "algorithm", "encoding", "prefix", "timestampHeader"];

const AUTH_SHAPE = flat(["type", "setting", "scheme", "toleranceSeconds", ...HMAC_FIELDS]);
/** Fields of `where` that only HTTP triggers have. */
export const HTTP_WHERE_FIELDS: Shape["fields"] = {
  ...flat(["method", "path", "respond", "idempotencyHeader"]).fields,
  auth: AUTH_SHAPE,
  cors: flat(["origins"]),
};

/** Header names, as tokens of HTTP. */
const HEADER = /^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}$/;

type Fields = Record<string, unknown>;
const own = (object: Fields, key: string): unknown => (Object.hasOwn(object, key) ? (object[key] ?? null) : null);

function oneOfFault(value: unknown, path: string, allowed: readonly string[]): string | null {
  if ((allowed as readonly unknown[]).includes(value)) return null;
  return `${path} must be one of ${allowed.join(", ")} (got ${described(value)})`;
}

const optional = (value: unknown, fault: (value: unknown) => string | null): string | null =>
  value === null ? null : fault(value);

function headerFault(value: unknown, path: string): string | null {
  if (typeof value === "string" && HEADER.test(value)) return null;
  return `${path} must be the name of a header (got ${described(value)})`;
}

function settingFault(auth: Fields): string | null {
  const setting = own(auth, "setting");
  const isKey = typeof setting === "string" && setting.startsWith("_") && setting.length <= SETTING_MAX_CHARACTERS;
  if (isKey && !setting.includes("\0") && setting.isWellFormed()) return null;
  return `where.auth.setting must be the key of a private or protected setting, such as __stripe (got ${described(setting)})`;
}

function toleranceFault(value: unknown, scheme: string, isTimed: boolean): string | null {
  if (!isTimed) return `where.auth.toleranceSeconds is for schemes with a time (got the scheme ${scheme})`;
  const fits = Number.isInteger(value) && (value as number) >= 1 && (value as number) <= TOLERANCE_MAX_SECONDS;
  if (fits) return null;
  return `where.auth.toleranceSeconds must be an integer from 1 to ${TOLERANCE_MAX_SECONDS} (got ${described(value)})`;
}

function prefixFault(value: unknown): string | null {
  if (typeof value === "string" && /^[\x21-\x7e]{1,50}$/.test(value)) return null;
  return `where.auth.prefix must be 1 to 50 printable ASCII characters without spaces (got ${described(value)})`;
}

function hmacFault(auth: Fields): string | null {
  return (
    headerFault(own(auth, "header"), "where.auth.header") ??
    optional(own(auth, "algorithm"), (value) => oneOfFault(value, "where.auth.algorithm", ALGORITHMS)) ??
    optional(own(auth, "encoding"), (value) => oneOfFault(value, "where.auth.encoding", ENCODINGS)) ??
    optional(own(auth, "prefix"), prefixFault) ??
    optional(own(auth, "timestampHeader"), (value) => headerFault(value, "where.auth.timestampHeader"))
  );
}

function signatureFault(auth: Fields): string | null {
  const scheme = own(auth, "scheme");
  const fault = oneOfFault(scheme, "where.auth.scheme", SIGNATURE_SCHEMES) ?? settingFault(auth);
  if (fault !== null) return fault;
  const isHmac = scheme === "hmac";
  const stray = isHmac ? undefined : HMAC_FIELDS.find((field) => own(auth, field) !== null);
  if (stray !== undefined) return `where.auth.${stray} is for the scheme hmac (got the scheme ${scheme})`;
  const isTimed = TIMED.includes(scheme as string) && (!isHmac || own(auth, "timestampHeader") !== null);
  return (
    (isHmac ? hmacFault(auth) : null) ??
    optional(own(auth, "toleranceSeconds"), (value) => toleranceFault(value, String(scheme), isTimed))
  );
}

function authFault(auth: unknown): string | null {
  if (!isObject(auth)) return `where.auth must be an object such as {"type": "none"} (got ${described(auth)})`;
  const type = own(auth, "type");
  const fault = oneOfFault(type, "where.auth.type", AUTH_TYPES);
  if (fault !== null || type === "signature") return fault ?? signatureFault(auth);
  const allowed = type === "basic" ? ["type", "setting"] : ["type"];
  const stray = Object.keys(AUTH_SHAPE.fields).find((field) => !allowed.includes(field) && own(auth, field) !== null);
  if (stray !== undefined) return `where.auth.${stray} is not used with the type ${type}; remove it`;
  return type === "basic" ? settingFault(auth) : null;
}

function isOrigin(value: unknown): value is string {
  if (typeof value !== "string" || value.length > ORIGIN_MAX_CHARACTERS) return false;
  const url = URL.parse(value);
  return url !== null && /^https?:$/.test(url.protocol) && url.origin === value;
}

function corsFault(cors: unknown): string | null {
  const origins = isObject(cors) ? own(cors, "origins") : null;
  if (!Array.isArray(origins) || origins.length > CORS_ORIGINS_MAX) {
    return `where.cors.origins must be an array of at most ${CORS_ORIGINS_MAX} origins (got ${described(isObject(cors) ? origins : cors)})`;
  }
  const at = origins.findIndex((origin) => !isOrigin(origin));
  if (at < 0) return null;
  return `where.cors.origins[${at}] must be an origin such as https://shop.example (got ${described(origins[at])})`;
}

/** TRIGGERS_INVALID: the fault of an HTTP trigger's `where`, by its relative path; null if there is none. */
export function httpWhereFault(where: unknown): string | null {
  if (!isObject(where)) return `where must be an object for an http trigger (got ${described(where)})`;
  const path = own(where, "path");
  const pathFault = patternFault(path);
  if (pathFault !== null) return `where.path ${pathFault} (got ${described(path)})`;
  return (
    optional(own(where, "method"), (value) => oneOfFault(value, "where.method", HTTP_METHODS)) ??
    authFault(own(where, "auth")) ??
    optional(own(where, "cors"), corsFault) ??
    optional(own(where, "respond"), (value) => oneOfFault(value, "where.respond", RESPONSES)) ??
    optional(own(where, "idempotencyHeader"), (value) => headerFault(value, "where.idempotencyHeader"))
  );
}

/** TRIGGERS_INVALID: two HTTP triggers of one action with the same method and shape. Each has passed `httpWhereFault`. */
export function repeatedRouteFault(wheres: readonly { at: number; where: HttpWhere }[]): string | null {
  const seen = new Map<string, number>();
  for (const { at, where } of wheres) {
    const key = routeKey(where);
    const first = seen.get(key);
    if (first !== undefined) return `triggers[${at}].where has the same method and path as triggers[${first}].where`;
    seen.set(key, at);
  }
  return null;
}

/** Key of a trigger: an app can have one with each key. */
export const routeKey = ({ method, path }: Pick<HttpWhere, "method" | "path">): string =>
  `${method ?? ""} ${shapeOf(path)}`;

function setFields<T extends object>(object: object, fields: readonly string[]): T {
  const found = fields.map((field) => [field, own(object as Fields, field)] as const);
  return Object.fromEntries(found.filter(([, value]) => value !== null)) as T;
}

/** The stored form of a valid `where`: only known fields that are set. */
export function storedHttpWhere(where: Fields): HttpWhere {
  const auth = where["auth"] as Fields;
  const cors = own(where, "cors") as { origins: string[] } | null;
  return {
    ...setFields<Pick<HttpWhere, "method" | "path">>(where, ["method", "path"]),
    auth: setFields<HttpAuth>(auth, Object.keys(AUTH_SHAPE.fields)),
    ...(cors !== null && { cors: { origins: [...cors.origins] } }),
    ...setFields<Pick<HttpWhere, "respond" | "idempotencyHeader">>(where, ["respond", "idempotencyHeader"]),
  };
}
