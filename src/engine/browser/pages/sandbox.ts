/** The sandbox in which a page executes the code of one run. It is reset after each run. There is one implementation for each mode. */
import type { CDPSession, Connection } from "puppeteer";
import type { ProxyPort } from "../network/proxy-port.js";
import type { PageOutcome, PageRun } from "../run.js";
import { NEEDS_MORE } from "./answer.js";
import type { Loss } from "./loss.js";

export interface Sandbox {
  /** Sets up the page. Called once, before the first reset. */
  prepare(): Promise<void>;
  /** Removes everything of the last run. @returns false if the page must be discarded instead */
  reset(): Promise<boolean>;
  /** Executes the code of one run. @returns the harness's answer (answer.ts). Rejects if the document or the renderer is gone */
  execute(request: PageRun): Promise<unknown>;
  /** Returns the maximum time until the sandbox is ready, in milliseconds. It does not count towards the time limit of a run. */
  unreadyMs(): number;
  /** Ends the run's requests and output. Returns before the outcome of the run is reported. */
  end(): void;
  /** Adds the reasons to an outcome that only the service knows, such as a refused host. */
  explain(outcome: PageOutcome): Promise<PageOutcome>;
  /** Ends timers and listeners of a page that is lost. */
  stop(): void;
}

export interface SandboxOptions {
  connection: Connection;
  session: CDPSession;
  contextId: string;
  targetId: string;
  /** The origin of the page. No server has it: the service answers its document. */
  origin: string;
  proxyPort: ProxyPort | null;
  /** Ends the use of the page. */
  lose(loss: Loss): void;
  /** Called when the run has sent a request that does not use the proxy port. */
  onServiceRequest(): void;
  /** Receives a console line, as the JSON of a ConsoleLine, from a worker. */
  print(payload: string): void;
}

/** Used in either isolate mode if the browser has no ShadowRealm: every run is repeated in a document. */
export const MISSING_ISOLATE: Sandbox = {
  prepare: async () => {},
  reset: async () => true,
  execute: async () => NEEDS_MORE,
  unreadyMs: () => 0,
  end: () => {},
  explain: async (outcome) => outcome,
  stop: () => {},
};
