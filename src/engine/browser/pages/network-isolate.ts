/** Mode `network-isolate`: each run gets a ShadowRealm on the worker thread of a page that has the app's origin and can send requests. */
import type { CDPSession } from "puppeteer";
import { runInBackground } from "../../../background.js";
import { PageNetwork } from "../network/page-network.js";
import { ServiceCalls } from "../network/service-calls.js";
import { NO_SERVICE_BASE_URL, type PageRunOutcome, type PageRunRequest } from "../run.js";
import { NEEDS_OTHER_MODE_ANSWER } from "./answer.js";
import { NETWORK_ISOLATE_HARNESS_SCRIPTS } from "./harness.js";
import { Isolate, type IsolateKind } from "./isolate.js";
import { splitFirstWord } from "./long-text.js";
import type { SandboxOptions } from "./sandbox.js";

const NETWORK_KIND: IsolateKind = {
  harnessScripts: NETWORK_ISOLATE_HARNESS_SCRIPTS,
  // WebSockets are not allowed, because they would bypass the check of URLs.
  policy: "worker-src blob:; connect-src http: https: data: blob:",
  // Low, because a large heap makes garbage collections likely, which can crash a page while code runs (chromium-flags.ts).
  workerMaxBytes: 16 * 1024 * 1024,
};

/** NO_SERVICE_BASE_URL if the run can send requests only to other services, "" if it can send no requests. */
const getServiceBase = ({ service, outgoing }: PageRunRequest): string =>
  service?.base ?? (outgoing ? NO_SERVICE_BASE_URL : "");

export class NetworkIsolate extends Isolate {
  private readonly network: PageNetwork;
  private readonly serviceCalls: ServiceCalls;
  /** Number of `fetch` calls of the last run; null if it is unknown. */
  private fetchCount: number | null = 0;

  constructor(options: SandboxOptions) {
    super(options, NETWORK_KIND);
    // There are no events of WebSockets to wait for, because the Content-Security-Policy forbids WebSockets.
    this.network = new PageNetwork({ ...options, waitForSentEvents: async () => {} });
    this.serviceCalls = new ServiceCalls(this.network.admitRequest, (...part) => this.callWorker("answer", ...part));
  }

  override async prepare(): Promise<void> {
    const { session } = this.options;
    await this.openPage();
    session.on("Fetch.requestPaused", (event) => this.network.continueOrBlock(session, event));
    await this.replaceThread();
  }

  override async reset(): Promise<boolean> {
    const { network } = this;
    if (this.fetchCount === null) return false;
    if (!network.requests.haveAllEnded(this.fetchCount)) {
      await this.waitForSentEvents();
      await network.requests.waitUntilAllEnded();
    }
    await Promise.all([super.reset(), network.clearCachesAndCookies()]);
    return !network.hasLateRequest();
  }

  override async execute(request: PageRunRequest): Promise<unknown> {
    this.fetchCount = null;
    // If this call has enabled the check of URLs, the thread is replaced: requests of earlier threads may not be checked.
    if (await this.network.beginRun(request)) await this.replaceThread();
    this.serviceCalls.beginRun(request);
    const answer = await this.evaluate(request, getServiceBase(request));
    if (answer === undefined) return answer;
    if (answer === NEEDS_OTHER_MODE_ANSWER) {
      this.fetchCount = 0;
      return answer;
    }
    const [fetches, rest] = splitFirstWord(answer);
    this.fetchCount = Number(fetches);
    return rest;
  }

  override endRun(): void {
    this.serviceCalls.endRun();
    super.endRun();
  }

  override async explainFailure(outcome: PageRunOutcome): Promise<PageRunOutcome> {
    const { requests } = this.network;
    // Events about requests come from other threads of the browser, so they may arrive after the run's answer.
    if (requests.isPending(outcome)) await this.waitForSentEvents().catch(() => {});
    return requests.explainFailure(outcome);
  }

  override stop(): void {
    this.serviceCalls.endRun();
    super.stop();
  }

  protected override watchWorker(worker: CDPSession): Promise<unknown> {
    return this.network.watch(worker);
  }

  protected override onServiceCall(payload: string): void {
    this.options.onServiceRequest();
    runInBackground(this.serviceCalls.receiveMessage(payload));
  }
}
