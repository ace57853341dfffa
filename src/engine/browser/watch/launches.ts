/** Ends a browser that cannot start renderers. Uses only reports of the browser, so that it also works for a remote browser. */
import type { Protocol } from "puppeteer";
import { runInBackground } from "../../../background.js";
import type { Chromium } from "../browser-source.js";
import { repeatCheck } from "./browser-watch.js";
import { listBrowserProcesses } from "./processes.js";

export const FAILED_LAUNCH_STATUS = "failed to launch";
/** The browser is ended after this many failed starts of renderers within FAILURES_WITHIN_MS. A single failure may be chance. */
const FAILURES_MAX = 2;
const FAILURES_WITHIN_MS = 5_000;
/** After this many checks in a row with pages but without renderers, the zygote (the process that starts renderers) counts as dead. */
const CHECKS_WITHOUT_RENDERER_MAX = 6;
export const LAUNCH_CHECK_INTERVAL_MS = 250;

export class RendererLaunchWatch {
  private failureTimes: number[] = [];
  private checksWithoutRenderer = 0;
  private networkServicePid: number | null = null;
  private isStopped = false;
  private readonly timer = repeatCheck(LAUNCH_CHECK_INTERVAL_MS, () => this.check());

  /** `hasPages` must count opening pages, but not crashed pages. `onBroken` is called once, before the browser is ended. */
  constructor(
    private readonly chromium: Chromium,
    private readonly hasPages: () => boolean,
    private readonly listeners: { onBroken: () => void; onNetworkLost: () => void },
  ) {
    chromium.connection.on("Target.targetCrashed", this.onCrash);
  }

  stop(): void {
    this.isStopped = true;
    clearInterval(this.timer);
    this.chromium.connection.off("Target.targetCrashed", this.onCrash);
  }

  private stopBrowser(): void {
    if (this.isStopped) return;
    this.stop();
    this.listeners.onBroken();
    runInBackground(this.chromium.stop());
  }

  private readonly onCrash = ({ status }: Protocol.Target.TargetCrashedEvent): void => {
    if (status !== FAILED_LAUNCH_STATUS) return;
    const now = performance.now();
    this.failureTimes = [...this.failureTimes.filter((failedAt) => now - failedAt < FAILURES_WITHIN_MS), now];
    if (this.failureTimes.length >= FAILURES_MAX) this.stopBrowser();
  };

  private checkNetworkService(pid: number | undefined): void {
    if (this.isStopped || pid === this.networkServicePid) return;
    if (this.networkServicePid !== null) this.listeners.onNetworkLost();
    this.networkServicePid = pid ?? null;
  }

  private async check(): Promise<void> {
    const processes = await listBrowserProcesses(this.chromium.connection);
    // Calls `hasPages` after the browser's response, because a page that closed during the check needs no renderer.
    const isIntact = !this.hasPages() || processes.some(({ isRenderer }) => isRenderer);
    this.checksWithoutRenderer = isIntact ? 0 : this.checksWithoutRenderer + 1;
    if (this.checksWithoutRenderer >= CHECKS_WITHOUT_RENDERER_MAX) this.stopBrowser();
    this.checkNetworkService(processes.find(({ isNetworkService }) => isNetworkService)?.pid);
  }
}
