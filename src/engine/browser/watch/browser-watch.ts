/**
 * Watches a browser while runs are active: measures the memory and the CPU time of its processes, and checks that it
 * responds.
 */

import { setTimeout as delay } from "node:timers/promises";
import type { Chromium } from "../browser-source.js";
import { FloodWatch } from "./floods.js";
import { MemoryLimits } from "./memory.js";
import { Priorities } from "./priorities.js";
import { measureProcesses } from "./processes.js";

/** Interval of the checks that the browser responds. Its processes are measured every MEASURE_INTERVAL_MS. */
const ANSWER_INTERVAL_MS = 100;
const MEASURE_INTERVAL_MS = 100;
/** Interval at which the priority of each renderer is set according to its CPU time. */
const PRIORITY_INTERVAL_MS = 50;
/** Minimum duration of a run before the browser's processes are measured. A measurement would delay the end of a shorter run. */
const MEASURED_AFTER_MS = 10;
/** Time after the service has killed a process during which a crash counts as the effect of the kill. */
const CAUSED_WITHIN_MS = 5_000;

/** Repeats a check at an interval, never two checks at once. Ignores errors, because the browser or a process may have ended. */
function repeatCheck(ms: number, check: () => Promise<void>): NodeJS.Timeout {
  let isChecking = false;
  return setInterval(() => {
    if (isChecking) return;
    isChecking = true;
    check()
      .catch(() => {})
      .finally(() => {
        isChecking = false;
      });
  }, ms);
}

/** Resolves with true if a run is active now and also MEASURED_AFTER_MS later. The two may be different runs. */
export async function isActiveRepeatedly(isActive: () => boolean): Promise<boolean> {
  if (!isActive()) return false;
  await delay(MEASURED_AFTER_MS);
  return isActive();
}

/** Watches a browser. Does nothing for a remote browser, whose processes are on another machine, and on systems without /proc. */
export class BrowserWatch {
  private readonly floods: FloodWatch | null = null;
  private readonly memory: MemoryLimits | null = null;
  private readonly timers: readonly NodeJS.Timeout[] = [];

  /** @param isActive returns true while a run is active */
  constructor(
    private readonly chromium: Chromium,
    isActive: () => boolean,
  ) {
    const { pid: group } = chromium;
    if (group === null) return;
    const floods = new FloodWatch(chromium, group);
    const memory = new MemoryLimits(group, () => chromium.stop());
    const priorities = new Priorities();
    this.floods = floods;
    this.memory = memory;
    this.timers = [
      repeatCheck(ANSWER_INTERVAL_MS, async () => floods.check(await isActiveRepeatedly(isActive))),
      repeatCheck(MEASURE_INTERVAL_MS, async () => {
        if (await isActiveRepeatedly(isActive)) await memory.check(await measureProcesses(floods.processes, group));
      }),
      repeatCheck(PRIORITY_INTERVAL_MS, async () => {
        if (!(await isActiveRepeatedly(isActive))) return;
        const renderers = floods.processes.filter(({ renderer }) => renderer);
        priorities.update(await measureProcesses(renderers, group));
      }),
    ];
  }

  /**
   * Returns the cause of a crash that is reported now: `memory` if this class has killed the process or V8's heap was full,
   * `flood` for a flood of messages, otherwise null.
   */
  crashCause(): "memory" | "flood" | null {
    const { floods, memory, chromium } = this;
    if (floods === null || memory === null) return null;
    if (floods.causedCrash()) return "flood";
    return Date.now() - Math.max(memory.lastKillAt, chromium.heapFullAt()) < CAUSED_WITHIN_MS ? "memory" : null;
  }

  /** True if the browser's own processes, which serve all runs, use so much memory that the browser should be replaced. */
  usesTooMuchMemory(): boolean {
    return this.memory?.usesTooMuchMemory() ?? false;
  }

  stop(): void {
    this.timers.forEach(clearInterval);
  }
}
