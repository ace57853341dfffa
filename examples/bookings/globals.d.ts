/** Types of the globals that an action's code has in its page or in the run's own browser, besides those of the browser. */
import type { DataSources } from "../../src/web/runtime/data-source-types.js";
import type { Communicate } from "../../src/web/runtime/message-types.js";
import type { Client, Session } from "../../src/web/runtime/public-types.js";

declare global {
  const Svc: Client & { DataSources: DataSources; Session: Session; Communicate: Communicate };
}
