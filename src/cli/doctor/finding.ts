/** The result of a check, and its text for a terminal. */

/**
 * Result of one check: its subject, the result in words, and how to fix the problem (null if the check found no
 * problem).
 */
export interface Diagnostic {
  what: string;
  says: string;
  advice: string | null;
}

export const noProblem = (subject: string, description: string): Diagnostic => ({
  what: subject,
  says: description,
  advice: null,
});
export const createDiagnostic = (subject: string, description: string, advice: string): Diagnostic => ({
  what: subject,
  says: description,
  advice,
});

/** Returns two lines for a problem, and one line otherwise. */
export function diagnosticLines({ what, says, advice }: Diagnostic): string {
  return advice === null ? `ok     ${what}: ${says}` : `WRONG  ${what}: ${says}\n       -> ${advice}`;
}
