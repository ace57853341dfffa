/**
 * Locks the sign-in methods of a person: passphrase, passkeys, and identities at OpenID providers. So a change of a method, the start of a
 * session and a reset run one after the other. Also prevents people from removing their last method.
 */
import { rows, type SqlClient } from "../../data/database.js";
import { ActionError } from "../../errors.js";

const LOCK_PERSON = "SELECT id FROM person WHERE id = $1 FOR NO KEY UPDATE";
const LOCK_PERSON_WITH_PASSPHRASE = "SELECT id FROM person WHERE id = $1 AND passphrase_hash = $2 FOR NO KEY UPDATE";
const SELECT_VALID_CREDENTIAL =
  "SELECT id FROM credential WHERE id = $1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now())";
const SELECT_HAS_SIGN_IN_METHOD = `
  SELECT (passphrase_hash IS NOT NULL) OR EXISTS (SELECT FROM passkey WHERE person_id = $1)
         OR EXISTS (SELECT FROM person_identity WHERE person_id = $1) AS "hasMethod"
    FROM person WHERE id = $1`;

/**
 * Locks a person's sign-in methods until the transaction ends, so that two concurrent removals cannot remove a person's last two methods.
 */
export async function lockSignInMethods(executor: SqlClient, personId: number): Promise<void> {
  await rows(executor, LOCK_PERSON, [personId]);
}

/**
 * Locks the caller's sign-in methods, and checks that the caller's credential is still valid. Without this check, a
 * request that is in progress while a reset ends all sessions could add a passkey afterwards.
 * @throws ActionError UNAUTHORIZED
 */
export async function lockCallersSignInMethods(
  executor: SqlClient,
  { personId, credentialId }: { personId: number; credentialId: number },
): Promise<void> {
  await lockSignInMethods(executor, personId);
  if ((await rows(executor, SELECT_VALID_CREDENTIAL, [credentialId])).length === 0) {
    throw new ActionError("UNAUTHORIZED", "the credential of this request was revoked or has expired; sign in again");
  }
}

/**
 * Locks a person's sign-in methods if the person still has this passphrase. Returns false if the passphrase was changed
 * after its comparison with the hash.
 */
export async function lockPassphrase(executor: SqlClient, personId: number, passphraseHash: string): Promise<boolean> {
  return (await rows(executor, LOCK_PERSON_WITH_PASSPHRASE, [personId, passphraseHash])).length > 0;
}

/**
 * Checks that the person has at least one sign-in method. Call this function after the removal of a method, in the same transaction.
 * @throws ActionError REQUEST_INVALID
 */
export async function requireSignInMethod(executor: SqlClient, personId: number): Promise<void> {
  const [row] = await rows<{ hasMethod: boolean }>(executor, SELECT_HAS_SIGN_IN_METHOD, [personId]);
  if (row?.hasMethod) return;
  throw new ActionError(
    "REQUEST_INVALID",
    "this is the only way to sign in to the account; add another way to sign in first",
  );
}
