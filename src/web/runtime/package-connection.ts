/**
 * The part of the library that packages use, which they find on `window.Svc` under a key: calls as the page's caller, without access to the
 * token.
 */
import type { Connection } from "./connection.js";
import type { Socket } from "./socket.js";

export const CONNECTION = Symbol.for("svc.connection");

export interface PackageConnection extends Pick<Connection, "appId" | "request" | "lines" | "exchange"> {
  follow: Socket["follow"];
  /** The page's user changes now. */
  forgetSession(): void;
}
