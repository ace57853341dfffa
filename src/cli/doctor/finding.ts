/** The result of a check, and its text for a terminal. */

/** Result of one check. `advice` describes how to fix the problem; null if the check found none. */
export interface Finding {
  what: string;
  says: string;
  advice: string | null;
}

export const noProblem = (what: string, says: string): Finding => ({ what, says, advice: null });
export const ill = (what: string, says: string, advice: string): Finding => ({ what, says, advice });

/** Returns two lines for a problem, and one line otherwise. */
export function written({ what, says, advice }: Finding): string {
  return advice === null ? `ok     ${what}: ${says}` : `WRONG  ${what}: ${says}\n       -> ${advice}`;
}
