/** Starts a host on loopback, and browsers that may connect to it. */
import { once } from "node:events";
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Browsers, BrowsersOptions } from "../../../src/engine/browser/browsers.js";
import { createEgressProxy } from "../../../src/engine/egress-proxy.js";
import { sharedBrowsers } from "./support.js";

export interface ReachableHost {
  browsers: Browsers;
  server: Server;
  port: number;
  /** URL of the host, `http://127.0.0.1:port`. */
  url: string;
  stop(): Promise<void>;
}

export async function reachableHost(
  answer: RequestListener,
  options: Partial<BrowsersOptions> = {},
): Promise<ReachableHost> {
  const server = createServer(answer);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const proxy = createEgressProxy({ allowPrivateNetwork: true });
  const browsers = sharedBrowsers({ openProxyPort: () => proxy.openProxyPort(), ...options });
  await browsers.start();
  return {
    browsers,
    server,
    port,
    url: `http://127.0.0.1:${port}`,
    async stop() {
      await browsers.stop();
      proxy.close();
      server.close();
      server.closeAllConnections();
    },
  };
}
