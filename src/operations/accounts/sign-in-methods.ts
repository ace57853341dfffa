/** Prevents people from removing their last sign-in method: passphrase, passkey, or identity at an OpenID provider. */
import { rows, type SqlClient } from "../../data/database.js";
import { ActionError } from "../../errors.js";

const LOCK_PERSON = "SELECT id FROM person WHERE id = $1 FOR NO KEY UPDATE";
const SELECT_HAS_SIGN_IN_METHOD = `
  SELECT (passphrase_hash IS NOT NULL) OR EXISTS (SELECT FROM passkey WHERE person_id = $1)
         OR EXISTS (SELECT FROM person_identity WHERE person_id = $1) AS remains
    FROM person WHERE id = $1`;

/**
 * Locks a person's sign-in methods until the transaction ends, so that two concurrent removals cannot remove a person's
 * last two methods.
 */
export async function lockSignInMethods(executor: SqlClient, personId: number): Promise<void> {
  await rows(executor, LOCK_PERSON, [personId]);
}

/**
 * Checks that the person has at least one sign-in method. Call it after the removal, in the same transaction.
 * @throws ActionError REQUEST_INVALID
 */
export async function requireSignInMethod(executor: SqlClient, personId: number): Promise<void> {
  const [row] = await rows<{ remains: boolean }>(executor, SELECT_HAS_SIGN_IN_METHOD, [personId]);
  if (row?.remains) return;
  throw new ActionError(
    "REQUEST_INVALID",
    "this is the only way to sign in to the account; add another way to sign in first",
  );
}
