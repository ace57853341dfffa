/** What surrounds a run's code in a page, as the page sees it: made fresh for each run. Two kinds of it exist. */
import type { CDPSession } from "puppeteer-core";
import type { Chromium } from "../processes/chromium.js";
import type { Lane } from "../network/lane.js";
import type { Loss } from "./loss.js";
import type { Outcome, PageRun } from "../run.js";

export interface Room {
  /** Called once, before all else. */
  settle(): Promise<void>;
  /** Makes it fresh. @returns false when the page must be thrown away instead */
  renew(): Promise<boolean>;
  /** Runs once. @returns the harness's answer (answer.ts); rejects when the surroundings went away under the run */
  run(request: PageRun): Promise<unknown>;
  /** The outcome with what is known of it from outside. */
  explain(outcome: Outcome): Outcome;
  stop(): void;
}

export interface RoomOptions {
  chromium: Chromium;
  session: CDPSession;
  contextId: string;
  targetId: string;
  /** The page's origin, which exists nowhere. */
  origin: string;
  lane: Lane | null;
  /** Ends the page's use. */
  lose(loss: Loss): void;
  /** Takes a console line that comes from elsewhere than the page's own session, as the JSON of a ConsoleLine. */
  print(payload: string): void;
}
