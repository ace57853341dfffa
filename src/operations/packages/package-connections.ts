/** Creates the connections over which the service downloads packages and scripts, and limits the hosts that they can reach. */
import type { Config } from "../../config.js";
import { createAddressCheckedConnections } from "../../engine/checked-connections.js";
import { isPublicAddress } from "../../engine/egress-proxy.js";
import { selectHostResolver } from "../../engine/public-lookup.js";

/** Ports to which the service connects for downloads. With ALLOW_PRIVATE_NETWORK, it can connect to all ports. */
const WEB_PORTS: readonly number[] = [80, 443];

interface PackageConnectionOptions {
  allowPrivateNetwork: boolean;
  egressAddress: string | null;
  npm: Config["npm"];
}

export function createPackageConnections({ allowPrivateNetwork, egressAddress, npm }: PackageConnectionOptions) {
  const { hostname = "", port = "", protocol = "" } = npm ? new URL(npm.url) : {};
  const registryHostAndPort = `${hostname}:${port || (protocol === "https:" ? 443 : 80)}`;
  const sharedOptions = {
    mayReach: (address: string) => allowPrivateNetwork || isPublicAddress(address),
    mayUsePort: (port: number) => allowPrivateNetwork || WEB_PORTS.includes(port),
    resolve: selectHostResolver(allowPrivateNetwork),
    localAddress: egressAddress,
  };
  return {
    scripts: createAddressCheckedConnections(sharedOptions),
    // The registry may be in a private network, because the operator of the service configures its URL.
    npm: createAddressCheckedConnections({ ...sharedOptions, trustedHosts: new Set(npm ? [registryHostAndPort] : []) }),
  };
}
