/** Asks the person for a confirmation before Studio stores a value that looks like a secret in a public setting. */
import type { ConfirmFunction } from "../shared/confirm.js";
import { looksLikeSecret } from "./looks-secret.js";
import { getSettingTier } from "./setting-value.js";

/** Returns true if the value does not look like a secret, the setting is not public, or the person has confirmed. */
export async function confirmPublicSecret(confirm: ConfirmFunction, key: string, value: unknown): Promise<boolean> {
  if (getSettingTier(key) !== "public" || !looksLikeSecret(key, value)) return true;
  return confirm({
    title: `Let everyone read ${key}?`,
    explanation: `The value looks like a secret, and everyone can read a public setting in the app's pages. Under the key __${key}, only server actions can read it.`,
    confirmLabel: "Save it as public",
    isDangerous: true,
  });
}
