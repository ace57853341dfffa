/**
 * Sandbox of the mode `network-isolate`: a ShadowRealm for each run, on one thread at the app's origin. The thread provides `fetch`, timers
 * and the other globals of this mode, and the client library's requests to the service. All that a run has started ends with it.
 */
import { runInBackground } from "../../../background.js";
import { RunRequests } from "../network/run-requests.js";
import { ServiceCalls } from "../network/service-calls.js";
import { NO_SERVICE, type PageOutcome, type PageRun } from "../run.js";
import { NEEDS_MORE } from "./answer.js";
import { NETWORK_ISOLATE_THREAD } from "./harness.js";
import { NETWORK_POLICY } from "./host-page.js";
import type { Sandbox, SandboxOptions } from "./sandbox.js";
import { IsolateThread } from "./thread.js";

/** Address that the library in the run sends requests to; NO_SERVICE if it can only reach other services, "" if it can reach none. */
const baseOf = ({ service, outgoing }: PageRun): string => service?.base ?? (outgoing ? NO_SERVICE : "");

/** Low, since the platform's objects are collected in steps, and the last step ends the page while code of a realm runs (chromium-flags.ts). */
const HELD_MAX_BYTES = 16 * 1024 * 1024;

export class NetworkIsolate implements Sandbox {
  private readonly requests: RunRequests;
  private readonly thread: IsolateThread;
  private readonly calls: ServiceCalls;
  /** Number of `fetch` calls of the last run; null if it is unknown. */
  private fetches: number | null = 0;

  constructor(private readonly options: SandboxOptions) {
    // A worker of this mode opens no WebSocket, so there are no events to wait for.
    this.requests = new RunRequests({ ...options, caughtUp: async () => {} });
    this.thread = new IsolateThread(options, NETWORK_ISOLATE_THREAD, HELD_MAX_BYTES, this.requests.watch, (payload) => {
      options.onAsked();
      runInBackground(this.calls.take(payload));
    });
    this.calls = new ServiceCalls(this.requests.admit, this.thread.answer);
  }

  async prepare(): Promise<void> {
    const { session } = this.options;
    await this.thread.open(NETWORK_POLICY);
    session.on("Fetch.requestPaused", (event) => this.requests.answer(session, event));
    await this.thread.replace();
  }

  async reset(): Promise<boolean> {
    const { requests, thread } = this;
    if (this.fetches === null) return false;
    if (!requests.over(this.fetches)) {
      await thread.caughtUp();
      await requests.settled();
    }
    await Promise.all([thread.reset(), requests.clear()]);
    return !requests.late();
  }

  async execute(request: PageRun): Promise<unknown> {
    this.fetches = null;
    // The existing thread may send requests past a guard that is set up now.
    if (await this.requests.begin(request)) await this.thread.replace();
    this.calls.begin(request);
    const answer = await this.thread.run(request, baseOf(request));
    if (typeof answer !== "string") return answer;
    if (answer === NEEDS_MORE) {
      this.fetches = 0;
      return answer;
    }
    const end = answer.indexOf(" ");
    this.fetches = Number(answer.slice(0, end));
    return answer.slice(end + 1);
  }

  unreadyMs(): number {
    return this.thread.unreadyMs();
  }

  end(): void {
    this.calls.end();
    this.thread.onRunEnd();
  }

  async explain(outcome: PageOutcome): Promise<PageOutcome> {
    // The answer and the events of requests arrive from different threads.
    if (this.requests.isPending(outcome)) await this.thread.caughtUp().catch(() => {});
    return this.requests.explain(outcome);
  }

  stop(): void {
    this.calls.end();
    this.thread.stop();
  }
}
