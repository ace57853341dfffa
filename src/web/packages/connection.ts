/** Finds the client library's connection for packages. The lookup happens at each call, because svc.js may load after the package. */
import type { PackageConnection } from "../runtime/package-connection.js";

/** The same key as in package-connection.ts. Importing that file would add the library to each package. */
const CONNECTION_KEY = Symbol.for("svc.connection");

/** @throws Error if the page has not loaded svc.js */
export function getConnection(): PackageConnection {
  const { Svc } = globalThis as unknown as { Svc?: Record<symbol, PackageConnection | undefined> };
  const foundConnection = Svc?.[CONNECTION_KEY];
  if (foundConnection) return foundConnection;
  throw new Error("this package needs svc.js, which the page has not loaded");
}
