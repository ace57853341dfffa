/**
 * Starts work that no caller awaits, and reports its failure. Read this file before you start a promise without
 * `await`.
 */

/** Receives the failure of background work. */
export type ReportFailure = (error: unknown) => void;

/**
 * Function that receives the failures of background work. The default function throws them again, so that a test or a
 * command fails.
 */
let reportFailure: ReportFailure = (error) => {
  throw error;
};

/** Sets the function that receives the failures of background work in this process. */
export function setBackgroundFailureReporter(next: ReportFailure): void {
  reportFailure = next;
}

/**
 * Starts work that no caller awaits. If it fails, the error is a bug, and the function of `setBackgroundFailureReporter` receives
 * it.
 */
export function runInBackground(work: Promise<unknown>): void {
  work.catch((error: unknown) => reportFailure(error));
}
