/** Starts work that no caller awaits, and reports its failure. Read this file before you start a promise without `await`. */

/** Receives the failure of background work. */
export type ReportFailure = (error: unknown) => void;

/** Throws the error again until another reporter is set. The unhandled rejection then ends the test or the command. */
let reportFailure: ReportFailure = (error) => {
  throw error;
};

export function setBackgroundFailureReporter(reporter: ReportFailure): void {
  reportFailure = reporter;
}

/** Starts work that no caller awaits. Passes an error of the work to the function that was set with `setBackgroundFailureReporter`. */
export function runInBackground(work: Promise<unknown>): void {
  work.catch((error: unknown) => reportFailure(error));
}
