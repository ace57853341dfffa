/**
 * Verifies the sender of a request to an HTTP trigger (signature, token or password) before any code of the app runs. A
 * request with a wrong credential creates no run.
 */
import { createHash, timingSafeEqual } from "node:crypto";
import type { HttpAuth } from "../../data/action-types.js";
import { createBoundedCache } from "../../engine/bounded-cache.js";
import { ActionError } from "../../errors.js";
import { type Caller, mayPerformOnApp } from "../../rules/access.js";
import { hasValidSignature, parseSigningKeys, type SignedRequest } from "../../rules/http/signatures.js";
import type { Credentials } from "../access/credentials.js";
import type { Settings } from "../settings/settings.js";
import type { TriggerRoute } from "./routes.js";

export interface VerifiableRequest extends SignedRequest {
  appId: number;
  address: string | undefined;
  /** Token in the header `Auth-token` or `Authorization`; null if the request has no token. */
  token: string | null;
}

const CACHED_SETTINGS_MAX = 10_000;

const computeSha256 = (text: string): Buffer => createHash("sha256").update(text).digest();
const areEqualTexts = (left: string, right: string): boolean =>
  timingSafeEqual(computeSha256(left), computeSha256(right));

/** Returns the decoded `user:password` of an `Authorization: Basic` header; null if the header has another form. */
function decodeBasicCredentials(header: string | undefined): string | null {
  const encodedCredentials = /^Basic +([A-Za-z0-9+/]+={0,2})$/i.exec(header ?? "")?.[1];
  return encodedCredentials === undefined ? null : Buffer.from(encodedCredentials, "base64").toString();
}

/** Error for a request whose signature, token or password is wrong. `reason` is only shown to the app's editors, not to the sender. */
export class TriggerAuthenticationError extends ActionError {
  constructor(
    status: "UNAUTHORIZED" | "SIGNATURE_INVALID",
    readonly reason: string,
  ) {
    super(status);
  }
}

async function checkBasic(request: VerifiableRequest, keys: readonly string[]): Promise<null> {
  const input = decodeBasicCredentials(request.header("authorization"));
  // Compares the input with every key, so that the duration does not reveal which key matches.
  const hasMatchingKey =
    keys.filter((key) => input !== null && key.includes(":") && areEqualTexts(input, key)).length > 0;
  if (!hasMatchingKey)
    throw new TriggerAuthenticationError("UNAUTHORIZED", "the user name or password is missing or wrong");
  return null;
}

function checkSignature(
  request: VerifiableRequest,
  auth: HttpAuth & { type: "signature" },
  keys: readonly string[],
): null {
  if (hasValidSignature(request, keys, auth, Date.now() / 1000)) return null;
  throw new TriggerAuthenticationError(
    "SIGNATURE_INVALID",
    `the ${auth.scheme} signature is missing, not valid or too old`,
  );
}

export class TriggerAuthenticator {
  /** Cache of signing secrets and passwords by app and setting. Entries are valid until the version number of the app's secrets changes. */
  private readonly keysBySetting = createBoundedCache<string, { version: number; keys: string[] }>(CACHED_SETTINGS_MAX);

  constructor(private readonly options: { settings: Settings; credentials: Credentials }) {}

  private async readKeys(appId: number, setting: string, version: number): Promise<string[]> {
    const name = `${appId} ${setting}`;
    const cachedKeys = this.keysBySetting.get(name);
    if (cachedKeys?.version === version) return cachedKeys.keys;
    const secretKeys = await this.options.settings.secretValues.read(appId);
    const keys = parseSigningKeys(secretKeys.privateAndProtected.find(([key]) => key === setting)?.[1]);
    this.keysBySetting.set(name, { version: secretKeys.version, keys });
    return keys;
  }

  private async checkBearer({ appId, token, address }: VerifiableRequest): Promise<Caller> {
    const caller = token === null ? null : await this.options.credentials.resolve(token, address);
    if (caller?.kind === "api" && mayPerformOnApp(caller, "runAction", appId)) return caller;
    throw new TriggerAuthenticationError(
      "UNAUTHORIZED",
      "the token must be an API token of this app that has permission to run actions",
    );
  }

  /**
   * Verifies the sender of a request. Resolves to a caller if the trigger requires an API token, otherwise to null.
   * @throws TriggerAuthenticationError if the signature, token or password is wrong; RATE_LIMIT_EXCEEDED after too many unknown tokens
   */
  async check({ where: { auth }, secretsVersion }: TriggerRoute, request: VerifiableRequest): Promise<Caller | null> {
    if (auth.type === "none" || auth.type === "secret") return null;
    if (auth.type === "bearer") return this.checkBearer(request);
    const keys = await this.readKeys(request.appId, auth.setting, secretsVersion);
    if (keys.length === 0) {
      const status = auth.type === "basic" ? "UNAUTHORIZED" : "SIGNATURE_INVALID";
      throw new TriggerAuthenticationError(
        status,
        `the setting ${auth.setting} must be a text that is not empty, or a list of one or two of them, to check this request`,
      );
    }
    return auth.type === "basic" ? checkBasic(request, keys) : checkSignature(request, auth, keys);
  }
}
