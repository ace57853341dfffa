/** Checks the licence of a package against the licences that an operator allows. */
import satisfies from "spdx-satisfies";

/**
 * True if the licence is allowed.
 * @param licence SPDX expression or other text from the package; null if it has no licence
 * @param allowed SPDX identifiers of the allowed licences
 */
export function isAllowedLicence(licence: string | null, allowed: readonly string[]): boolean {
  if (licence === null) return false;
  try {
    return satisfies(licence, [...allowed]);
  } catch {
    // `licence` is not an SPDX expression, but for example a sentence, "UNLICENSED" or the name of a file.
    return allowed.includes(licence);
  }
}
