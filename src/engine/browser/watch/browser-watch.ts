/**
 * Watches the processes of one browser from outside while runs are active: their memory, their processor time, and
 * whether the browser responds.
 */

import { setTimeout as delay } from "node:timers/promises";
import type { Chromium } from "../browser-source.js";
import { FloodWatch } from "./floods.js";
import { MemoryLimits } from "./memory.js";
import { Priorities } from "./priorities.js";
import { measureProcesses } from "./processes.js";

/** Interval of the checks whether the browser responds, and of the measurements of its processes. */
const ANSWER_INTERVAL_MS = 100;
const MEASURE_INTERVAL_MS = 100;
/** Interval at which renderers are ranked by processor time. Until then, a busy renderer delays the others. */
const PRIORITY_INTERVAL_MS = 50;
/** Minimum duration of a run that is measured. For shorter runs, a measurement would delay their end. */
const LASTING_MS = 10;
/** A crash within this time after a kill counts as its effect. */
const CAUSED_WITHIN_MS = 5_000;

/** Repeats a check at an interval, one at a time. Ignores failures, because the browser or a process may have ended. */
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

/** True if a run is active now and also after a short time; it may be another run. */
export async function isActiveRepeatedly(isActive: () => boolean): Promise<boolean> {
  if (!isActive()) return false;
  await delay(LASTING_MS);
  return isActive();
}

/** Watches one browser. Measures nothing without /proc, or for a remote browser, whose process IDs have no meaning on this machine. */
export class BrowserWatch {
  private readonly floods: FloodWatch | null = null;
  private readonly memory: MemoryLimits | null = null;
  private readonly timers: readonly NodeJS.Timeout[] = [];

  /** @param isActive true while a run is active */
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
   * Returns the cause of a crash that is reported now: memory (this class has killed the process, or V8 was at its
   * limit), a flood of messages, or null.
   */
  crashCause(): "memory" | "flood" | null {
    const { floods, memory, chromium } = this;
    if (floods === null || memory === null) return null;
    if (floods.causedCrash()) return "flood";
    return Date.now() - Math.max(memory.endedAt, chromium.exhaustedAt()) < CAUSED_WITHIN_MS ? "memory" : null;
  }

  /** True if the browser's own processes, which serve all runs, use so much memory that the browser should be replaced. */
  overgrown(): boolean {
    return this.memory?.overgrown() ?? false;
  }

  stop(): void {
    this.timers.forEach(clearInterval);
  }
}
