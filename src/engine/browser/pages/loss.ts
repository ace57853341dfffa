/** Reasons why a page can no longer be used ("lost"), and the outcome of the page's active run for each reason. */
import { RENDERER_MAX_BYTES } from "../../../limits.js";
import { createFailedPageOutcome, type PageOutcome } from "../run.js";

export const PAGE_LOSS_REASONS = [
  "isolate",
  "closed",
  "crashed",
  "memory",
  "flood",
  "crowd",
  "window",
  "discarded",
  "browser",
  "unready",
] as const;

/**
 * Reason why a page is lost. `unready`: code of the previous run was still active, so the run has not started.
 * `isolate`: the thread of an isolate crashed the page, and the service can repeat the run.
 */
export type PageLossReason = (typeof PAGE_LOSS_REASONS)[number];

const MEMORY_MB = RENDERER_MAX_BYTES / 1024 / 1024;

/**
 * Returns the outcome of a run whose page was lost.
 * @param loss null if the page still exists and only the document of the run is gone
 */
export function createPageLossOutcome(loss: PageLossReason | null): PageOutcome {
  switch (loss) {
    case "memory":
      return createFailedPageOutcome("memory", "RangeError", `The action used more than ${MEMORY_MB} MB of memory`);
    case "flood":
      return createFailedPageOutcome(
        "script",
        "Error",
        "The action caused so much work in the browser that other runs had to wait",
      );
    case "crowd":
      return createFailedPageOutcome("memory", "RangeError", "The action opened too many pages, frames or workers");
    case "window":
      return createFailedPageOutcome(
        "script",
        "Error",
        "The action opened a window, a shared worker or a service worker; runs cannot open these",
      );
    case "closed":
      return createFailedPageOutcome("script", "Error", "The action closed its own page");
    case "unready":
      return createFailedPageOutcome("unready", "Error", "The code of the previous run did not end");
    case "isolate":
      return createFailedPageOutcome("retry", "Error", "The run needs more memory than its isolate has");
    case "crashed":
      return createFailedPageOutcome("browser", "Error", "The page crashed during the run");
    case null:
      return createFailedPageOutcome("script", "Error", "The action navigated its page to another URL");
    default:
      return createFailedPageOutcome("browser", "Error", "The browser ended during the run");
  }
}

export function createTimeoutOutcome(timeoutMs: number): PageOutcome {
  const seconds = timeoutMs / 1_000;
  return createFailedPageOutcome(
    "timeout",
    "TimeoutError",
    `The action took longer than its limit of ${seconds} seconds and was ended`,
  );
}
