/** Watches a browser while runs are active: measures the memory and CPU time of its processes, and checks that it responds. */

import { setTimeout as delay } from "node:timers/promises";
import type { Chromium } from "../browser-source.js";
import { FloodWatch } from "./floods.js";
import { MemoryWatch } from "./memory.js";
import { RendererPriorities } from "./priorities.js";
import { measureProcesses } from "./processes.js";

const ANSWER_INTERVAL_MS = 100;
const MEASURE_INTERVAL_MS = 100;
const PRIORITY_INTERVAL_MS = 50;
/** The watch measures only if a run is still active after this time, because a measurement delays the end of a short run. */
const MEASURE_AFTER_RUN_MS = 10;
/** The cause of a crash is `memory` if the crash follows a kill or a full V8 heap within this time. */
const KILL_EFFECT_MS = 5_000;

/** Calls `check` every `ms` milliseconds, except while it is active. Ignores its errors, because the browser may have ended. */
export function repeatCheck(ms: number, check: () => Promise<void>): NodeJS.Timeout {
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

export async function isStillActiveAfterDelay(isActive: () => boolean): Promise<boolean> {
  if (!isActive()) return false;
  await delay(MEASURE_AFTER_RUN_MS);
  return isActive();
}

/** Does nothing for a remote browser, whose processes are on another machine, and on systems without /proc. */
export class BrowserWatch {
  private readonly floodWatch: FloodWatch | null = null;
  private readonly memoryWatch: MemoryWatch | null = null;
  private readonly timers: readonly NodeJS.Timeout[] = [];

  constructor(
    private readonly chromium: Chromium,
    isActive: () => boolean,
  ) {
    const { pid: group } = chromium;
    if (group === null) return;
    const floods = new FloodWatch(chromium, group);
    const memory = new MemoryWatch(group, () => chromium.stop());
    const priorities = new RendererPriorities();
    this.floodWatch = floods;
    this.memoryWatch = memory;
    this.timers = [
      repeatCheck(ANSWER_INTERVAL_MS, async () => floods.check(await isStillActiveAfterDelay(isActive))),
      repeatCheck(MEASURE_INTERVAL_MS, async () => {
        if (await isStillActiveAfterDelay(isActive)) await memory.check(measureProcesses(floods.processes, group));
      }),
      repeatCheck(PRIORITY_INTERVAL_MS, async () => {
        if (!(await isStillActiveAfterDelay(isActive))) return;
        const renderers = floods.processes.filter(({ isRenderer }) => isRenderer);
        priorities.update(measureProcesses(renderers, group));
      }),
    ];
  }

  /** Call this method when a page has crashed. `memory`: memory limit, or full V8 heap. `flood`: a renderer blocked the browser. */
  getCrashCause(): "memory" | "flood" | null {
    const { floodWatch, memoryWatch, chromium } = this;
    if (floodWatch === null || memoryWatch === null) return null;
    if (floodWatch.hasCausedCrash()) return "flood";
    return Date.now() - Math.max(memoryWatch.lastKillAt, chromium.getHeapFullTime()) < KILL_EFFECT_MS ? "memory" : null;
  }

  /** True if the shared processes (all except renderers) use so much memory that the browser should be replaced. */
  usesTooMuchMemory(): boolean {
    return this.memoryWatch?.usesTooMuchMemory() ?? false;
  }

  stop(): void {
    this.timers.forEach(clearInterval);
  }
}
