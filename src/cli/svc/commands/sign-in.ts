/** svc login and svc logout: save a token from standard input, or get a token after a person has allowed it in the browser (RFC 8628). */
import { setTimeout as delay } from "node:timers/promises";
import type { Command } from "commander";
import { type CliApiClient, type CliApiResponse, toSavedToken } from "../client.js";
import { findProjectRoot, parseAppId, parseServiceUrl, readServerAndApp, type ServerAndApp } from "../config.js";
import { CliError, ConnectionError, createUsageError } from "../failure.js";
import type { CliSession, CommandRunner } from "../session.js";

/** Seconds to add to the polling interval after `slow_down`, a lost connection or a busy service (RFC 8628, section 3.5). */
const SLOW_DOWN_SECONDS = 5;
const REQUESTED_SCOPES = "read run settings data manage publish";

interface LoginOptions {
  url?: string;
  app?: string;
  tokenStdin?: boolean;
}

function readLoginTarget({ environment: { cwd, env } }: CliSession, { url, app }: LoginOptions): ServerAndApp {
  if (url === undefined && app === undefined) return readServerAndApp(cwd, env);
  const projectTarget = url === undefined || app === undefined ? readServerAndApp(cwd, env) : null;
  return {
    url: url === undefined ? projectTarget!.url : parseServiceUrl(url, "--url"),
    app: app === undefined ? projectTarget!.app : parseAppId(app, "--app"),
    root: findProjectRoot(cwd) ?? cwd,
  };
}

async function registerClient(client: CliApiClient): Promise<string> {
  const { body } = await client.sendRequest("POST", "/oauth/register", {
    body: {
      client_name: "svc command line",
      grant_types: ["urn:ietf:params:oauth:grant-type:device_code", "refresh_token"],
      token_endpoint_auth_method: "none",
    },
    isAnonymous: true,
  });
  return body.client_id;
}

/** Asks for the token of a device code. Returns null if only the connection, a proxy or a busy service prevented an answer. */
async function pollForToken(
  client: CliApiClient,
  clientId: string,
  deviceCode: string,
): Promise<CliApiResponse | null> {
  const form = new URLSearchParams({
    grant_type: "urn:ietf:params:oauth:grant-type:device_code",
    device_code: deviceCode,
    client_id: clientId,
  });
  try {
    const response = await client.sendWithoutToken("POST", "/oauth/token", form);
    return response.status === 429 || response.status >= 500 ? null : response;
  } catch (error) {
    if (error instanceof ConnectionError) return null;
    throw error;
  }
}

async function signInByDevice(session: CliSession, client: CliApiClient): Promise<void> {
  const clientId = await registerClient(client);
  const form = new URLSearchParams({ client_id: clientId, scope: REQUESTED_SCOPES, app: String(client.target.app) });
  const authorization = await client.sendWithoutToken("POST", "/oauth/device_authorization", form);
  if (authorization.status !== 200)
    throw new CliError(
      `the server rejected the sign-in: ${authorization.body.error_description ?? `HTTP ${authorization.status}`}`,
    );
  const { device_code: deviceCode, user_code: userCode, verification_uri_complete: address } = authorization.body;
  session.output.writeNote(`Open ${address}\nand confirm the code ${userCode}`);
  const deadline = Date.now() + authorization.body.expires_in * 1000;
  let intervalSeconds = authorization.body.interval;
  while (Date.now() < deadline) {
    await delay(intervalSeconds * 1000);
    const tokenResponse = await pollForToken(client, clientId, deviceCode);
    if (tokenResponse?.status === 200)
      return session.store.set(client.target, toSavedToken(tokenResponse.body, clientId));
    if (tokenResponse === null || tokenResponse.body.error === "slow_down") intervalSeconds += SLOW_DOWN_SECONDS;
    else if (tokenResponse.body.error !== "authorization_pending") {
      throw new CliError(`the sign-in failed: ${tokenResponse.body.error_description ?? tokenResponse.body.error}`);
    }
  }
  throw new CliError("the code expired before a person confirmed it; run svc login again");
}

/**
 * Removes the saved sign-in. If a person allowed the access in the browser, also ends this access at the service.
 * @returns true if the service confirmed the end, false if it did not. null if there was no such access: a token from standard input stays
 * valid
 */
async function signOut({ store, target, client }: CliSession): Promise<boolean | null> {
  const { refreshToken, clientId = "" } = store.get(target) ?? {};
  // Removes the sign-in first, because a server that does not respond delays the request by up to two minutes.
  store.remove(target);
  if (refreshToken === undefined) return null;
  const form = new URLSearchParams({ token: refreshToken, client_id: clientId });
  try {
    return (await client.sendWithoutToken("POST", "/oauth/revoke", form)).status === 200;
  } catch (error) {
    if (error instanceof ConnectionError) return false;
    throw error;
  }
}

export function addSignInCommand(program: Command, run: CommandRunner): void {
  program
    .command("login")
    .description("sign in to the server of this project")
    .option("--url <address>", "address of the server")
    .option("--app <id>", "ID of the app")
    .option("--token-stdin", "read a token from standard input instead of confirming a code in the browser")
    .action((options: LoginOptions) =>
      run(async (session) => {
        const target = readLoginTarget(session, options);
        const client = session.createClientFor(target);
        if (options.tokenStdin === true) {
          const token = (await session.readStdin()).trim();
          if (!/^[\x21-\x7e]+$/.test(token))
            throw createUsageError("standard input must contain exactly one token, without spaces");
          await client.sendRequest("GET", "/v1/apps", { token });
          session.store.set(target, { token });
        } else {
          await signInByDevice(session, client);
        }
        session.output.writeLine(`Signed in to app ${target.app} at ${target.url}`);
        session.output.writeJson({ url: target.url, app: target.app });
      }),
    );

  program
    .command("logout")
    .description("remove the saved sign-in of this project")
    .action(() =>
      run(async (session) => {
        const isAccessEnded = await signOut(session);
        session.output.writeLine("Signed out");
        if (isAccessEnded === false)
          session.output.writeNote(
            `The server did not confirm that the access of this command line ended. To end it, open ${session.target.url}/oauth/programs`,
          );
        session.output.writeJson({ signedOut: true, accessEnded: isAccessEnded });
      }),
    );
}
