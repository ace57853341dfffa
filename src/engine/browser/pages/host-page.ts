/** The page around the worker thread of an isolate. Its document belongs to the service, and its policy allows no resources. */
import type { Protocol } from "puppeteer";
import { answerDocument, callHarness, installHarness, navigate } from "./fresh-document.js";
import type { SandboxOptions } from "./sandbox.js";

const policy = (more: string) => ({
  name: "Content-Security-Policy",
  value: `default-src 'none'; script-src 'unsafe-eval'; ${more}`,
});
export const SILENT_POLICY = policy("worker-src data:");
/** Allows no WebSockets: they would bypass the request guard. */
export const NETWORK_POLICY = policy("worker-src blob:; connect-src http: https: data: blob:");

/** An ended worker holds 40 to 100 KB of memory until the page collects its garbage, which it does late. */
const COLLECT_EVERY_RUNS = 50;

export class HostPage {
  private harnessId = "";
  private runs = 0;

  constructor(
    private readonly options: Pick<SandboxOptions, "session" | "origin">,
    private readonly harness: string,
  ) {}

  /** Navigates the page to its document with this policy, and installs the harness. */
  async open(header: Protocol.Fetch.HeaderEntry): Promise<void> {
    const { session, origin } = this.options;
    const answer = ({ requestId }: Protocol.Fetch.RequestPausedEvent) => answerDocument(session, requestId, [header]);
    session.on("Fetch.requestPaused", answer);
    await session.send("Fetch.enable", { patterns: [{ urlPattern: `${origin}/` }] });
    const { loaded } = await navigate(session, `${origin}/`);
    [this.harnessId] = await Promise.all([installHarness(session, this.harness), loaded]);
    // While it is enabled, each worker and each request starts more slowly, whatever the pattern.
    await session.send("Fetch.disable");
    session.off("Fetch.requestPaused", answer);
  }

  /** Calls a method of the harness. */
  call(method: string, ...values: readonly unknown[]): Promise<unknown> {
    return callHarness(this.options.session, this.harnessId, method, values);
  }

  /** Collects the garbage of the page after every 50th run. */
  async collect(): Promise<void> {
    this.runs += 1;
    if (this.runs % COLLECT_EVERY_RUNS === 0) await this.options.session.send("HeapProfiler.collectGarbage");
  }
}
