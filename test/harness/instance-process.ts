/** A service process whose schedules follow a clock of the test. Arguments: the start of the clock (Unix milliseconds) and its rate. */
import { readConfig } from "../../src/config.js";
import { startService } from "../../src/service.js";
import { createFastClock } from "./fast-clock.js";

const [startTime, rate] = process.argv.slice(2).map(Number) as [number, number];
const stopRequested = new AbortController();
process.once("SIGTERM", () => stopRequested.abort(new Error("stopped")));

try {
  const service = await startService(readConfig(), {
    clock: createFastClock(startTime, rate),
    stopRequested: stopRequested.signal,
  });
  if (!stopRequested.signal.aborted)
    await new Promise((resolve) => stopRequested.signal.addEventListener("abort", resolve));
  await service.stop();
  process.exit(0);
} catch (error) {
  if (!stopRequested.signal.aborted) console.error(error);
  process.exit(1);
}
