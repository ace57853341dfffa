/** Creates the modules that send requests to other services, and connects them. */
import type { Logger } from "pino";
import type { Db } from "../../data/database.js";
import { createAddressCheckedConnections } from "../../engine/checked-connections.js";
import { isPublicAddress } from "../../engine/egress-proxy.js";
import { OutgoingRequestSender } from "../../engine/outgoing.js";
import { selectHostResolver } from "../../engine/public-lookup.js";
import type { SecretScannerCache } from "../../engine/secret-scan.js";
import type { Settings } from "../settings/settings.js";
import { OauthTokens } from "./oauth-tokens.js";
import { RunRequestSender } from "./run-requests.js";
import { SecretBindingTester } from "./secret-binding-tester.js";
import { SecretBindingStore } from "./secret-bindings.js";

const WEB_PORTS: readonly number[] = [80, 443];

interface OutgoingOptions {
  allowPrivateNetwork: boolean;
  egressAddress: string | null;
}

/** Creates the sender of outgoing requests. The sender can connect to the same addresses and ports as the egress proxy of runs. */
export function createOutgoingRequestSender({
  allowPrivateNetwork,
  egressAddress,
}: OutgoingOptions): OutgoingRequestSender {
  const { connect } = createAddressCheckedConnections({
    mayReach: (address) => allowPrivateNetwork || isPublicAddress(address),
    mayUsePort: (port) => allowPrivateNetwork || WEB_PORTS.includes(port),
    resolve: selectHostResolver(allowPrivateNetwork),
    localAddress: egressAddress,
  });
  return new OutgoingRequestSender(connect);
}

export function createOutgoingRequestModules(options: {
  db: Db;
  config: OutgoingOptions;
  settings: Settings;
  scannerCache: SecretScannerCache;
  log: Logger;
}) {
  const { db, config, settings, scannerCache, log } = options;
  const sender = createOutgoingRequestSender(config);
  const tokens = new OauthTokens({ db, settings, sender });
  const { allowPrivateNetwork } = config;
  const bindings = new SecretBindingStore({ db, settings, scannerCache, tokens, allowPrivateNetwork });
  const requests = new RunRequestSender({ sender, bindings: bindings.runBindings, log });
  return {
    requestSender: sender,
    bindings,
    requests,
    bindingTester: new SecretBindingTester({ db, bindings, requests }),
  };
}
