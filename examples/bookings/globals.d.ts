/** Types of the globals that the code of an action can use, in addition to those of the browser. */
import type { DataSources } from "../../src/web/runtime/data-source-types.js";
import type { Communicate } from "../../src/web/runtime/message-types.js";
import type { Client, Session } from "../../src/web/runtime/public-types.js";

declare global {
  const Svc: Client & { DataSources: DataSources; Session: Session; Communicate: Communicate };
}
