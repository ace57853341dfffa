/** Result of a check of the doctor, and its text for a terminal. */

/** Result of one check: its subject, a description of the result, and advice for solving the problem (null if there is no problem). */
export interface Diagnostic {
  subject: string;
  description: string;
  advice: string | null;
}

export const createPassedDiagnostic = (subject: string, description: string): Diagnostic => ({
  subject,
  description,
  advice: null,
});
export const createProblemDiagnostic = (subject: string, description: string, advice: string): Diagnostic => ({
  subject,
  description,
  advice,
});

export function formatDiagnostic({ subject, description, advice }: Diagnostic): string {
  return advice === null
    ? `ok     ${subject}: ${description}`
    : `WRONG  ${subject}: ${description}\n       -> ${advice}`;
}
