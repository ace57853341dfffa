/** Causes of the loss of a page, and the outcome that each gives to the active run. */
import { RENDERER_MAX_BYTES } from "../../../limits.js";
import { failedPageOutcome, type PageOutcome } from "../run.js";

/**
 * Cause of a loss. `unready`: code of the last run was still active, so that the next run has not started. `isolate`:
 * the thread of an isolate has ended its page, and the run can be repeated.
 */
export type PageLoss =
  | "isolate"
  | "closed"
  | "crashed"
  | "memory"
  | "flood"
  | "crowd"
  | "window"
  | "discarded"
  | "browser"
  | "unready";

const MEMORY_MB = RENDERER_MAX_BYTES / 1024 / 1024;

/** @param loss null if the page still exists and only the document of the run is gone */
export function outcomeOfLoss(loss: PageLoss | null): PageOutcome {
  switch (loss) {
    case "memory":
      return failedPageOutcome("memory", "RangeError", `The action used more than ${MEMORY_MB} MB of memory`);
    case "flood":
      return failedPageOutcome(
        "script",
        "Error",
        "The action asked the browser for so much at once that other runs had to wait",
      );
    case "crowd":
      return failedPageOutcome("memory", "RangeError", "The action opened too many pages, frames or workers");
    case "window":
      return failedPageOutcome(
        "script",
        "Error",
        "The action opened a window, a shared worker or a service worker; runs cannot open these",
      );
    case "closed":
      return failedPageOutcome("script", "Error", "The action closed its own page");
    case "unready":
      return failedPageOutcome("unready", "Error", "The run before did not come to its end");
    case "isolate":
      return failedPageOutcome("retry", "Error", "The run needs more than its isolate can hold");
    case "crashed":
      return failedPageOutcome("browser", "Error", "The page crashed during the run");
    case null:
      return failedPageOutcome("script", "Error", "The action left its page by a navigation");
    default:
      return failedPageOutcome("browser", "Error", "The browser ended during the run");
  }
}

export function timedOut(timeoutMs: number): PageOutcome {
  const seconds = timeoutMs / 1_000;
  return failedPageOutcome(
    "timeout",
    "TimeoutError",
    `The action took longer than its limit of ${seconds} seconds and was ended`,
  );
}
