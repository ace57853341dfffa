/** Checks whether the licence of an npm package is one of the licences that the operator allows. */
import satisfies from "spdx-satisfies";

/**
 * True if the licence is allowed.
 * @param licence SPDX expression or other text from the package; null if the package names no licence
 * @param allowed SPDX identifiers of the allowed licences
 */
export function isAllowedLicence(licence: string | null, allowed: readonly string[]): boolean {
  if (licence === null) return false;
  try {
    return satisfies(licence, [...allowed]);
  } catch {
    // `licence` is no SPDX expression, but for example a sentence or "UNLICENSED". It is allowed only if the list contains exactly this
    // text.
    return allowed.includes(licence);
  }
}
