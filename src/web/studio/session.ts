/** Who works here: by a token that lives in this page's memory alone, or by the browser's HttpOnly cookie. Stores nothing. */
import { serviceAddress } from "../service-address.js";
import { type Api, ApiError, createApi } from "./api.js";
import { Apps } from "./documents.js";
import type { App } from "./model.js";

export interface Session {
  api: Api;
  apps: App[];
  /** Signs out; what is open ends. */
  end(): Promise<void>;
}

async function cookieSession(method: "POST" | "DELETE", token?: string): Promise<void> {
  const response = await fetch(serviceAddress("/v1/session"), {
    method,
    ...(token !== undefined && {
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ token }),
    }),
  });
  if (response.ok) return;
  const { status, error } = (await response.json()) as { status: string; error: string };
  throw new ApiError(status, error);
}

/**
 * @param token null: as the cookie says
 * @throws ApiError UNAUTHORIZED
 */
async function open(token: string | null): Promise<Session> {
  const api = createApi(token);
  const { apps } = await api.ask(Apps, {});
  return {
    api,
    apps,
    async end() {
      api.close();
      // Without an answer the cookie stays; the page says so by being signed in when it is opened again.
      if (token === null) await cookieSession("DELETE").catch(() => undefined);
    },
  };
}

/** The session that this browser has already, null when it has none. */
export async function presentSession(): Promise<Session | null> {
  return open(null).catch(() => null);
}

/** @param keep in the browser's cookie, which no script can read; else the token is gone with the page */
export async function signIn(token: string, keep: boolean): Promise<Session> {
  if (!keep) return open(token);
  await cookieSession("POST", token);
  return open(null);
}
