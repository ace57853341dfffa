/** Passkeys in the browser: registers a passkey for the signed-in person, and signs in with a passkey. */
import type {
  PublicKeyCredentialCreationOptionsJSON,
  PublicKeyCredentialRequestOptionsJSON,
} from "@simplewebauthn/browser";
import { ApiError } from "../shared/api.js";
import { importOrThrowLoadError } from "../shell/load-error.js";
import { type Passkey, requestAuthRoute, type SignInResult } from "./auth-api.js";

/** True if this page can use passkeys. Browsers allow them only in a secure context, and only if the host is a name, not an IP address. */
export const supportsPasskeys = (): boolean =>
  typeof PublicKeyCredential === "function" && isSecureContext && !/^[\d.]+$|:/.test(location.hostname);

const PASSKEY_CANCELLED_TEXT = "No passkey was used. Try again, or choose another way.";

async function loadWebAuthn() {
  return importOrThrowLoadError(import("@simplewebauthn/browser"));
}

/**
 * Throws an ApiError unchanged. Throws any other error as CANCELLED, because browsers report a cancelled dialog and a missing passkey by
 * the same error. Only a passkey that already exists on the device gets a message of its own.
 */
function throwPasskeyError(error: unknown): never {
  if (error instanceof ApiError) throw error;
  throw new ApiError(
    "CANCELLED",
    error instanceof Error && error.name === "InvalidStateError"
      ? "This device has a passkey for your account already."
      : PASSKEY_CANCELLED_TEXT,
  );
}

/**
 * Registers a new passkey of the signed-in person. @param name name that the account page shows
 * @throws ApiError if the person cancels or the service rejects the passkey
 */
export async function registerPasskey(name: string): Promise<Passkey> {
  const optionsJSON = await requestAuthRoute<PublicKeyCredentialCreationOptionsJSON>(
    "POST",
    "passkeys/registration-options",
  );
  const { startRegistration } = await loadWebAuthn();
  const credential = await startRegistration({ optionsJSON }).catch(throwPasskeyError);
  return (await requestAuthRoute<{ passkey: Passkey }>("POST", "passkeys", { ...credential, name })).passkey;
}

/** Signs in with a passkey. @throws ApiError if the person cancels or the service rejects the passkey */
export async function signInByPasskey(): Promise<SignInResult> {
  const optionsJSON = await requestAuthRoute<PublicKeyCredentialRequestOptionsJSON>(
    "POST",
    "passkeys/authentication-options",
  );
  const { startAuthentication } = await loadWebAuthn();
  const assertion = await startAuthentication({ optionsJSON }).catch(throwPasskeyError);
  return requestAuthRoute<SignInResult>("POST", "passkeys/sign-in", assertion);
}
