/**
 * Queues e-mails about an app that the service itself sends, such as alerts. These e-mails use the app's outbox and mail server. Queuing an
 * e-mail here causes no log event and starts no action.
 */
import { randomUUID } from "node:crypto";
import type { SqlClient } from "../../data/database.js";
import { InvalidDestinationError } from "../../rules/message-destination.js";
import type { MessageDestinations } from "./destinations.js";
import type { Outbox } from "./outbox.js";

/** Stores an e-mail in the transaction of `executor`. Without a valid mail server, the e-mail gets the status `kept` and is never sent. */
export type QueueAppEmail = (
  executor: SqlClient,
  appId: number,
  mail: { to: readonly string[]; subject: string; text: string },
) => Promise<{ id: number; status: "kept" | "queued" }>;

export function createAppEmailQueuer(options: {
  outbox: Outbox;
  destinations: MessageDestinations;
  now: () => number;
}): QueueAppEmail {
  const { outbox, destinations, now } = options;

  /** Returns `queued` if a valid mail server is configured, otherwise `kept`. An invalid setting causes no error here. */
  async function selectMessageStatus(executor: SqlClient, appId: number): Promise<"kept" | "queued"> {
    try {
      return (await destinations.findMailServer(appId, executor)) ? "queued" : "kept";
    } catch (error) {
      if (error instanceof InvalidDestinationError) return "kept";
      throw error;
    }
  }

  return async (executor, appId, { to, subject, text }) => {
    const status = await selectMessageStatus(executor, appId);
    const recipients = to.map((address) => ({ address, name: null, type: "to" }));
    const content = { kind: "email", subject, fromName: null, html: null, text, headers: {}, attachments: [] } as const;
    const ids = { reference: randomUUID(), runId: null, personId: null };
    const message = { appId, status, content: { ...content, attachments: [] }, recipients, ...ids };
    const id = await outbox.accept(executor, message, new Date(now()));
    if (status === "queued") await outbox.announce(executor);
    return { id, status };
  };
}
