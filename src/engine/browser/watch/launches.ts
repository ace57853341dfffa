/**
 * Watches whether a browser can start pages. A browser cannot start renderers if its zygote process has died, or if the
 * machine allows no new processes. This class then ends the browser, so that another one replaces it. It also reports
 * the end of the network service. It uses only reports of the browser, so that it also works for a remote browser.
 */
import type { Protocol } from "puppeteer";
import { runInBackground } from "../../../background.js";
import type { Chromium } from "../browser-source.js";
import { listProcesses } from "./processes.js";

/** Status that Chromium reports for a DevTools target (such as a page) whose renderer could not be started. */
export const FAILED_LAUNCH_STATUS = "failed to launch";
/**
 * Number of failed starts of renderers within FAILURES_WITHIN_MS after which the browser is ended. A single failure may
 * happen by chance.
 */
const FAILURES_MAX = 2;
const FAILURES_WITHIN_MS = 5_000;
/**
 * Number of consecutive checks at which a browser has pages but no renderer, after which its zygote counts as dead. When
 * a zygote dies, the kernel ends all its renderers, and the browser reports no crash of their pages. Checks are counted
 * instead of time, because a pause of the machine delays only one response.
 */
const CHECKS_WITHOUT_RENDERER_MAX = 6;
export const LAUNCH_CHECK_INTERVAL_MS = 250;

export class RendererLaunchWatch {
  private failureTimes: number[] = [];
  /** Number of checks in a row at which a page needed a renderer and the browser had none. */
  private checksWithoutRenderer = 0;
  /** Process ID of the browser's network service at the last check; null before the first check. */
  private networkService: number | null = null;
  private isChecking = false;
  private isStopped = false;
  private readonly timer = setInterval(() => runInBackground(this.check()), LAUNCH_CHECK_INTERVAL_MS);

  /**
   * @param hasPages returns true if there is an open or opening page that has not crashed
   * @param on `broken` is called once, before this class ends the browser; `networkLost` when the network service of
   * the browser has ended
   */
  constructor(
    private readonly chromium: Chromium,
    private readonly hasPages: () => boolean,
    private readonly on: { broken: () => void; networkLost: () => void },
  ) {
    chromium.connection.on("Target.targetCrashed", this.onCrash);
  }

  stop(): void {
    this.isStopped = true;
    clearInterval(this.timer);
    this.chromium.connection.off("Target.targetCrashed", this.onCrash);
  }

  private replace(): void {
    if (this.isStopped) return;
    this.stop();
    this.on.broken();
    runInBackground(this.chromium.stop());
  }

  private readonly onCrash = ({ status }: Protocol.Target.TargetCrashedEvent): void => {
    if (status !== FAILED_LAUNCH_STATUS) return;
    const now = performance.now();
    this.failureTimes = [...this.failureTimes.filter((failedAt) => now - failedAt < FAILURES_WITHIN_MS), now];
    if (this.failureTimes.length >= FAILURES_MAX) this.replace();
  };

  private compareNetworkService(pid: number | undefined): void {
    if (this.isStopped || pid === this.networkService) return;
    if (this.networkService !== null) this.on.networkLost();
    this.networkService = pid ?? null;
  }

  private async check(): Promise<void> {
    if (this.isChecking) return;
    this.isChecking = true;
    try {
      const processes = await listProcesses(this.chromium.connection, 0);
      // Calls `hasPages` after the browser's response, because a page that has closed before the response needs no
      // renderer.
      const isIntact = !this.hasPages() || processes.some(({ isRenderer }) => isRenderer);
      this.checksWithoutRenderer = isIntact ? 0 : this.checksWithoutRenderer + 1;
      if (this.checksWithoutRenderer >= CHECKS_WITHOUT_RENDERER_MAX) this.replace();
      this.compareNetworkService(processes.find(({ isNetworkService }) => isNetworkService)?.pid);
    } catch {
      // Ignores errors: the command fails only if the browser has ended.
    } finally {
      this.isChecking = false;
    }
  }
}
