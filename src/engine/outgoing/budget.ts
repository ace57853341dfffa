/** Limits the outgoing requests of one run: their total and concurrent number, and the decoded bytes of all responses. */
import {
  CONCURRENT_OUTGOING_REQUESTS_PER_RUN,
  OUTGOING_REQUESTS_PER_RUN_MAX,
  OUTGOING_RESPONSES_PER_RUN_MAX_BYTES,
} from "../../limits.js";
import { OutgoingError } from "./failure.js";

export class RunRequestBudget {
  private requestCount = 0;
  private byteCount = 0;
  private activeRequests = 0;
  private readonly waiting = new Set<() => void>();

  /** Waits for a request slot, in order. Returns a function that frees the slot. @throws the abort reason of the signal */
  async enter(signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted();
    if (this.activeRequests >= CONCURRENT_OUTGOING_REQUESTS_PER_RUN) await this.waitForSlot(signal);
    else this.activeRequests += 1;
    let isFreed = false;
    return () => {
      if (isFreed) return;
      isFreed = true;
      const [next] = this.waiting;
      // Passes the slot directly to the next waiting request, so that no new request can take the slot first.
      if (next) next();
      else this.activeRequests -= 1;
    };
  }

  private waitForSlot(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const start = () => {
        this.waiting.delete(start);
        signal.removeEventListener("abort", stop);
        resolve();
      };
      const stop = () => {
        this.waiting.delete(start);
        reject(signal.reason as Error);
      };
      this.waiting.add(start);
      signal.addEventListener("abort", stop, { once: true });
    });
  }

  /** Counts one request, redirect or retry. @throws OutgoingError LIMIT if the run has sent too many */
  countRequest(origin: string): void {
    if (this.requestCount >= OUTGOING_REQUESTS_PER_RUN_MAX) {
      const message = `the request to ${origin} was not sent: a run may send ${OUTGOING_REQUESTS_PER_RUN_MAX} requests, redirects included`;
      throw new OutgoingError("LIMIT", message, origin);
    }
    this.requestCount += 1;
  }

  /** Counts decoded bytes of a response. @throws OutgoingError LIMIT if the run has received too many */
  countBytes(bytes: number, origin: string): void {
    this.byteCount += bytes;
    if (this.byteCount <= OUTGOING_RESPONSES_PER_RUN_MAX_BYTES) return;
    const message = `the response of ${origin} was dropped: a run may receive ${OUTGOING_RESPONSES_PER_RUN_MAX_BYTES / 2 ** 20} MB in total`;
    throw new OutgoingError("LIMIT", message, origin);
  }
}
