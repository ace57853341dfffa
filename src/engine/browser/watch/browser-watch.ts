/**
 * Watches a browser. Ends it if it has lost a process that all pages need, or does not respond. For a local browser with active runs, also
 * measures the memory and CPU time of its processes, and stops floods.
 */

import { setTimeout as delay } from "node:timers/promises";
import type { Protocol } from "puppeteer";
import { runInBackground } from "../../../background.js";
import type { Chromium } from "../browser-source.js";
import { findZygotePids, readProcessSandboxStates } from "../processes/sandbox-proof.js";
import { FloodWatch } from "./floods.js";
import { MemoryWatch } from "./memory.js";
import { RendererPriorities } from "./priorities.js";
import { hasProcessEnded, listBrowserProcesses, measureProcesses } from "./processes.js";

export const FAILED_LAUNCH_STATUS = "failed to launch";
/** The watch ends the browser after this many failed starts of renderers within LAUNCH_FAILURES_WITHIN_MS. One failure may be chance. */
const LAUNCH_FAILURES_MAX = 2;
const LAUNCH_FAILURES_WITHIN_MS = 5_000;
export const PROCESS_CHECK_INTERVAL_MS = 250;
/** After this many checks in a row with pages but without renderers, the zygote (the process that starts renderers) counts as dead. */
const CHECKS_WITHOUT_RENDERER_MAX = 6;
/** A local browser is ended if it does not respond for this time. Counts checks, because a clock would include delays of this process. */
const HUNG_AFTER_MS = 5_000;
/** Replaces HUNG_AFTER_MS for a remote browser. */
const REMOTE_HUNG_AFTER_MS = 15_000;
/** Replaces HUNG_AFTER_MS for a browser that gets too little CPU time because the machine is overloaded. */
const STARVED_AFTER_MS = 60_000;
const ANSWER_INTERVAL_MS = 100;
const MEASURE_INTERVAL_MS = 50;
/** The watch measures only if a run is still active after this time, because a measurement delays the end of a short run. */
const MEASURE_AFTER_RUN_MS = 10;
/** The cause of a crash is `memory` if the crash follows a kill or a full V8 heap within this time. */
const KILL_EFFECT_MS = 5_000;

/** Calls `check` every `ms` milliseconds. While a check is active, calls `onLate` instead. Ignores errors: the browser may have ended. */
function repeatCheck(ms: number, check: () => Promise<void>, onLate = (_lateMs: number) => {}): NodeJS.Timeout {
  let lateMs: number | null = null;
  return setInterval(() => {
    if (lateMs !== null) {
      lateMs += ms;
      return onLate(lateMs);
    }
    lateMs = 0;
    check()
      .catch(() => {})
      .finally(() => {
        lateMs = null;
      });
  }, ms);
}

export async function isStillActiveAfterDelay(isActive: () => boolean): Promise<boolean> {
  if (!isActive()) return false;
  await delay(MEASURE_AFTER_RUN_MS);
  return isActive();
}

interface BrowserWatchOptions {
  chromium: Chromium;
  /** True if a run is active. */
  isActive: () => boolean;
  /** True if the browser has a page, or is opening one. Crashed pages do not count. */
  hasPages: () => boolean;
  /** Called once, before the browser is ended. */
  onBroken: () => void;
}

export class BrowserWatch {
  private readonly floodWatch: FloodWatch | null = null;
  private readonly memoryWatch: MemoryWatch | null = null;
  private readonly timers: NodeJS.Timeout[];
  private readonly zygotePids: readonly number[];
  private launchFailureTimes: number[] = [];
  private checksWithoutRenderer = 0;
  private networkServicePid: number | undefined;
  private isStopped = false;

  constructor(private readonly options: BrowserWatchOptions) {
    const { chromium, isActive } = options;
    const { pid: group } = chromium;
    chromium.connection.on("Target.targetCrashed", this.onCrash);
    const endIfRemoteHangs = (lateMs: number) => {
      if (group === null && lateMs >= REMOTE_HUNG_AFTER_MS) this.endBrowser();
    };
    this.timers = [repeatCheck(PROCESS_CHECK_INTERVAL_MS, () => this.checkProcesses(), endIfRemoteHangs)];
    this.zygotePids = group === null ? [] : findZygotePids(readProcessSandboxStates(group));
    // The processes of a remote browser are on another machine.
    if (group === null) return;
    const floods = new FloodWatch(chromium.connection, group);
    const memory = new MemoryWatch(group, () => chromium.stop());
    const priorities = new RendererPriorities();
    this.floodWatch = floods;
    this.memoryWatch = memory;
    // Lists the processes at once, so that the flood watch can measure a browser that does not answer during its first run.
    this.checkProcesses().catch(() => {});
    this.timers.push(
      repeatCheck(
        ANSWER_INTERVAL_MS,
        async () => {
          if (await isStillActiveAfterDelay(isActive)) await floods.sendTestRequest();
        },
        (lateMs) => {
          floods.onLateAnswer();
          if (lateMs < HUNG_AFTER_MS || (lateMs < STARVED_AFTER_MS && floods.isBrowserStarved())) return;
          this.endBrowser();
        },
      ),
      repeatCheck(MEASURE_INTERVAL_MS, async () => {
        if (!(await isStillActiveAfterDelay(isActive))) return;
        const processes = measureProcesses(floods.processes, group);
        priorities.update(processes.filter(({ isRenderer }) => isRenderer));
        await memory.check(processes);
      }),
    );
  }

  /** Cause of a page's crash: `memory` (memory limit or full V8 heap), `flood` (a renderer blocked the browser), or null (unknown). */
  getCrashCause(): "memory" | "flood" | null {
    const { floodWatch, memoryWatch } = this;
    if (floodWatch === null || memoryWatch === null) return null;
    if (floodWatch.hasCausedCrash()) return "flood";
    const lastFullAt = Math.max(memoryWatch.lastKillAt, this.options.chromium.getHeapFullTime());
    return Date.now() - lastFullAt < KILL_EFFECT_MS ? "memory" : null;
  }

  /** True if the shared processes (all except renderers) use so much memory that the browser should be replaced. */
  usesTooMuchMemory(): boolean {
    return this.memoryWatch?.usesTooMuchMemory() ?? false;
  }

  stop(): void {
    this.isStopped = true;
    this.timers.forEach(clearInterval);
    this.options.chromium.connection.off("Target.targetCrashed", this.onCrash);
  }

  private endBrowser(): void {
    if (this.isStopped) return;
    this.stop();
    this.options.onBroken();
    runInBackground(this.options.chromium.stop());
  }

  private readonly onCrash = ({ status }: Protocol.Target.TargetCrashedEvent): void => {
    if (status !== FAILED_LAUNCH_STATUS) return;
    const now = performance.now();
    this.launchFailureTimes = [...this.launchFailureTimes, now].filter((at) => now - at < LAUNCH_FAILURES_WITHIN_MS);
    if (this.launchFailureTimes.length >= LAUNCH_FAILURES_MAX) this.endBrowser();
  };

  /**
   * Ends a browser whose zygote has ended: the browser can start no renderers, and does not report when they end. Also ends a browser whose
   * network service has ended: its open contexts have lost their proxies, so all their requests fail.
   */
  private async checkProcesses(): Promise<void> {
    const { chromium, hasPages } = this.options;
    if (this.zygotePids.some((pid) => hasProcessEnded(pid))) return this.endBrowser();
    const processes = await listBrowserProcesses(chromium.connection);
    if (this.floodWatch !== null) this.floodWatch.processes = processes;
    // Calls `hasPages` after the browser's response, because a page that closed during the check needs no renderer.
    const hasNeededRenderer = !hasPages() || processes.some(({ isRenderer }) => isRenderer);
    this.checksWithoutRenderer = hasNeededRenderer ? 0 : this.checksWithoutRenderer + 1;
    if (this.checksWithoutRenderer >= CHECKS_WITHOUT_RENDERER_MAX) this.endBrowser();
    const { networkServicePid } = this;
    this.networkServicePid = processes.find(({ isNetworkService }) => isNetworkService)?.pid;
    if (networkServicePid !== undefined && networkServicePid !== this.networkServicePid) this.endBrowser();
  }
}
