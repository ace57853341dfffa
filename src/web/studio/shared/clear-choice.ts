/** Lets a person choose the same file again after having corrected it. */
import type { MouseEvent } from "react";

/** Handler for clicks on a file input. Browsers report no change if the chosen file is the one that the input already has. */
export function clearChosenFile({ currentTarget }: MouseEvent<HTMLInputElement>): void {
  currentTarget.value = "";
}
