/**
 * Interface of a sandbox, in which a page executes the code of one run and which is reset after each run. Each mode has
 * its own implementation.
 */
import type { CDPSession, Connection } from "puppeteer";
import type { ProxyPort } from "../network/proxy-port.js";
import type { PageOutcome, PageRun } from "../run.js";
import { NEEDS_MORE } from "./answer.js";
import type { PageLoss } from "./loss.js";

export interface Sandbox {
  /** Sets up the page. Called once, before the first reset. */
  prepare(): Promise<void>;
  /** Removes everything that the last run has left. @returns false if the page must be discarded instead */
  reset(): Promise<boolean>;
  /** Executes the code of one run. @returns the harness's answer (answer.ts). Rejects if the document or the renderer is gone */
  execute(request: PageRun): Promise<unknown>;
  /** Returns the maximum milliseconds until the sandbox is ready. They do not count towards the time limit of a run. */
  unreadyMs(): number;
  /** Ends the run's requests and output. Returns before the outcome of the run is reported. */
  end(): void;
  /** Adds reasons that only the service knows to an outcome, such as a refused host. */
  explain(outcome: PageOutcome): Promise<PageOutcome>;
  /** Ends timers and listeners of a page that is lost. */
  stop(): void;
}

export interface SandboxOptions {
  connection: Connection;
  session: CDPSession;
  contextId: string;
  targetId: string;
  /** The origin of the page. No server has it, because the service answers the request for the document. */
  origin: string;
  proxyPort: ProxyPort | null;
  /** Ends the use of the page. */
  lose(loss: PageLoss): void;
  /** Called when the run has sent a request that does not use the proxy port. */
  onServiceRequest(): void;
  /** Receives a console line, as the JSON of a ConsoleLine, from a worker. */
  print(payload: string): void;
}

/** Replaces both isolate modes if the browser has no ShadowRealm: each run is then repeated in a document. */
export const MISSING_ISOLATE: Sandbox = {
  prepare: async () => {},
  reset: async () => true,
  execute: async () => NEEDS_MORE,
  unreadyMs: () => 0,
  end: () => {},
  explain: async (outcome) => outcome,
  stop: () => {},
};
