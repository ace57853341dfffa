/** Creates the connections over which packages and scripts are downloaded, with the rules on the hosts that they may reach. */
import type { Config } from "../../config.js";
import { createCheckedConnections } from "../../engine/checked-connections.js";
import { isPublicAddress } from "../../engine/egress-proxy.js";
import { lookupFor } from "../../engine/public-lookup.js";

/** Ports that connections may use unless ALLOW_PRIVATE_NETWORK is set. */
const WEB_PORTS: readonly number[] = [80, 443];

interface ConnectionOptions {
  allowPrivateNetwork: boolean;
  egressAddress: string | null;
  npm: Config["npm"];
}

/** Returns connections to the npm registry, and to the hosts of scripts that dependencies name by URL. */
export function createPackageConnections({ allowPrivateNetwork, egressAddress, npm }: ConnectionOptions) {
  const { hostname = "", port = "", protocol = "" } = npm ? new URL(npm.url) : {};
  const registry = `${hostname}:${port || (protocol === "https:" ? 443 : 80)}`;
  const shared = {
    mayReach: (address: string) => allowPrivateNetwork || isPublicAddress(address),
    mayUsePort: (port: number) => allowPrivateNetwork || WEB_PORTS.includes(port),
    resolve: lookupFor(allowPrivateNetwork),
    localAddress: egressAddress,
  };
  return {
    scripts: createCheckedConnections(shared),
    // The registry may be in a private network, because the operator configures it.
    npm: createCheckedConnections({ ...shared, trusted: new Set(npm ? [registry] : []) }),
  };
}
