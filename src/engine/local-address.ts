/** Checks if an IP address belongs to this machine. */
import { createServer } from "node:net";

/** True if the address belongs to this machine: a socket can be bound only to these addresses. */
export function isLocalAddress(address: string): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const server = createServer();
  server.once("error", () => resolve(false));
  server.listen(0, address, () => server.close(() => resolve(true)));
  return promise;
}
