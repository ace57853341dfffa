/**
 * Finds the client library's connection to the service. A package searches for the connection at each call, because
 * svc.js may load after the package.
 */
import type { PackageConnection } from "../runtime/package-connection.js";

/** Same symbol as CONNECTION_KEY in package-connection.ts. An import of that file would bundle the library into each package. */
const CONNECTION_KEY = Symbol.for("svc.connection");

/** Returns the client library's connection to the service. @throws Error if the page has not loaded svc.js */
export function getConnection(): PackageConnection {
  const { Svc } = globalThis as unknown as { Svc?: Record<symbol, PackageConnection | undefined> };
  const connection = Svc?.[CONNECTION_KEY];
  if (connection) return connection;
  throw new Error("the page has not loaded svc.js, which this package needs; load /client/svc.js first");
}
