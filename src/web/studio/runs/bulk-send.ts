/**
 * Sends one request for each of several runs. The caller passes the functions that send a request and that wait, so
 * that tests can replace them.
 */

import { formatCount } from "../shared/format.js";
import { type RateLimitRetryOptions, retryAfterRateLimit } from "../shared/rate-limit-retry.js";

interface BulkRequest extends RateLimitRetryOptions {
  /** Past participle of the operation, such as "cancelled", for the summary. */
  pastParticiple: string;
  sendRequest(id: number): Promise<unknown>;
  reportProgress(progress: string): void;
}

type SendOutcome = "sent" | "ended" | { message: string };

async function sendForRun(id: number, request: BulkRequest): Promise<SendOutcome> {
  try {
    await retryAfterRateLimit(() => request.sendRequest(id), request);
    return "sent";
  } catch (error) {
    const { status, message } = request.toRequestFailure(error);
    return status === "RUN_NOT_CANCELLABLE" ? "ended" : { message };
  }
}

/**
 * Sends a request for each run. Skips runs that have ended already, waits when the rate limit is reached, and stops at any other error.
 * Returns a summary for the person.
 */
export async function sendRequestForEachRun(ids: readonly number[], request: BulkRequest): Promise<string> {
  const { pastParticiple, reportProgress } = request;
  let sentCount = 0;
  let endedCount = 0;
  const formatSummary = () => {
    const endedText = endedCount > 0 ? `, ${formatCount(endedCount, "run", "runs")} ended already` : "";
    return `${formatCount(sentCount, "run", "runs")} ${pastParticiple}${endedText}`;
  };
  for (const id of ids) {
    reportProgress(`${sentCount} of ${ids.length} ${pastParticiple}…`);
    const outcome = await sendForRun(id, request);
    if (outcome === "sent") sentCount += 1;
    else if (outcome === "ended") endedCount += 1;
    else return `${formatSummary()}, then: ${outcome.message}`;
  }
  return `${formatSummary()}.`;
}
