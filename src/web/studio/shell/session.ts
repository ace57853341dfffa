/**
 * Reads, starts and ends the session of this browser. The session is in an HttpOnly cookie, which scripts cannot read, so this module
 * stores nothing.
 */
import type { Role } from "../../../rules/roles.js";
import { resolveServiceUrl } from "../../service-address.js";
import { type ApiClient, createApiClient } from "../shared/api.js";
import { ApiError, asApiError, throwOffline } from "../shared/api-error.js";
import type { App } from "../shared/model.js";

export interface Membership {
  id: number;
  name: string;
  role: Role;
}

export interface PersonRoles {
  organizations: readonly Membership[];
  apps: readonly Membership[];
}

export interface StudioSession {
  api: ApiClient;
  apps: App[];
  roles: PersonRoles;
  isAdmin: boolean;
  /** E-mail address of the person; "" if the browser is signed in with a token. */
  email: string;
  /** True if the account has no passkey and no passphrase yet. The session then only permits adding one of them. */
  isProvisional: boolean;
  /**
   * Signs out: deletes the session in the service and closes the connection. If the person signed in at an OpenID provider that has a page
   * for signing out, opens that page.
   * @throws ApiError if the service has not confirmed that the session is deleted
   */
  endSession(): Promise<void>;
}

/** Kind of the credential with which the browser is signed in. Studio accepts only "editor" and "admin". */
type CredentialKind = "editor" | "admin" | "api" | "task" | "viewer" | "live";

const STUDIO_CREDENTIAL_KINDS: readonly CredentialKind[] = ["editor", "admin"];

async function requestJson<Answer>(path: string, init?: RequestInit): Promise<Answer> {
  const response = await fetch(resolveServiceUrl(path), init).catch(throwOffline);
  const answer = (await response.json().catch(throwOffline)) as Answer & { status: string; error: string };
  if (!response.ok) throw new ApiError(answer.status, answer.error);
  return answer;
}

interface SessionResponse {
  kind?: CredentialKind;
  email?: string;
  isProvisional?: boolean;
  endSessionUrl?: string;
}

function requestSession(
  method: "GET" | "POST" | "DELETE",
  credential?: { token: string; keep: boolean },
): Promise<SessionResponse> {
  const body = credential && { headers: { "content-type": "application/json" }, body: JSON.stringify(credential) };
  return requestJson<SessionResponse>("/v1/session", { method, ...body });
}

/** Reads the roles of the person who is signed in. @throws ApiError */
export async function readPersonRoles(): Promise<PersonRoles> {
  const { organizations, apps } = await requestJson<PersonRoles>("/v1/auth/session");
  return { organizations, apps };
}

/** Creates the session that Studio uses, with the person's apps and roles. @throws ApiError */
async function createSession({ kind, email = "", isProvisional = false }: SessionResponse): Promise<StudioSession> {
  // Requests the apps by a GET request, so that the page can preload the response together with its first files (web-assets.ts).
  const [{ apps }, roles] = await Promise.all([requestJson<{ apps: App[] }>("/v1/apps"), readPersonRoles()]);
  const api = createApiClient();
  return {
    api,
    apps,
    roles,
    isAdmin: kind === "admin",
    email,
    isProvisional,
    async endSession() {
      const { endSessionUrl } = await requestSession("DELETE").catch((error: unknown): SessionResponse => {
        // The session has already ended, for example because it has expired.
        if (asApiError(error).status === "UNAUTHORIZED") return {};
        throw error;
      });
      api.close();
      if (endSessionUrl !== undefined) location.assign(endSessionUrl);
    },
  };
}

/**
 * Returns the e-mail address of the signed-in person; "" if the browser is signed in with a token; null if it is not signed in to Studio.
 * @throws ApiError
 */
export async function readSignedInEmail(): Promise<string | null> {
  const { kind, email = "" } = await requestSession("GET");
  return kind && STUDIO_CREDENTIAL_KINDS.includes(kind) ? email : null;
}

/** Returns the session of the browser; null if the browser is not signed in to Studio, or if a request fails. */
export async function readSession(): Promise<StudioSession | null> {
  try {
    const response = await requestSession("GET");
    return response.kind && STUDIO_CREDENTIAL_KINDS.includes(response.kind) ? await createSession(response) : null;
  } catch {
    return null;
  }
}

/**
 * Signs in with a token that the person has pasted.
 * @param keepSignedIn true to stay signed in for a week, or until the token expires if that is earlier; false to stay signed in until
 *   the browser is closed
 * @throws ApiError if the token is invalid, if its kind cannot open Studio, or if the service does not respond
 */
export async function signInByToken(token: string, keepSignedIn: boolean): Promise<void> {
  const { kind } = await requestSession("POST", { token, keep: keepSignedIn });
  if (kind && STUDIO_CREDENTIAL_KINDS.includes(kind)) return;
  await requestSession("DELETE");
  const message = `This is a token of the kind “${kind}”. To sign in to Studio, use the token of an editor or an administrator.`;
  throw new ApiError("FORBIDDEN", message);
}
