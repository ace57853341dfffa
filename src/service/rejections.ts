/** Keeps the process serving when a promise is rejected and no code handles it: such a rejection is logged and counted. */
import type { Logger } from "pino";
import { reportFailuresTo } from "../background.js";
import type { Measures } from "../operations/watch/measures.js";

/** For the rest of the process's life: a rejection during the shutdown must not change the exit code. */
export function surviveRejections(log: Logger, measures: Measures): void {
  const report = (error: unknown) => {
    measures.rejectionUnhandled();
    log.error({ err: error }, "unhandled rejection; the service keeps running");
  };
  reportFailuresTo(report);
  process.on("unhandledRejection", report);
}
