/** Sends the requests of a program that signs in with OAuth. */
import { createHash, randomBytes } from "node:crypto";
import type { OAuthTokens } from "@modelcontextprotocol/sdk/shared/auth.js";
import { expect } from "chai";
import type { TestService } from "../harness/service.js";

export const REDIRECT_URI = "http://127.0.0.1:7777/callback";
export const DEVICE_GRANT_TYPE = "urn:ietf:params:oauth:grant-type:device_code";

// biome-ignore lint/suspicious/noExplicitAny: each route returns another type
export type Json = any;

/** @param getService called only after the service has started */
export function oauthCalls(getService: () => TestService) {
  async function form(path: string, fields: Record<string, string>): Promise<{ http: number; body: Json }> {
    const response = await fetch(getService().url + path, { method: "POST", body: new URLSearchParams(fields) });
    return { http: response.status, body: await response.json() };
  }

  const register = async (more: object = {}) =>
    getService().rest("POST", "/oauth/register", {
      as: null,
      body: { client_name: "Test program", redirect_uris: [REDIRECT_URI], ...more },
    });

  const newClient = async (more: object = {}): Promise<string> => (await register(more)).body.client_id;

  function newRequest(clientId: string, more: Record<string, string> = {}) {
    const verifier = randomBytes(32).toString("base64url");
    const query = new URLSearchParams({
      client_id: clientId,
      redirect_uri: REDIRECT_URI,
      response_type: "code",
      scope: "read run manage",
      state: "a state",
      code_challenge: createHash("sha256").update(verifier).digest("base64url"),
      code_challenge_method: "S256",
      ...more,
    });
    return { verifier, query: query.toString() };
  }

  const decide = (query: string, more: object = {}, as: string | null = "editor") =>
    getService().rest("POST", `/oauth/consent?${query}`, {
      as,
      body: { allow: true, appId: getService().appId, scopes: ["read", "run", "manage"], ...more },
    });

  /** Authorizes a new OAuth client for an app. Returns its ID and tokens, and the parameters with which it exchanged the code. */
  async function authorizeClient(scopes = ["read", "run", "manage"], as = "editor", appId = getService().appId) {
    const clientId = await newClient();
    const { verifier, query } = newRequest(clientId, { scope: scopes.join(" ") });
    const { body } = await decide(query, { appId, scopes }, as);
    const code = new URL(body.redirectTo).searchParams.get("code")!;
    const exchange = {
      grant_type: "authorization_code",
      client_id: clientId,
      code,
      redirect_uri: REDIRECT_URI,
      code_verifier: verifier,
    };
    const answer = await form("/oauth/token", exchange);
    expect(answer.http, JSON.stringify(answer.body)).to.equal(200);
    return { clientId, exchange, tokens: answer.body as OAuthTokens & { refresh_token: string } };
  }

  const may = async (token: string) =>
    (await getService().rest("GET", `/v3/apps/${getService().appId}/actions`, { as: token })).http;

  const refresh = (clientId: string, token: string) =>
    form("/oauth/token", { grant_type: "refresh_token", client_id: clientId, refresh_token: token });

  return { form, register, newClient, newRequest, decide, authorizeClient, may, refresh };
}
