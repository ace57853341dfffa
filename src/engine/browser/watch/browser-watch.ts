/**
 * Watches the processes of one browser from outside while runs are under way, and between them: what they hold, whether they still
 * answer, how much they compute, whether they go on without a run. Knows pids, not pages.
 */

import { setTimeout as delay } from "node:timers/promises";
import type { Logger } from "pino";
import { runInBackground } from "../../../background.js";
import type { Chromium } from "../browser-source.js";
import { watchFloods } from "./floods.js";
import { type Idleness, watchIdleness } from "./idleness.js";
import { boundMemory } from "./memory.js";
import { createPriorities } from "./priorities.js";
import { askProcesses, type BrowserProcess, measure, signal } from "./processes.js";

/** How often it is asked whether the browser answers, and how often its processes are measured. */
const ANSWER_INTERVAL_MS = 100;
const MEASURE_INTERVAL_MS = 100;
/** How often it is looked at who computes much: until then its threads are in everybody's way. */
const PRIORITY_INTERVAL_MS = 50;
/** Not asked of a run that is over sooner: it fell between two looks as a rule, and is held up by one for as long as it computes. */
const LASTING_MS = 10;
/** How long after a kill a crash is put down to it. */
const BLAME_MS = 5_000;

export interface BrowserWatch {
  /** What a crash that is reported now comes from: memory, by this watch's kill or V8 at its limit; a flood; or neither. */
  blame(): "memory" | "flood" | null;
  /** Whether the browser's own processes, which serve all runs, have grown so large that it should be replaced. */
  overgrown(): boolean;
  stop(): void;
}

/** Of somebody else's browser, whose process ids may be other processes here. */
const BLIND: BrowserWatch = { blame: () => null, overgrown: () => false, stop: () => {} };

/** Never twice at once. What fails is forgotten: a process went by itself, or the browser is going. */
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

/** Whether a run is under way, and so a moment later, too: the same, or one of many. */
export async function lasts(active: () => boolean): Promise<boolean> {
  if (!active()) return false;
  await delay(LASTING_MS);
  return active();
}

/** One look: what goes on between runs is never what a run does, however short, and nothing is measured in a short one's way. */
export async function lookAt(active: () => boolean, idleness: Idleness, measured: () => Promise<void>): Promise<void> {
  if (!active()) return idleness.look();
  idleness.forget();
  if (await lasts(active)) await measured();
}

/** `active`: a run is under way. Sees nothing where there is no /proc. */
export function watchBrowser(chromium: Chromium, active: () => boolean, log: Logger): BrowserWatch {
  const { pid: group, connection } = chromium;
  if (group === null) return BLIND;
  const floods = watchFloods(chromium, group);
  const memory = boundMemory(group, () => chromium.stop());
  const priorities = createPriorities();
  const idleness = watchIdleness(async () => measure(await askProcesses(connection), group), endLeftover);

  function endLeftover({ pid, renderer }: BrowserProcess): void {
    log.warn(
      { browser: group, browserPid: pid, renderer },
      "a process of the browser went on working after the last run; it is ended",
    );
    if (renderer) signal(pid, "SIGKILL");
    else runInBackground(chromium.stop());
  }

  const measured = async () => memory.look(await measure(floods.processes(), group));

  async function rank(): Promise<void> {
    if (!(await lasts(active))) return;
    const renderers = floods.processes().filter(({ renderer }) => renderer);
    priorities.look(await measure(renderers, group!));
  }

  const timers = [
    every(ANSWER_INTERVAL_MS, async () => floods.look(await lasts(active))),
    every(MEASURE_INTERVAL_MS, () => lookAt(active, idleness, measured)),
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
