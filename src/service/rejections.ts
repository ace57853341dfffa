/** Logs and counts rejected promises that no code handles. They then do not end the process. */
import type { Logger } from "pino";
import { reportFailuresTo } from "../background.js";
import type { ServiceMeasures } from "../operations/watch/measures.js";

/** Starts to handle such rejections, until the process ends, so that one during the stop does not change the exit code. */
export function surviveRejections(log: Logger, measures: ServiceMeasures): void {
  const report = (error: unknown) => {
    measures.rejectionUnhandled();
    log.error({ err: error }, "unhandled rejection; the service keeps running");
  };
  reportFailuresTo(report);
  process.on("unhandledRejection", report);
}
