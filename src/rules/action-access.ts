/** Validates the field `access` of an action, and compares it with callers. The field decides who may run the action from a web page. */
import type { ActionAccess } from "../data/action-types.js";
import { ActionError } from "../errors.js";
import { type AppUserData, checkColumnConditions, isUserAllowedByRule } from "./caller-rules.js";
import { describeValue, isObject } from "./describe-value.js";

/** Value of `access` if the author of the action has not set it (contract, section 7). */
export const DEFAULT_ACTION_ACCESS: ActionAccess = "everyone";

const NAMED_ACCESS: readonly unknown[] = ["everyone", "signedIn", "editors"];
/** Maximum size in bytes of a stored `access` value. The limit is low, because the service reads the value at each run by a visitor. */
const ACCESS_MAX_BYTES = 8_192;

export function findActionAccessFault(value: unknown): string | null {
  if (value === null || NAMED_ACCESS.includes(value)) return null;
  if (!isObject(value) || Object.keys(value).join() !== "user") {
    const expected = '"everyone", "signedIn", "editors" or {user: {Column: {equals, notequals or contains}}}';
    return `access must be ${expected} (got ${describeValue(value)})`;
  }
  try {
    checkColumnConditions(value["user"], "access.user");
  } catch (error) {
    return (error as ActionError).message;
  }
  const bytes = Buffer.byteLength(JSON.stringify(value));
  return bytes <= ACCESS_MAX_BYTES ? null : `access must be at most ${ACCESS_MAX_BYTES} bytes of JSON (got ${bytes})`;
}

/** Returns the stored form of a valid `access` value. null becomes DEFAULT_ACTION_ACCESS. */
export const toStoredActionAccess = (value: unknown): ActionAccess => (value ?? DEFAULT_ACTION_ACCESS) as ActionAccess;

/**
 * True if a page with a token of this kind may run the action.
 * @param readUser reads the app user who is signed in on the page; called only if `access` depends on the user
 */
export async function mayPageRunAction(
  access: ActionAccess,
  kind: "viewer" | "live",
  readUser: () => Promise<AppUserData | null>,
): Promise<boolean> {
  if (access === "everyone") return true;
  if (access === "editors") return kind === "viewer";
  const user = await readUser();
  return isUserAllowedByRule(access === "signedIn" ? "loggedIn" : access, user);
}
