/** What packages use of the library, which they find on `window.Svc` under a key: calls as the page's caller, and no way to the token. */
import type { Connection } from "./connection.js";
import type { Socket } from "./socket.js";

export const CONNECTION = Symbol.for("svc.connection");

export interface PackageConnection extends Pick<Connection, "appId" | "request" | "lines" | "exchange"> {
  follow: Socket["follow"];
  /** The page's user is another from now on. */
  forgetSession(): void;
}
