/** Creates and connects the modules for alerts: rules, evaluation, texts and delivery. */
import type { Logger } from "pino";
import type { Db } from "../../data/database.js";
import { createAddressCheckedConnections } from "../../engine/checked-connections.js";
import { isPublicAddress } from "../../engine/egress-proxy.js";
import { selectHostResolver } from "../../engine/public-lookup.js";
import type { QueueAppEmail } from "../communicate/app-email-queue.js";
import type { Settings } from "../settings/settings.js";
import { AlertDeliverer } from "./alert-delivery.js";
import { AlertRules } from "./alert-rules.js";
import { createAlertSender } from "./alert-sender.js";
import { AlertWatch } from "./alert-watch.js";

const HTTPS_PORT = 443;

export type Alerts = ReturnType<typeof createAlertModules>;

export function createAlertModules(options: {
  db: Db;
  settings: Settings;
  queueAppEmail: QueueAppEmail;
  allowPrivateNetwork: boolean;
  baseUrl: string;
  now: () => number;
  log: Logger;
}) {
  const { db, settings, queueAppEmail, allowPrivateNetwork, baseUrl, now, log } = options;
  const connections = createAddressCheckedConnections({
    mayReach: (address) => allowPrivateNetwork || isPublicAddress(address),
    mayUsePort: (port) => allowPrivateNetwork || port === HTTPS_PORT,
    resolve: selectHostResolver(allowPrivateNetwork),
  });
  const sendAlert = createAlertSender({ queueAppEmail, baseUrl });
  const delivery = new AlertDeliverer({ db, settings, connections, allowHttp: allowPrivateNetwork, log });
  return {
    rules: new AlertRules({ db, delivery, sendAlert: sendAlert, now }),
    watch: new AlertWatch({ db, sendAlert: sendAlert, now, log }),
    delivery,
  };
}
