/**
 * Requests for signing in and for the person's own account (`/v1/auth`). If the session has expired, these requests
 * fail at once. Studio's other requests wait until the person has signed in again.
 */
import { resolveServiceUrl } from "../../service-address.js";
import { ApiError, throwOffline } from "../shared/api-error.js";

export interface Person {
  id: number;
  firstName: string;
  lastName: string;
  email: string;
}

export interface SignInResult {
  user: Person;
  expiresAt: string;
}

export interface PersonSession {
  id: number;
  device: string;
  address: string | null;
  lastUsedAt: string;
  isCurrent: boolean;
}

export interface Passkey {
  id: number;
  name: string;
  createdAt: string;
  lastUsedAt: string | null;
}

export interface Identity {
  id: number;
  provider: string;
  issuer: string;
  lastUsedAt: string | null;
}

export interface Provider {
  id: string;
  name: string;
}

/**
 * Sends a request to a route below `/v1/auth`. @throws ApiError with the service's message, or with status OFFLINE if there is no response
 */
export async function requestAuthRoute<Answer>(
  method: "GET" | "POST" | "PUT" | "DELETE",
  path: string,
  body?: object,
): Promise<Answer> {
  const jsonOptions = body && { headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
  const response = await fetch(resolveServiceUrl(`/v1/auth/${path}`), { method, ...jsonOptions }).catch(throwOffline);
  const answer = (await response.json().catch(throwOffline)) as Answer & {
    status: string;
    error: string;
    retryAfter?: number;
  };
  if (response.ok) return answer;
  const retryAfter = Number(response.headers.get("retry-after")) || undefined;
  throw new ApiError(answer.status, answer.error, retryAfter === undefined ? {} : { retryAfter });
}

/** Returns the URL that starts a sign-in at an OpenID provider. After the sign-in, the browser opens the path `next` of this service. */
export function getProviderSignInUrl(id: string, next: string): string {
  const address = resolveServiceUrl(`/v1/auth/oidc/${encodeURIComponent(id)}/start`);
  address.searchParams.set("next", next);
  return address.href;
}

export function getSignInErrorText({ status, message, details }: ApiError): string {
  if (status === "SIGN_IN_FAILED") return "The e-mail address or the passphrase is wrong.";
  if (status === "RATE_LIMIT_EXCEEDED" && details.retryAfter !== undefined) {
    const minutes = Math.ceil(details.retryAfter / 60);
    return `Too many attempts. Try again in ${minutes === 1 ? "a minute" : `${minutes} minutes`}.`;
  }
  return message;
}

/** Error messages for a sign-in at an OpenID provider, by the value of the query parameter `sign-in` in the URL of Studio. */
export const PROVIDER_ERROR_TEXTS: Readonly<Record<string, string>> = {
  failed: "The sign-in at the provider did not succeed. Try again.",
  unavailable: "The provider does not answer. Try again later.",
  "no-account": "You have no account of this service yet. Ask an administrator for an invitation.",
  "no-organization":
    "The provider's account belongs to no organization of this service. Ask an administrator for an invitation.",
  "too-many-members": "Your organization has the maximum number of members. Ask an owner to remove a member.",
  "email-in-use":
    "An account with your e-mail address exists. Sign in to it and link the provider on the page Account.",
  "linked-elsewhere": "This identity belongs to another account.",
};
