/** Watches the processes of one browser from outside while runs are active: their memory, processor time, and whether the browser answers. */

import { setTimeout as delay } from "node:timers/promises";
import type { Chromium } from "../browser-source.js";
import { watchFloods } from "./floods.js";
import { boundMemory } from "./memory.js";
import { createPriorities } from "./priorities.js";
import { measure } from "./processes.js";

/** Interval of the checks that the browser answers, and of the measurements of its processes. */
const ANSWER_INTERVAL_MS = 100;
const MEASURE_INTERVAL_MS = 100;
/** Interval at which renderers are ranked by processor time. Until then a busy one delays the others. */
const PRIORITY_INTERVAL_MS = 50;
/** Shorter runs are not measured: a measurement would delay their end. */
const LASTING_MS = 10;
/** Crashes within this time after a kill are attributed to it. */
const BLAME_MS = 5_000;

export interface BrowserWatch {
  /** Cause of a crash that is reported now: memory (a kill by this watch, or V8 at its limit), a flood, or neither. */
  blame(): "memory" | "flood" | null;
  /** True if the browser's own processes, which serve all runs, hold so much memory that the browser should be replaced. */
  overgrown(): boolean;
  stop(): void;
}

/** For a remote browser: its process ids mean nothing here. */
const BLIND: BrowserWatch = { blame: () => null, overgrown: () => false, stop: () => {} };

/** Repeats `look`, never twice at once. Ignores failures: a process ended by itself, or the browser is ending. */
function every(ms: number, look: () => Promise<void>): NodeJS.Timeout {
  let looking = false;
  return setInterval(() => {
    if (looking) return;
    looking = true;
    look()
      .catch(() => {})
      .finally(() => {
        looking = false;
      });
  }, ms);
}

/** True if a run is active now and after a short time, the same one or another. */
export async function lasts(active: () => boolean): Promise<boolean> {
  if (!active()) return false;
  await delay(LASTING_MS);
  return active();
}

/** `active`: true while a run is active. Measures nothing where there is no /proc. */
export function watchBrowser(chromium: Chromium, active: () => boolean): BrowserWatch {
  const { pid: group } = chromium;
  if (group === null) return BLIND;
  const floods = watchFloods(chromium, group);
  const memory = boundMemory(group, () => chromium.stop());
  const priorities = createPriorities();

  async function weigh(): Promise<void> {
    if (await lasts(active)) await memory.look(await measure(floods.processes(), group!));
  }

  async function rank(): Promise<void> {
    if (!(await lasts(active))) return;
    const renderers = floods.processes().filter(({ renderer }) => renderer);
    priorities.look(await measure(renderers, group!));
  }

  const timers = [
    every(ANSWER_INTERVAL_MS, async () => floods.look(await lasts(active))),
    every(MEASURE_INTERVAL_MS, weigh),
    every(PRIORITY_INTERVAL_MS, rank),
  ];

  return {
    blame() {
      if (floods.toBlame()) return "flood";
      return Date.now() - Math.max(memory.endedAt(), chromium.exhaustedAt()) < BLAME_MS ? "memory" : null;
    },
    overgrown: memory.overgrown,
    stop: () => timers.forEach(clearInterval),
  };
}
