/** Asks the person for a confirmation before Studio stores a value that looks like a secret in a public setting. */
import type { Confirm } from "../shared/confirm.js";
import { looksSecret } from "./looks-secret.js";
import { tierOf } from "./setting-value.js";

/** Returns true if the value does not look like a secret, the setting is not public, or the person has confirmed. */
export async function confirmPublicSecret(confirm: Confirm, key: string, value: unknown): Promise<boolean> {
  if (tierOf(key) !== "public" || !looksSecret(key, value)) return true;
  return confirm({
    title: `Let everyone read ${key}?`,
    text: `It looks like a secret, and a public setting is in the app's pages for everyone. Under the key __${key} server actions alone read it.`,
    yes: "Save it as public",
    danger: true,
  });
}
