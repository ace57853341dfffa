/** A service process whose schedules follow a clock of the test. Arguments: the start of the clock (Unix milliseconds) and its rate. */
import { readConfig } from "../../src/config.js";
import { startService } from "../../src/service.js";
import { createFastClock } from "./fast-clock.js";

const [startTime, rate] = process.argv.slice(2).map(Number) as [number, number];
const unwanted = new AbortController();
process.once("SIGTERM", () => unwanted.abort(new Error("stopped")));

try {
  const service = await startService(readConfig(), {
    clock: createFastClock(startTime, rate),
    unwanted: unwanted.signal,
  });
  if (!unwanted.signal.aborted) await new Promise((resolve) => unwanted.signal.addEventListener("abort", resolve));
  await service.stop();
  process.exit(0);
} catch (error) {
  if (!unwanted.signal.aborted) console.error(error);
  process.exit(1);
}
