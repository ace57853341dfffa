/**
 * Registers programs (OAuth clients) that request access on behalf of people (RFC 7591). Any program can register, but has no rights until
 * a person authorizes it.
 */
import { randomBytes } from "node:crypto";
import { z } from "zod";
import { type Db, rows } from "../../data/database.js";
import { createTokenBucket } from "../../engine/token-bucket.js";
import { createRateLimitError } from "../../errors.js";
import { getAddressBlock } from "../../rules/address-block.js";
import { describeValue } from "../../rules/describe-value.js";
import { OauthError } from "./oauth-failure.js";

export const DEVICE_GRANT_TYPE = "urn:ietf:params:oauth:grant-type:device_code";
export const GRANT_TYPES = ["authorization_code", "refresh_token", DEVICE_GRANT_TYPE] as const;

const REDIRECT_URIS_MAX = 10;
const URI_MAX_CHARACTERS = 2_000;
const REGISTRATIONS_PER_ADDRESS_MAX = 60;
const REGISTRATION_WINDOW_MS = 3_600_000;
/** Hours after which a registered program is deleted if no person has authorized it. */
const UNUSED_CLIENT_HOURS = 24;

const LOOPBACK_HOSTS = ["localhost", "127.0.0.1", "[::1]"];
/** Schemes of well-known desktop programs. Any other private scheme must contain a dot (RFC 8252, section 7.1). */
const DESKTOP_SCHEMES = ["cursor:", "vscode:", "vscode-insiders:", "windsurf:"];

export interface OauthClient {
  id: string;
  name: string;
  redirectUris: string[];
  grantTypes: string[];
}

const REGISTRATION_SCHEMA = z.object({
  client_name: z.string().trim().min(1).max(100).default("A program"),
  redirect_uris: z.array(z.string().max(URI_MAX_CHARACTERS)).max(REDIRECT_URIS_MAX).default([]),
  grant_types: z.array(z.string().max(100)).max(10).default(["authorization_code", "refresh_token"]),
  response_types: z.array(z.string().max(100)).max(10).optional(),
  token_endpoint_auth_method: z.string().max(100).default("none"),
});

/**
 * True if the service may send an authorization code to this redirect URL. Allows https URLs, and http URLs of the person's own computer.
 * Also allows URLs of programs: their scheme contains a dot (such as `com.example.app:`) or is in DESKTOP_SCHEMES.
 */
export function isAllowedRedirectUrl(text: string): boolean {
  const url = URL.parse(text);
  if (url?.hash !== "" || text.includes("#") || url.username !== "" || url.password !== "") return false;
  if (url.protocol === "https:") return true;
  if (url.protocol === "http:") return LOOPBACK_HOSTS.includes(url.hostname);
  return DESKTOP_SCHEMES.includes(url.protocol) || url.protocol.slice(0, -1).includes(".");
}

/**
 * True if the program has registered this redirect URL. For http URLs of the person's own computer, the port may differ (RFC 8252, section
 * 7.3).
 */
export function isRegisteredRedirectUrl(uri: string, { redirectUris }: OauthClient): boolean {
  if (redirectUris.includes(uri)) return true;
  const removePort = (text: string): string | null => {
    const url = URL.parse(text);
    if (url?.protocol !== "http:" || !LOOPBACK_HOSTS.includes(url.hostname) || !isAllowedRedirectUrl(text)) return null;
    url.port = "";
    return url.href;
  };
  const wantedUri = removePort(uri);
  return wantedUri !== null && redirectUris.some((redirectUri) => removePort(redirectUri) === wantedUri);
}

/** Replaces control characters, so that a program's name cannot imitate other text of the consent page. */
const sanitizeProgramName = (name: string): string =>
  name.replaceAll(/[\p{C}\p{Zl}\p{Zp}]/gu, " ").trim() || "A program";

export class OauthClients {
  readonly #db: Db;
  readonly #registrations = createTokenBucket({
    limit: REGISTRATIONS_PER_ADDRESS_MAX,
    windowMs: REGISTRATION_WINDOW_MS,
  });

  constructor(db: Db) {
    this.#db = db;
  }

  async find(id: string): Promise<OauthClient | null> {
    const [client] = await rows<OauthClient>(
      this.#db,
      `SELECT id, name, redirect_uris AS "redirectUris", grant_types AS "grantTypes" FROM oauth_client WHERE id = $1`,
      [id],
    );
    return client ?? null;
  }

  /** Registers a program. @throws OauthError for invalid metadata; RATE_LIMIT_EXCEEDED */
  async register(body: unknown, address: string | undefined): Promise<OauthClient> {
    const { success, data, error } = REGISTRATION_SCHEMA.safeParse(body);
    if (!success) {
      const [fault] = error.issues;
      throw new OauthError("invalid_client_metadata", `${fault?.path.join(".") || "the body"}: ${fault?.message}`);
    }
    if (data.token_endpoint_auth_method !== "none") {
      const method = describeValue(data.token_endpoint_auth_method);
      throw new OauthError("invalid_client_metadata", `token_endpoint_auth_method must be "none" (got ${method})`);
    }
    const knownGrantTypes = data.grant_types.filter((type) => (GRANT_TYPES as readonly string[]).includes(type));
    if (knownGrantTypes.length === 0)
      throw new OauthError(
        "invalid_client_metadata",
        `grant_types must contain at least one of ${GRANT_TYPES.join(", ")}`,
      );
    const refusedUri = data.redirect_uris.find((uri) => !isAllowedRedirectUrl(uri));
    if (refusedUri !== undefined) {
      const expected =
        "https URLs, http URLs of localhost, 127.0.0.1 or [::1], or URLs with a scheme that contains a dot or is one of " +
        `${DESKTOP_SCHEMES.join(", ")}; a fragment, a user name and a password are not allowed`;
      throw new OauthError("invalid_redirect_uri", `redirect_uris must be ${expected} (got ${refusedUri})`);
    }
    if (knownGrantTypes.includes("authorization_code") && data.redirect_uris.length === 0) {
      throw new OauthError(
        "invalid_redirect_uri",
        "redirect_uris must contain at least one URL, because grant_types contains authorization_code (got an empty array)",
      );
    }
    const retryAfter = this.#registrations.takeTokens(getAddressBlock(address ?? ""));
    if (retryAfter > 0)
      throw createRateLimitError(
        `too many registrations of OAuth programs from this network address; try again in ${retryAfter} s`,
        retryAfter,
      );
    const client: OauthClient = {
      id: `svc_client_${randomBytes(16).toString("base64url")}`,
      name: sanitizeProgramName(data.client_name),
      redirectUris: data.redirect_uris,
      grantTypes: knownGrantTypes,
    };
    await rows(this.#db, "INSERT INTO oauth_client (id, name, redirect_uris, grant_types) VALUES ($1, $2, $3, $4)", [
      client.id,
      client.name,
      JSON.stringify(client.redirectUris),
      JSON.stringify(client.grantTypes),
    ]);
    await this.#removeUnused();
    return client;
  }

  /** Deletes up to 100 old programs that no person has authorized. Each registration calls this method. */
  async #removeUnused(): Promise<void> {
    await rows(
      this.#db,
      `DELETE FROM oauth_client WHERE id IN (
         SELECT id FROM oauth_client c WHERE created_at < now() - $1 * interval '1 hour'
            AND NOT EXISTS (SELECT FROM oauth_grant WHERE client_id = c.id) ORDER BY created_at LIMIT 100)`,
      [UNUSED_CLIENT_HOURS],
    );
  }
}
