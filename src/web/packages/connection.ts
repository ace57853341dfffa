/** The client library's connection for packages, looked up at each call, because svc.js may load after the package. */
import type { PackageConnection } from "../runtime/package-connection.js";

/** The key as a literal: importing it would add the library to each package. */
const CONNECTION = Symbol.for("svc.connection");

/** @throws Error in a page that has not loaded svc.js */
export function connection(): PackageConnection {
  const { Svc } = globalThis as unknown as { Svc?: Record<symbol, PackageConnection | undefined> };
  const found = Svc?.[CONNECTION];
  if (found) return found;
  throw new Error("this package needs svc.js, which the page has not loaded");
}
