/** Session of this browser. Its HttpOnly cookie cannot be read by scripts. This module stores nothing. */
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
  /** E-mail address of the person, for a new sign-in; "" if a token is signed in. */
  email: string;
  /** True if the account has no way to sign in yet. The session then has no other rights. */
  isProvisional: boolean;
  /** Signs out. Closes everything that is open. */
  end(): Promise<void>;
}

/** Session as the service describes it. */
type Kind = "editor" | "admin" | "api" | "task" | "viewer" | "live";

const AUTHOR_KINDS: readonly Kind[] = ["editor", "admin"];

async function callAuth<Answer>(path: string, init?: RequestInit): Promise<Answer> {
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

function requestSession(
  method: "GET" | "POST" | "DELETE",
  credential?: { token: string; keep: boolean },
): Promise<Present> {
  const body = credential && { headers: { "content-type": "application/json" }, body: JSON.stringify(credential) };
  return callAuth<Present>("/v1/session", { method, ...body });
}

/** Roles of the person in this browser. @throws ApiError */
export async function readRoles(): Promise<Roles> {
  const { organizations, apps } = await callAuth<Roles>("/v1/auth/session");
  return { organizations, apps };
}

/** @throws ApiError */
async function open({ kind, email = "", isProvisional = false }: Present): Promise<Session> {
  // A GET request, so that the page can preload it together with its first files (web-assets.ts).
  const [{ apps }, roles] = await Promise.all([callAuth<{ apps: App[] }>("/v1/apps"), readRoles()]);
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
      // Without a response the cookie remains, and the person is still signed in when Studio is opened again.
      const { endSessionUrl } = await requestSession("DELETE").catch((): Present => ({}));
      if (endSessionUrl !== undefined) location.assign(endSessionUrl);
    },
  };
}

/** Returns the e-mail address of the signed-in person, "" for a token, and null if nobody or an app user is signed in. @throws ApiError */
export async function presentEmail(): Promise<string | null> {
  const { kind, email = "" } = await requestSession("GET");
  return kind && AUTHOR_KINDS.includes(kind) ? email : null;
}

/** Returns the session that this browser already has, or null. */
export async function presentSession(): Promise<Session | null> {
  try {
    const present = await requestSession("GET");
    return present.kind && AUTHOR_KINDS.includes(present.kind) ? await open(present) : null;
  } catch {
    return null;
  }
}

/**
 * Signs in with a pasted token.
 * @param keep true for a week, false until the browser is closed
 * @throws ApiError also if the token is of another kind
 */
export async function signInByToken(token: string, keep: boolean): Promise<void> {
  const { kind } = await requestSession("POST", { token, keep });
  if (kind && AUTHOR_KINDS.includes(kind)) return;
  await requestSession("DELETE");
  const message = `This is a token of the kind “${kind}”. Studio needs an editor's or an administrator's.`;
  throw new ApiError("FORBIDDEN", message);
}
