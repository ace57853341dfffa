/** The result of a check, and its text for a terminal. */

/** `mend` says how to fix the problem; null if there is none. */
export interface Finding {
  what: string;
  says: string;
  mend: string | null;
}

export const well = (what: string, says: string): Finding => ({ what, says, mend: null });
export const ill = (what: string, says: string, mend: string): Finding => ({ what, says, mend });

/** Two lines where something is wrong, one where it is not. */
export function written({ what, says, mend }: Finding): string {
  return mend === null ? `ok     ${what}: ${says}` : `WRONG  ${what}: ${says}\n       -> ${mend}`;
}
