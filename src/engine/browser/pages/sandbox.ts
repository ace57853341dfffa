/** Executes the code of runs in a page, and removes what each run leaves there. Each sandbox mode has an implementation. */
import type { CDPSession, Connection } from "puppeteer";
import type { ProxyPort } from "../network/proxy-port.js";
import type { PageRunOutcome, PageRunRequest } from "../run.js";
import type { PageLossReason } from "./loss.js";

export interface Sandbox {
  prepare(): Promise<void>;
  /** Removes everything that the last run has left in the page. Returns false if the page must be discarded. */
  reset(): Promise<boolean>;
  /** Returns the answer of the service's script in the page (answer.ts). Rejects if the document or renderer is gone. */
  execute(request: PageRunRequest): Promise<unknown>;
  /** Ends the requests and the output of the run. Called before the outcome of the run is reported. */
  endRun(): void;
  /** Extends the error message of a failed run with reasons that the page does not get, such as a host that the proxy rejected. */
  explainFailure(outcome: PageRunOutcome): Promise<PageRunOutcome>;
}

export interface SandboxOptions {
  connection: Connection;
  session: CDPSession;
  contextId: string;
  targetId: string;
  origin: string;
  proxyPort: ProxyPort | null;
  markLost(loss: PageLossReason): void;
  /** Aborted when the page is lost. */
  lostSignal: AbortSignal;
  /** Called if the run sends a request that does not use the proxy port. */
  onServiceRequest(): void;
  /** Called with each console line, as the JSON of a ConsoleLine. */
  print(payload: string): void;
}
