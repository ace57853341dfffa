/** Asks for confirmation before a value that looks like a secret is stored in a public setting. */
import type { Confirm } from "../shared/confirm.js";
import { looksSecret } from "./looks-secret.js";
import { tierOf } from "./setting-value.js";

/** @returns true if the value may be stored */
export async function confirmPublicSecret(confirm: Confirm, key: string, value: unknown): Promise<boolean> {
  if (tierOf(key) !== "public" || !looksSecret(key, value)) return true;
  return confirm({
    title: `Let everyone read ${key}?`,
    text: `It looks like a secret, and a public setting is in the app's pages for everyone. Under the key __${key} server actions alone read it.`,
    yes: "Save it as public",
    danger: true,
  });
}
