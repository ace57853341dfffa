/**
 * Adds the secret of a binding to an outgoing request: as a header, query parameter, basic credentials, AWS Signature Version 4 or OAuth 2
 * access token. A binding adds the value of a setting to requests to one origin.
 */
import { createHash, createHmac } from "node:crypto";
import { SignatureV4 } from "@smithy/signature-v4";
import { OutgoingError, type OutgoingHop } from "../../engine/outgoing.js";
import { describeType, isObject } from "../../rules/describe-value.js";
import { isHeaderValue } from "../../rules/request-options.js";
import type { SecretBinding } from "../../rules/secret-bindings.js";
import type { RequestCredential } from "./run-requests.js";

const VALUE_PLACEHOLDER = "{value}";
/** Matches host names of AWS in the form `[bucket.]service.region.amazonaws.com`. */
const AWS_HOST_PATTERN = /(?:^|\.)([a-z0-9-]+)\.([a-z]{2}-[a-z0-9-]+-\d)\.amazonaws\.com$/;

/** SHA-256, or HMAC-SHA-256 if a key is passed. Implements the interface that the AWS signing library requires. */
class Sha256 {
  private readonly hash;

  constructor(secret?: string | ArrayBuffer | ArrayBufferView) {
    const key = typeof secret === "string" || secret === undefined ? secret : toBytes(secret);
    this.hash = key === undefined ? createHash("sha256") : createHmac("sha256", key);
  }

  update(data: string | ArrayBuffer | ArrayBufferView): void {
    this.hash.update(typeof data === "string" ? data : toBytes(data));
  }

  async digest(): Promise<Uint8Array> {
    return this.hash.digest();
  }

  reset(): void {}
}

const toBytes = (data: ArrayBuffer | ArrayBufferView): Uint8Array =>
  ArrayBuffer.isView(data) ? new Uint8Array(data.buffer, data.byteOffset, data.byteLength) : new Uint8Array(data);

const createBindingError = ({ key, origin }: SecretBinding, problem: string) =>
  new OutgoingError("POLICY", `the setting ${key}, which is bound to ${origin}, ${problem}`, origin);

function requireTextValue(binding: SecretBinding, value: unknown): string {
  if (typeof value === "string" && value !== "") return value;
  if (typeof value === "number") return String(value);
  throw createBindingError(
    binding,
    `must be a text or a number (got ${value === "" ? "an empty text" : describeType(value)})`,
  );
}

function addCredentialHeader(hop: OutgoingHop, binding: SecretBinding, name: string, value: string): OutgoingHop {
  if (!isHeaderValue(value)) throw createBindingError(binding, "contains characters that are not allowed in a header");
  return { ...hop, headers: { ...hop.headers, [name.toLowerCase()]: value } };
}

function formatCredential({ format, name, in: place }: SecretBinding, text: string): string {
  const template = format ?? (place === "header" && name === null ? `Bearer ${VALUE_PLACEHOLDER}` : VALUE_PLACEHOLDER);
  return template.replace(VALUE_PLACEHOLDER, () => text);
}

function addCredentialQuery(hop: OutgoingHop, binding: SecretBinding, text: string): OutgoingHop {
  const url = new URL(hop.url);
  url.searchParams.set(binding.name!, formatCredential(binding, text));
  return { ...hop, url };
}

/** Returns the header value of basic credentials. If the binding has no `name`, `text` is `user:password` or only a user name. */
function formatBasicAuthorization({ name }: SecretBinding, text: string): string {
  const userAndPassword = name !== null ? `${name}:${text}` : text.includes(":") ? text : `${text}:`;
  return `Basic ${Buffer.from(userAndPassword).toString("base64")}`;
}

interface AwsKeys {
  accessKeyId: string;
  secretAccessKey: string;
  sessionToken?: string;
}

function parseAwsKeys(binding: SecretBinding, value: unknown): AwsKeys {
  if (isObject(value)) {
    const { accessKeyId, secretAccessKey, sessionToken } = value;
    if (typeof accessKeyId === "string" && typeof secretAccessKey === "string") {
      return { accessKeyId, secretAccessKey, ...(typeof sessionToken === "string" && { sessionToken }) };
    }
  } else if (typeof value === "string" && /^[^:]+:[^:]+$/.test(value)) {
    const [accessKeyId, secretAccessKey] = value.split(":") as [string, string];
    return { accessKeyId, secretAccessKey };
  }
  throw createBindingError(
    binding,
    'must be "accessKeyId:secretAccessKey", or an object with accessKeyId, secretAccessKey and optionally sessionToken',
  );
}

/**
 * Returns the path that the signature for S3 covers. S3 decodes the requested path, and then encodes all characters except unreserved ones
 * and slashes. So it also encodes characters that the URL may contain unencoded, such as `=` or `(`.
 */
function encodeS3Path(path: string): string {
  const encode = (character: string) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`;
  try {
    return encodeURIComponent(decodeURIComponent(path))
      .replaceAll("%2F", "/")
      .replaceAll(/[!'()*]/g, encode);
  } catch {
    // Signs a path that is not UTF-8 as it is.
    return path;
  }
}

async function signAwsRequest(hop: OutgoingHop, binding: SecretBinding, value: unknown): Promise<OutgoingHop> {
  const credentials = parseAwsKeys(binding, value);
  const { url, method, headers, body } = hop;
  const [service, region] = binding.name?.split("/") ?? AWS_HOST_PATTERN.exec(url.hostname)?.slice(1) ?? [];
  if (!service || !region)
    throw createBindingError(binding, 'needs service and region in the binding\'s "name", such as "s3/eu-west-1"');
  const isS3 = service === "s3";
  const signer = new SignatureV4({ service, region, credentials, sha256: Sha256, uriEscapePath: !isS3 });
  const query: Record<string, string[]> = {};
  for (const [name, text] of url.searchParams) query[name] = [...(query[name] ?? []), text];
  const request = {
    ...{ method, query, protocol: url.protocol, hostname: url.hostname },
    path: isS3 ? encodeS3Path(url.pathname) : url.pathname,
    headers: { ...headers, host: url.host },
    ...(body && { body }),
  };
  const { host: _host, ...all } = (await signer.sign(request)).headers;
  const lowerCaseHeaders = Object.entries(all).map(([name, text]) => [name.toLowerCase(), text]);
  return { ...hop, headers: Object.fromEntries(lowerCaseHeaders) };
}

/**
 * Creates the credential of a binding, which adds the secret `value` to requests.
 * @param getToken returns an access token of an `oauth2` binding, if possible a token that differs from `rejectedToken`
 */
export function createBindingCredential(
  binding: SecretBinding,
  value: unknown,
  getToken: (rejectedToken: string | null) => Promise<string>,
): RequestCredential {
  let usedToken: string | null = null;
  return {
    async replaceToken() {
      if (usedToken === null) return false;
      const rejectedToken = usedToken;
      return (await getToken(rejectedToken)) !== rejectedToken;
    },

    async authorize(hop) {
      switch (binding.in) {
        case "header":
          return addCredentialHeader(
            hop,
            binding,
            binding.name ?? "authorization",
            formatCredential(binding, requireTextValue(binding, value)),
          );
        case "query":
          return addCredentialQuery(hop, binding, requireTextValue(binding, value));
        case "basic":
          return addCredentialHeader(
            hop,
            binding,
            "authorization",
            formatBasicAuthorization(binding, requireTextValue(binding, value)),
          );
        case "aws-sigv4":
          return signAwsRequest(hop, binding, value);
        case "oauth2":
          usedToken = await getToken(null);
          return addCredentialHeader(hop, binding, "authorization", `Bearer ${usedToken}`);
      }
    },
  };
}
