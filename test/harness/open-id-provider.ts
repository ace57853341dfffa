/** OpenID provider on this machine (the npm package oidc-provider). A test sets the account that signs in, and its claims. */
import { once } from "node:events";
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Provider } from "oidc-provider";

export interface OpenIdProviderServer {
  issuer: string;
  clientId: string;
  clientSecret: string;
  /** Claims of each account by `sub`. */
  accounts: Map<string, Record<string, unknown>>;
  /** `sub` of the account that signs in next. The provider shows no sign-in page. */
  current: string;
  /** Allowed redirect URIs. */
  redirectUris: string[];
  postLogoutRedirectUris: string[];
  /** Handles requests to the userinfo endpoint instead of the provider; null if the provider handles them. */
  answerUserInfo: ((response: ServerResponse) => void) | null;
  stop(): Promise<void>;
}

const CLIENT_ID = "svc";
const CLIENT_SECRET = "the secret of the client at the test's provider";
/** Path of the userinfo endpoint in oidc-provider. */
const USERINFO_PATH = "/me";
const PROVIDER_CLAIMS = ["email", "email_verified", "given_name", "family_name", "name", "groups", "organization"];

function createProvider(issuer: string, state: Omit<OpenIdProviderServer, "stop">): Provider {
  return new Provider(issuer, {
    clients: [
      {
        client_id: CLIENT_ID,
        client_secret: CLIENT_SECRET,
        redirect_uris: state.redirectUris,
        post_logout_redirect_uris: state.postLogoutRedirectUris,
        token_endpoint_auth_method: "client_secret_post",
      },
    ],
    claims: { openid: ["sub"], email: ["email", "email_verified"], profile: PROVIDER_CLAIMS.slice(2) },
    // Only the userinfo endpoint returns the claims, as with many providers.
    findAccount: async (_context, sub) => ({
      accountId: sub,
      claims: async () => ({ sub, ...state.accounts.get(sub) }),
    }),
    features: { devInteractions: { enabled: false } },
    cookies: { keys: ["a key of the test's provider"] },
    interactions: { url: (_context, interaction) => `/interaction/${interaction.uid}` },
    pkce: { required: () => true },
  });
}

/** Completes an interaction of the provider: signs in the current account, or grants the scopes openid, email and profile. */
async function grantAccess(
  provider: Provider,
  state: OpenIdProviderServer,
  request: Parameters<Provider["interactionDetails"]>[0],
  response: Parameters<Provider["interactionDetails"]>[1],
) {
  const { prompt, params, session, grantId } = await provider.interactionDetails(request, response);
  if (prompt.name === "login") {
    return provider.interactionFinished(request, response, { login: { accountId: state.current } });
  }
  const grant =
    (grantId ? await provider.Grant.find(grantId) : undefined) ??
    new provider.Grant({ accountId: session!.accountId, clientId: String(params["client_id"]) });
  grant.addOIDCScope("openid email profile");
  return provider.interactionFinished(
    request,
    response,
    { consent: { grantId: await grant.save() } },
    { mergeWithLastSubmission: true },
  );
}

/** Starts the provider. @param redirectUris allowed redirect URIs; a test can add more before its first request */
export async function startOpenIdProvider(redirectUris: string[] = []): Promise<OpenIdProviderServer> {
  let handle: (request: Parameters<Parameters<typeof createServer>[1] & object>[0], response: never) => void = () =>
    undefined;
  const server: Server = createServer((request, response) => handle(request, response as never));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const issuer = `http://localhost:${(server.address() as AddressInfo).port}`;
  const state: OpenIdProviderServer = {
    issuer,
    clientId: CLIENT_ID,
    clientSecret: CLIENT_SECRET,
    accounts: new Map(),
    current: "",
    redirectUris,
    postLogoutRedirectUris: [],
    answerUserInfo: null,
    async stop() {
      server.close();
      server.closeAllConnections();
    },
  };
  let made: { provider: Provider; callback: ReturnType<Provider["callback"]> } | null = null;
  handle = (request, response) => {
    made ??= (() => {
      const provider = createProvider(issuer, state);
      return { provider, callback: provider.callback() };
    })();
    if (state.answerUserInfo && request.url === USERINFO_PATH) state.answerUserInfo(response);
    else if (request.url?.startsWith("/interaction/")) {
      grantAccess(made.provider, state, request, response).catch((error: Error) => {
        (response as unknown as { end(text: string): void }).end(String(error));
      });
    } else void made.callback(request, response);
  };
  return state;
}
