/** Sandbox of the mode `isolate`: a ShadowRealm for each run, on one thread without an origin or a network. */
import type { PageOutcome, PageRun } from "../run.js";
import { NEEDS_MORE } from "./answer.js";
import { ISOLATE_THREAD } from "./harness.js";
import { SILENT_POLICY } from "./host-page.js";
import type { Sandbox, SandboxOptions } from "./sandbox.js";
import { IsolateThread } from "./thread.js";

/** A lower limit replaces the thread after a few runs with a large package, which is then compiled again. */
const HELD_MAX_BYTES = 48 * 1024 * 1024;

export class Isolate implements Sandbox {
  private readonly thread: IsolateThread;

  constructor(options: SandboxOptions) {
    this.thread = new IsolateThread(options, ISOLATE_THREAD, HELD_MAX_BYTES);
  }

  async prepare(): Promise<void> {
    await this.thread.open(SILENT_POLICY);
    await this.thread.replace();
  }

  async reset(): Promise<boolean> {
    await this.thread.reset();
    return true;
  }

  execute(request: PageRun): Promise<unknown> {
    return this.thread.run(request);
  }

  unreadyMs(): number {
    return this.thread.unreadyMs();
  }

  end(): void {
    this.thread.onRunEnd();
  }

  async explain(outcome: PageOutcome): Promise<PageOutcome> {
    return outcome;
  }

  stop(): void {
    this.thread.stop();
  }
}

/** Used in either isolate mode if the browser has no ShadowRealm: every run is repeated in a document. */
export const createMissingIsolate = (): Sandbox => ({
  prepare: async () => {},
  reset: async () => true,
  execute: async () => NEEDS_MORE,
  unreadyMs: () => 0,
  end: () => {},
  explain: async (outcome) => outcome,
  stop: () => {},
});
