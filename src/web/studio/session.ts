/** Who works here, by the browser's HttpOnly cookie, which no script can read. Stores nothing. */
import { serviceAddress } from "../service-address.js";
import { type Api, ApiError, createApi } from "./api.js";
import { Apps } from "./documents.js";
import type { App } from "./model.js";

export interface Session {
  api: Api;
  apps: App[];
  isAdmin: boolean;
  /** Signs out; what is open ends. */
  end(): Promise<void>;
}

/** What a token stands for (contract, section 2). */
type Kind = "editor" | "admin" | "api" | "task" | "viewer" | "live";

const AUTHORS: readonly Kind[] = ["editor", "admin"];

async function ask(method: "GET" | "POST" | "DELETE", given?: { token: string; keep: boolean }): Promise<Kind | null> {
  const response = await fetch(serviceAddress("/v1/session"), {
    method,
    ...(given && { headers: { "content-type": "application/json" }, body: JSON.stringify(given) }),
  });
  const { status, error, kind } = (await response.json()) as { status: string; error: string; kind?: Kind };
  if (!response.ok) throw new ApiError(status, error);
  return kind ?? null;
}

/** @throws ApiError */
async function open(kind: Kind): Promise<Session> {
  const api = createApi();
  const { apps } = await api.ask(Apps, {});
  return {
    api,
    apps,
    isAdmin: kind === "admin",
    async end() {
      api.close();
      // Without an answer the cookie stays; the page says so by being signed in when it is opened again.
      await ask("DELETE").catch(() => null);
    },
  };
}

/** The session that this browser has already; null when it has none, or that of an app's user. */
export async function presentSession(): Promise<Session | null> {
  try {
    const kind = await ask("GET");
    return kind && AUTHORS.includes(kind) ? await open(kind) : null;
  } catch {
    return null;
  }
}

/**
 * @param keep for a week; else until the browser is closed
 * @throws ApiError also for a token of another kind
 */
export async function signIn(token: string, keep: boolean): Promise<Session> {
  const kind = await ask("POST", { token, keep });
  if (kind && AUTHORS.includes(kind)) return open(kind);
  await ask("DELETE");
  const message = `This is a token of the kind “${kind}”. Studio needs an editor's or an administrator's.`;
  throw new ApiError("FORBIDDEN", message);
}
