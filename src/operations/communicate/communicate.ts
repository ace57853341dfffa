/** Creates and connects the modules that send e-mails and text messages: outbox, destinations, sender, delivery reports. */
import type { Logger } from "pino";
import type { Db } from "../../data/database.js";
import { createAddressCheckedConnections } from "../../engine/checked-connections.js";
import { isPublicAddress } from "../../engine/egress-proxy.js";
import { selectHostResolver, systemHostResolver } from "../../engine/public-lookup.js";
import type { SecretScannerCache } from "../../engine/secret-scan.js";
import { createSmtpClient } from "../../engine/smtp.js";
import type { LogEventStore } from "../records/log-events.js";
import type { ReceivedDataLimiter } from "../records/received-data-limiter.js";
import type { Settings } from "../settings/settings.js";
import { createAppEmailQueuer } from "./app-email-queue.js";
import { DeliveryReports } from "./delivery-reports.js";
import { MessageDestinations, type OperatorMailServer } from "./destinations.js";
import { createEmailDelivery } from "./email-delivery.js";
import { Messages } from "./messages.js";
import { Outbox } from "./outbox.js";
import { OutboxWriter } from "./outbox-writer.js";
import { MessageSender } from "./sender.js";
import { createSmsDelivery } from "./sms-delivery.js";

/** Ports to which the service connects on hosts that apps choose, such as mail servers. ALLOW_PRIVATE_NETWORK allows all ports. */
const ALLOWED_MESSAGE_PORTS: readonly number[] = [25, 80, 443, 465, 587, 2525];

export function createMessagingModules(options: {
  db: Db;
  settings: Settings;
  scannerCache: SecretScannerCache;
  logEvents: LogEventStore;
  receivedDataLimiter: ReceivedDataLimiter;
  operatorMail: OperatorMailServer;
  allowPrivateNetwork: boolean;
  /** Public URL of the service, to which providers send delivery reports. */
  baseUrl: string;
  processId: string;
  now: () => number;
  log: Logger;
}) {
  const {
    db,
    settings,
    scannerCache,
    logEvents,
    receivedDataLimiter,
    operatorMail,
    allowPrivateNetwork,
    baseUrl,
    processId,
    now,
    log,
  } = options;
  const outbox = new Outbox(db);
  const destinations = new MessageDestinations({
    settings,
    scannerCache,
    operatorMail,
    allowHttp: allowPrivateNetwork,
  });
  const checkedConnections = createAddressCheckedConnections({
    mayReach: (address) => allowPrivateNetwork || isPublicAddress(address),
    mayUsePort: (port) => allowPrivateNetwork || ALLOWED_MESSAGE_PORTS.includes(port),
    resolve: selectHostResolver(allowPrivateNetwork),
  });
  const uncheckedConnections = createAddressCheckedConnections({ mayReach: () => true, resolve: systemHostResolver });
  const smtp = createSmtpClient();
  const { protocol, hostname } = new URL(baseUrl);
  const createReportUrl = (appId: number) =>
    protocol === "https:" ? `${baseUrl}/v1/apps/${appId}/communicate/events` : null;
  const deliverByKind = {
    email: createEmailDelivery({
      smtp,
      destinations,
      connections: { checked: checkedConnections, unchecked: uncheckedConnections },
      host: hostname,
    }),
    sms: createSmsDelivery({ connections: checkedConnections, destinations, createReportUrl }),
  };
  const outboxWriter = new OutboxWriter({ outbox, destinations, logEvents, receivedDataLimiter, now });
  const sender = new MessageSender({ db, outbox, deliver: deliverByKind, logEvents, processId, now, log });
  return {
    messages: new Messages({ db, outbox, outboxWriter, now }),
    outboxWriter,
    queueAppEmail: createAppEmailQueuer({ outbox, destinations, now }),
    reports: new DeliveryReports({ db, destinations, logEvents }),
    sender,
    /**
     * Releases messages that this process has claimed but is not sending. If `mayDeclareDead` is true, also releases the messages of
     * processes that have stopped.
     */
    async recover(mayDeclareDead: boolean): Promise<void> {
      const count = await outbox.releaseMessages(processId, sender.listIdsInProgress(), mayDeclareDead);
      if (count > 0) log.warn({ count }, "released claimed messages that no running process was sending");
    },
    /** Connections to public addresses only (unless ALLOW_PRIVATE_NETWORK is set), for hosts that apps choose. */
    checked: checkedConnections,
    stop: () => smtp.stop(),
  };
}
