/** Reasons why a page can no longer be used ("lost"), and the outcome of the page's active run for each reason. */
import { RENDERER_MEMORY_MAX_BYTES } from "../../../limits.js";
import { HEAP_MAX_MB } from "../chromium-flags.js";
import { createFailedPageRunOutcome, type PageRunOutcome, type RunFailureCause } from "../run.js";

type PageFailure = readonly [cause: RunFailureCause, name: string, message: string];

const MEMORY_MB = RENDERER_MEMORY_MAX_BYTES / 1024 / 1024;
const BROWSER_ENDED: PageFailure = ["browser", "Error", "The browser ended during the run"];
const NAVIGATED: PageFailure = ["script", "Error", "The action navigated its page to another URL"];

/** `isolate`: code in an isolate crashed the page, and the run can be repeated in a document. */
const FAILURE_BY_LOSS = {
  isolate: ["retry", "Error", "The run needs more memory than its isolate has"],
  closed: ["script", "Error", "The action closed its own page"],
  crashed: ["browser", "Error", "The page crashed during the run"],
  memory: [
    "memory",
    "RangeError",
    `The action used too much memory: more than ${MEMORY_MB} MB, or more than ${HEAP_MAX_MB} MB for JavaScript objects`,
  ],
  flood: ["script", "Error", "The action caused so much work in the browser that other runs had to wait"],
  crowd: ["memory", "RangeError", "The action opened too many pages, frames or workers"],
  window: [
    "script",
    "Error",
    "The action opened a window, a shared worker or a service worker; runs cannot open these",
  ],
  discarded: BROWSER_ENDED,
  browser: BROWSER_ENDED,
} as const satisfies Record<string, PageFailure>;

export type PageLossReason = keyof typeof FAILURE_BY_LOSS;
export const PAGE_LOSS_REASONS = Object.keys(FAILURE_BY_LOSS) as PageLossReason[];

/** `loss` is null if the page still exists and only the document of the run is gone. */
export const createPageLossOutcome = (loss: PageLossReason | null): PageRunOutcome =>
  createFailedPageRunOutcome(...(loss === null ? NAVIGATED : FAILURE_BY_LOSS[loss]));

export function createTimeoutOutcome(timeoutMs: number): PageRunOutcome {
  const message = `The action took longer than its limit of ${timeoutMs / 1_000} seconds and was ended`;
  return createFailedPageRunOutcome("timeout", "TimeoutError", message);
}
