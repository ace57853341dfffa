/** Runs work that no caller awaits, so that its failure is reported instead of being lost. Read it before you start a promise without `await`. */

/** Receives the failure of background work. */
export type ReportFailure = (error: unknown) => void;

/** Receives failures of background work. The default rethrows, so that a test or a command fails. */
let reportFailure: ReportFailure = (error) => {
  throw error;
};

/** Sends the failures of background work to `next`, for the whole process. */
export function reportFailuresTo(next: ReportFailure): void {
  reportFailure = next;
}

/** Starts work that no caller awaits. Its failure is a fault of the service and is reported. */
export function runInBackground(work: Promise<unknown>): void {
  work.catch((error: unknown) => reportFailure(error));
}
