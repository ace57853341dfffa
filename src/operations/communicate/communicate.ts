/** Creates the parts that send messages and connects them: outbox, destinations, sender, delivery reports. */
import type { Logger } from "pino";
import type { DataSource } from "typeorm";
import { createCheckedConnections } from "../../engine/checked-connections.js";
import { isPublicAddress } from "../../engine/egress-proxy.js";
import { lookupFor, systemLookup } from "../../engine/public-lookup.js";
import type { SecretScans } from "../../engine/secret-scan.js";
import { createSmtp } from "../../engine/smtp.js";
import type { IntakeLimiter } from "../records/intake.js";
import type { LogEvents } from "../records/log-events.js";
import type { Settings } from "../settings/settings.js";
import { createAcceptance } from "./acceptance.js";
import { createDeliveryReports } from "./delivery-reports.js";
import { createDestinations, type OperatorMail } from "./destinations.js";
import { createEmailDelivery } from "./email-delivery.js";
import { createMessages } from "./messages.js";
import { createNotice } from "./notices.js";
import { createOutbox } from "./outbox.js";
import { createSender } from "./sender.js";
import { createSmsDelivery } from "./sms-delivery.js";

/** Ports on which apps can contact mail servers and providers of text messages. */
const MAIL_PORTS: readonly number[] = [25, 80, 443, 465, 587, 2525];

export type Communicate = ReturnType<typeof createCommunicate>;

export function createCommunicate(options: {
  db: DataSource;
  settings: Settings;
  scans: SecretScans;
  logEvents: LogEvents;
  intake: IntakeLimiter;
  operator: OperatorMail;
  allowPrivateNetwork: boolean;
  /** The service's address for people and providers. */
  baseUrl: string;
  holder: string;
  now: () => number;
  log: Logger;
}) {
  const { db, settings, scans, logEvents, intake, operator, allowPrivateNetwork, baseUrl, holder, now, log } = options;
  const outbox = createOutbox(db);
  const destinations = createDestinations({ settings, scans, operator });
  const checkedConnections = createCheckedConnections({
    mayReach: (address) => allowPrivateNetwork || isPublicAddress(address),
    mayUsePort: (port) => allowPrivateNetwork || MAIL_PORTS.includes(port),
    resolve: lookupFor(allowPrivateNetwork),
  });
  const uncheckedConnections = createCheckedConnections({ mayReach: () => true, resolve: systemLookup });
  const smtp = createSmtp();
  const { protocol, hostname } = new URL(baseUrl);
  const reportUrl = (appId: number) =>
    protocol === "https:" ? `${baseUrl}/v1/apps/${appId}/communicate/events` : null;
  const deliverByKind = {
    email: createEmailDelivery({
      smtp,
      destinations,
      connections: { checked: checkedConnections, unchecked: uncheckedConnections },
      host: hostname,
    }),
    sms: createSmsDelivery({
      connections: checkedConnections,
      destinations,
      allowHttp: allowPrivateNetwork,
      reportUrlOf: reportUrl,
    }),
  };
  const acceptance = createAcceptance({ outbox, destinations, logEvents, intake, now });
  const sender = createSender({ db, outbox, deliver: deliverByKind, logEvents, holder, now, log });
  return {
    messages: createMessages({ db, outbox, acceptance, now }),
    acceptance,
    notice: createNotice({ outbox, destinations, now }),
    reports: createDeliveryReports({ db, destinations, logEvents }),
    sender,
    /**
     * Releases messages for which the response to this process's claim was lost. If `mayDeclareDead` is true, also
     * releases the messages of dead processes.
     */
    async recover(mayDeclareDead: boolean): Promise<void> {
      const count = await outbox.releaseMessages(holder, sender.idsInProgress(), mayDeclareDead);
      if (count > 0) log.warn({ count }, "released messages whose sending process has stopped");
    },
    /** Connections to public addresses only, for other modules that send requests to hosts that apps name. */
    checked: checkedConnections,
    stop: () => smtp.stop(),
  };
}
