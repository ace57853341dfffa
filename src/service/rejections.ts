/** Logs and counts unhandled promise rejections, so that they do not end the process. */
import type { Logger } from "pino";
import { setBackgroundFailureReporter } from "../background.js";
import type { ServiceMetrics } from "../operations/watch/measures.js";

/** Handles rejections until the process ends, so that one during the stop does not change the exit code. */
export function registerUnhandledRejectionLogging(log: Logger, measures: ServiceMetrics): void {
  const report = (error: unknown) => {
    measures.countUnhandledRejection();
    log.error({ err: error }, "unhandled rejection; the service keeps running");
  };
  setBackgroundFailureReporter(report);
  process.on("unhandledRejection", report);
}
