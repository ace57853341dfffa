/** The sandbox in which a page evaluates the code of one run. It is renewed after each run. There is one implementation for each mode. */
import type { CDPSession, Connection } from "puppeteer";
import type { Lane } from "../network/lane.js";
import type { PageOutcome, PageRun } from "../run.js";
import type { Loss } from "./loss.js";

export interface Sandbox {
  /** Called once, before all else. */
  settle(): Promise<void>;
  /** Makes it fresh, or sees that it is or soon will be. @returns false when the page must be thrown away instead */
  renew(): Promise<boolean>;
  /** Evaluates the run's code, once. @returns the harness's answer (answer.ts); rejects when the surroundings went away under the run */
  evaluate(request: PageRun): Promise<unknown>;
  /** For how many milliseconds at most it may not be ready yet: they are no time of a run's. */
  unreadyMs(): number;
  /** The run has its outcome: nothing more is done for it. Returns before anybody hears of that. */
  end(): void;
  /** The outcome with what is known of it from outside. */
  explain(outcome: PageOutcome): Promise<PageOutcome>;
  stop(): void;
}

export interface SandboxOptions {
  connection: Connection;
  session: CDPSession;
  contextId: string;
  targetId: string;
  /** The page's origin, which exists nowhere. */
  origin: string;
  lane: Lane | null;
  /** Ends the page's use. */
  lose(loss: Loss): void;
  /** Told that the run has asked for something past the lane. */
  onAsked(): void;
  /** Takes a console line that comes from elsewhere than the page's own session, as the JSON of a ConsoleLine. */
  print(payload: string): void;
}
