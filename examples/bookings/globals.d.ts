/** What the code of an action finds in its page, or in the run's own browser, beside the browser's own names. */
import type { Communicate } from "../../src/web/runtime/message-types.js";
import type { Client, DataSources, Session } from "../../src/web/runtime/public-types.js";

declare global {
  const Svc: Client & { DataSources: DataSources; Session: Session; Communicate: Communicate };
}
