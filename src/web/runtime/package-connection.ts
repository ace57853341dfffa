/**
 * Functions that the client library provides for its packages, as a property of `window.Svc` under a symbol. Their
 * calls use the page's credential, but packages cannot read the token.
 */
import type { Connection } from "./connection.js";
import type { SubscriptionSocket } from "./socket.js";

export const CONNECTION_KEY = Symbol.for("svc.connection");

export interface PackageConnection extends Pick<Connection, "appId" | "request" | "lines" | "exchange"> {
  follow: SubscriptionSocket["follow"];
  /** Discards the cached session, and assigns the browser's push subscription to the new one. Call this after the page's user changes. */
  forgetSession(): void;
}
