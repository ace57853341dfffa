/** Whether a licence as a package states it is among those that an operator allows. */
import satisfies from "spdx-satisfies";

/** @param allowed SPDX identifiers @param stated an SPDX expression, or whatever a package says; null: nothing */
export function isAllowedLicence(stated: string | null, allowed: readonly string[]): boolean {
  if (stated === null) return false;
  try {
    return satisfies(stated, [...allowed]);
  } catch {
    // No SPDX expression: a sentence, UNLICENSED, the name of a file.
    return allowed.includes(stated);
  }
}
