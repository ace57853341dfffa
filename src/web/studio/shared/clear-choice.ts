/** Lets a person choose the same file again after having corrected it. */
import type { MouseEvent } from "react";

/** Empties a file input at a click. Otherwise browsers would report no change if the person chooses the same file again. */
export function clearChosenFile({ currentTarget }: MouseEvent<HTMLInputElement>): void {
  currentTarget.value = "";
}
