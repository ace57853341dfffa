/** The session of this browser, by its HttpOnly cookie, which no script can read. Stores nothing. */
import type { Role } from "../../../rules/roles.js";
import { serviceAddress } from "../../service-address.js";
import { type Api, ApiError, createApi } from "../shared/api.js";
import type { App } from "../shared/model.js";

/** Organization or app in which the person has a role. */
export interface Membership {
  id: number;
  name: string;
  role: Role;
}

export interface Roles {
  organizations: readonly Membership[];
  apps: readonly Membership[];
}

export interface Session {
  api: Api;
  apps: App[];
  roles: Roles;
  isAdmin: boolean;
  /** E-mail address of the person, to sign in again with; empty for a token. */
  email: string;
  /** True: the account has no way to sign in yet, and the session may do nothing else. */
  isProvisional: boolean;
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

interface Present {
  kind?: Kind;
  email?: string;
  isProvisional?: boolean;
  endSessionUrl?: string;
}

function ask(method: "GET" | "POST" | "DELETE", given?: { token: string; keep: boolean }): Promise<Present> {
  const body = given && { headers: { "content-type": "application/json" }, body: JSON.stringify(given) };
  return call<Present>("/v1/session", { method, ...body });
}

/** Roles of the person in this browser. @throws ApiError */
export async function readRoles(): Promise<Roles> {
  const { organizations, apps } = await call<Roles>("/v1/auth/session");
  return { organizations, apps };
}

/** @throws ApiError */
async function open({ kind, email = "", isProvisional = false }: Present): Promise<Session> {
  // By GET: the page preloads it with its first files if a person is signed in (web-assets.ts).
  const [{ apps }, roles] = await Promise.all([call<{ apps: App[] }>("/v1/apps"), readRoles()]);
  const api = createApi();
  return {
    api,
    apps,
    roles,
    isAdmin: kind === "admin",
    email,
    isProvisional,
    async end() {
      api.close();
      // Without an answer the cookie stays; the page says so by being signed in when it is opened again.
      const { endSessionUrl } = await ask("DELETE").catch((): Present => ({}));
      if (endSessionUrl !== undefined) location.assign(endSessionUrl);
    },
  };
}

/** E-mail address of the person who is signed in to this browser, empty for a token; null for none, or for an app user. @throws ApiError */
export async function presentEmail(): Promise<string | null> {
  const { kind, email = "" } = await ask("GET");
  return kind && AUTHORS.includes(kind) ? email : null;
}

/** The session that this browser has already; null without one. */
export async function presentSession(): Promise<Session | null> {
  try {
    const present = await ask("GET");
    return present.kind && AUTHORS.includes(present.kind) ? await open(present) : null;
  } catch {
    return null;
  }
}

/**
 * Signs in by a pasted token.
 * @param keep for a week; else until the browser is closed
 * @throws ApiError also for a token of another kind
 */
export async function signInByToken(token: string, keep: boolean): Promise<void> {
  const { kind } = await ask("POST", { token, keep });
  if (kind && AUTHORS.includes(kind)) return;
  await ask("DELETE");
  const message = `This is a token of the kind “${kind}”. Studio needs an editor's or an administrator's.`;
  throw new ApiError("FORBIDDEN", message);
}
