/** Checks the licence of a package against the licences that an operator allows. */
import satisfies from "spdx-satisfies";

/** @param allowed SPDX identifiers @param licence an SPDX expression or any other text of a package; null: none */
export function isAllowedLicence(licence: string | null, allowed: readonly string[]): boolean {
  if (licence === null) return false;
  try {
    return satisfies(licence, [...allowed]);
  } catch {
    // This is not an SPDX expression, but a sentence, UNLICENSED, or the name of a file.
    return allowed.includes(licence);
  }
}
