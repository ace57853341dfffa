/**
 * Ends a browser that can start no renderer, so that it is replaced: its zygote process has died, or the machine refuses new processes. Reads
 * what the browser itself reports, so that it works for a remote browser too.
 */
import type { Protocol } from "puppeteer";
import { runInBackground } from "../../../background.js";
import type { Chromium } from "../browser-source.js";
import { listProcesses } from "./processes.js";

/** Chromium's status of a target whose renderer could not be started. */
export const FAILED_TO_LAUNCH = "failed to launch";
/** One failed launch may be a short lack of memory; this many within this time are not. */
const FAILURES_MAX = 2;
const FAILURES_WITHIN_MS = 5_000;
/**
 * The zygote is the init process of its renderers' namespace: the kernel ends them with it, and the browser reports no crash of their pages.
 * A browser that has pages but no renderer at this many checks in a row has lost its zygote. Checks are counted, not time: a machine that pauses
 * makes one answer late.
 */
const CHECKS_WITHOUT_RENDERER_MAX = 6;
const CHECK_INTERVAL_MS = 250;

export interface LaunchWatch {
  stop(): void;
}

/**
 * @param hasPages returns true while a page is open, or being opened, that has not crashed
 * @param onBroken called once, before the browser is ended
 */
export function watchLaunches(
  { connection, stop }: Chromium,
  hasPages: () => boolean,
  onBroken: () => void,
): LaunchWatch {
  let failures: number[] = [];
  /** Number of checks since the last one that found a renderer, or no page that needs one. */
  let checksWithoutRenderer = 0;
  let isChecking = false;
  let isOver = false;

  function replace(): void {
    if (isOver) return;
    end();
    onBroken();
    runInBackground(stop());
  }

  function onCrash({ status }: Protocol.Target.TargetCrashedEvent): void {
    if (status !== FAILED_TO_LAUNCH) return;
    const now = performance.now();
    failures = [...failures.filter((at) => now - at < FAILURES_WITHIN_MS), now];
    if (failures.length >= FAILURES_MAX) replace();
  }

  async function check(): Promise<void> {
    if (isChecking) return;
    isChecking = true;
    try {
      const processes = await listProcesses(connection, 0);
      // After the answer: a page that has closed meanwhile needs no renderer.
      const isIntact = !hasPages() || processes.some(({ renderer }) => renderer);
      checksWithoutRenderer = isIntact ? 0 : checksWithoutRenderer + 1;
      if (checksWithoutRenderer >= CHECKS_WITHOUT_RENDERER_MAX) replace();
    } catch {
      // The browser is about to end.
    } finally {
      isChecking = false;
    }
  }

  function end(): void {
    isOver = true;
    clearInterval(timer);
    connection.off("Target.targetCrashed", onCrash);
  }

  connection.on("Target.targetCrashed", onCrash);
  const timer = setInterval(() => runInBackground(check()), CHECK_INTERVAL_MS);
  return { stop: end };
}
