/** Who works here, by the browser's HttpOnly cookie, which no script can read. Stores nothing. */
import { serviceAddress } from "../service-address.js";
import { type Api, ApiError, createApi } from "./api.js";
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

async function call<Answer>(path: string, init?: RequestInit): Promise<Answer> {
  const response = await fetch(serviceAddress(path), init);
  const answer = (await response.json()) as Answer & { status: string; error: string };
  if (!response.ok) throw new ApiError(answer.status, answer.error);
  return answer;
}

async function ask(method: "GET" | "POST" | "DELETE", given?: { token: string; keep: boolean }): Promise<Kind | null> {
  const body = given && { headers: { "content-type": "application/json" }, body: JSON.stringify(given) };
  const { kind } = await call<{ kind?: Kind }>("/v1/session", { method, ...body });
  return kind ?? null;
}

/** @throws ApiError */
async function open(kind: Kind): Promise<Session> {
  // By GET: the browser has been asked for it with the page's first files, where somebody is signed in (web-assets.ts).
  const { apps } = await call<{ apps: App[] }>("/v1/apps");
  const api = createApi();
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
