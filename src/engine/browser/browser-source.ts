/** Where browsers come from, as the one who keeps them present sees it. Knows neither processes nor sockets. */
import type { Chromium } from "./processes/chromium.js";

export interface BrowserSource {
  /** As logs name it. */
  readonly name: string;
  /** The longest wait between two attempts to open one. */
  readonly retryMaxMs: number;
  open(): Promise<Chromium>;
  /** What the log is told of one that is open and has pages. @throws StartError when it may not serve */
  inspect(chromium: Chromium): Promise<object>;
  /** The failure of an attempt in words that may be logged and told. */
  fault(error: Error): Error;
}
