/** Adds the value of a binding to a request: header, query parameter, basic credentials, AWS Signature Version 4, or an OAuth 2 token. */
import { createHash, createHmac } from "node:crypto";
import { SignatureV4 } from "@smithy/signature-v4";
import { OutgoingError, type OutgoingHop } from "../../engine/outgoing.js";
import { isObject } from "../../rules/described.js";
import { isHeaderValue } from "../../rules/request-options.js";
import type { SecretBinding } from "../../rules/secret-bindings.js";
import type { Credential } from "./run-requests.js";

const PLACEHOLDER = "{value}";
/** `[bucket.]service.region.amazonaws.com`. */
const AWS_HOST = /(?:^|\.)([a-z0-9-]+)\.([a-z]{2}-[a-z0-9-]+-\d)\.amazonaws\.com$/;

/** SHA-256 in the interface of the signing library; with a key HMAC. */
class Sha256 {
  private readonly hash;

  constructor(secret?: string | ArrayBuffer | ArrayBufferView) {
    const key = typeof secret === "string" || secret === undefined ? secret : bytesOf(secret);
    this.hash = key === undefined ? createHash("sha256") : createHmac("sha256", key);
  }

  update(data: string | ArrayBuffer | ArrayBufferView): void {
    this.hash.update(typeof data === "string" ? data : bytesOf(data));
  }

  async digest(): Promise<Uint8Array> {
    return this.hash.digest();
  }

  reset(): void {}
}

const bytesOf = (data: ArrayBuffer | ArrayBufferView): Uint8Array =>
  ArrayBuffer.isView(data) ? new Uint8Array(data.buffer, data.byteOffset, data.byteLength) : new Uint8Array(data);

const refuse = ({ key, origin }: SecretBinding, problem: string) =>
  new OutgoingError("POLICY", `the setting ${key}, which is bound to ${origin}, ${problem}`, origin);

function textOf(binding: SecretBinding, value: unknown): string {
  if (typeof value === "string" && value !== "") return value;
  if (typeof value === "number") return String(value);
  throw refuse(binding, "must be a text");
}

function withHeader(hop: OutgoingHop, binding: SecretBinding, name: string, value: string): OutgoingHop {
  if (!isHeaderValue(value)) throw refuse(binding, "cannot be sent in a header");
  return { ...hop, headers: { ...hop.headers, [name.toLowerCase()]: value } };
}

function formatted({ format, name, in: place }: SecretBinding, text: string): string {
  const around = format ?? (place === "header" && name === null ? `Bearer ${PLACEHOLDER}` : PLACEHOLDER);
  return around.replace(PLACEHOLDER, () => text);
}

function withQuery(hop: OutgoingHop, binding: SecretBinding, text: string): OutgoingHop {
  const url = new URL(hop.url);
  url.searchParams.set(binding.name!, formatted(binding, text));
  return { ...hop, url };
}

/** `user:password`, or a password for the user of the binding, or a key as the user. */
function basicOf({ name }: SecretBinding, text: string): string {
  const pair = name !== null ? `${name}:${text}` : text.includes(":") ? text : `${text}:`;
  return `Basic ${Buffer.from(pair).toString("base64")}`;
}

interface AwsKeys {
  accessKeyId: string;
  secretAccessKey: string;
  sessionToken?: string;
}

function awsKeysOf(binding: SecretBinding, value: unknown): AwsKeys {
  if (isObject(value)) {
    const { accessKeyId, secretAccessKey, sessionToken } = value;
    if (typeof accessKeyId === "string" && typeof secretAccessKey === "string") {
      return { accessKeyId, secretAccessKey, ...(typeof sessionToken === "string" && { sessionToken }) };
    }
  } else if (typeof value === "string" && /^[^:]+:[^:]+$/.test(value)) {
    const [accessKeyId, secretAccessKey] = value.split(":") as [string, string];
    return { accessKeyId, secretAccessKey };
  }
  throw refuse(binding, 'must be "accessKeyId:secretAccessKey", or an object with both');
}

async function signed(hop: OutgoingHop, binding: SecretBinding, value: unknown): Promise<OutgoingHop> {
  const credentials = awsKeysOf(binding, value);
  const { url, method, headers, body } = hop;
  const [service, region] = binding.name?.split("/") ?? AWS_HOST.exec(url.hostname)?.slice(1) ?? [];
  if (!service || !region)
    throw refuse(binding, 'needs service and region in the binding\'s "name", such as "s3/eu-west-1"');
  const signer = new SignatureV4({ service, region, credentials, sha256: Sha256, uriEscapePath: service !== "s3" });
  const query: Record<string, string[]> = {};
  for (const [name, text] of url.searchParams) query[name] = [...(query[name] ?? []), text];
  const request = {
    ...{ method, query, protocol: url.protocol, hostname: url.hostname, path: url.pathname },
    headers: { ...headers, host: url.host },
    ...(body && { body }),
  };
  const { host: _host, ...all } = (await signer.sign(request)).headers;
  const lower = Object.entries(all).map(([name, text]) => [name.toLowerCase(), text]);
  return { ...hop, headers: Object.fromEntries(lower) };
}

/** @param token returns the access token of an `oauth2` binding, if possible another one than its argument */
export function createCredential(
  binding: SecretBinding,
  value: unknown,
  token: (rejected: string | null) => Promise<string>,
): Credential {
  let used: string | null = null;
  return {
    async replace() {
      if (used === null) return false;
      const rejected = used;
      return (await token(rejected)) !== rejected;
    },

    async authorize(hop) {
      switch (binding.in) {
        case "header":
          return withHeader(hop, binding, binding.name ?? "authorization", formatted(binding, textOf(binding, value)));
        case "query":
          return withQuery(hop, binding, textOf(binding, value));
        case "basic":
          return withHeader(hop, binding, "authorization", basicOf(binding, textOf(binding, value)));
        case "aws-sigv4":
          return signed(hop, binding, value);
        case "oauth2":
          used = await token(null);
          return withHeader(hop, binding, "authorization", `Bearer ${used}`);
      }
    },
  };
}
