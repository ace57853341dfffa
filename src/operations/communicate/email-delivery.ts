/**
 * Makes one attempt to send an e-mail: composes it, sends it to the mail server of the app or of the operator, and
 * returns the outcome. Does not write to the database.
 */
import { isIP } from "node:net";
import MailComposer from "nodemailer/lib/mail-composer";
import type { AddressCheckedConnections } from "../../engine/checked-connections.js";
import type { DeliveryOutcome, Smtp } from "../../engine/smtp.js";
import { InvalidDestinationError } from "../../rules/message-destination.js";
import type { Email } from "../../rules/message-input.js";
import { createFailedDeliveryOutcome, type DeliveryAttemptOutcome } from "./attempt-outcome.js";
import { getStatusOfAccepted } from "./delivery-status.js";
import type { MailDestination, MessageDestinations } from "./destinations.js";
import type { ClaimedMessage, Recipient } from "./outbox.js";

/**
 * Controls one attempt to send a message. `markSending` marks the message as being sent. If it returns false, this process has lost its
 * lease or its claim on the message, and must not send the message. `signal` aborts the attempt.
 */
export type DeliveryAttemptControl = { markSending: () => Promise<boolean>; signal: AbortSignal };

const selectAddressesOfType = (recipients: readonly Recipient[], type: string) =>
  recipients.filter((recipient) => recipient.type === type).map(({ name, address }) => ({ name: name ?? "", address }));

/** Composes the e-mail. The fields of the message cannot load files or URLs into the e-mail. */
async function composeMail(
  message: ClaimedMessage,
  email: Omit<Email, "to">,
  sender: MailDestination,
  host: string,
): Promise<Buffer> {
  const { recipients, reference, createdAt } = message;
  const { subject, fromName, html, text, headers, attachments } = email;
  const composer = new MailComposer({
    from: { name: fromName ?? sender.fromName ?? "", address: sender.from },
    to: selectAddressesOfType(recipients, "to"),
    cc: selectAddressesOfType(recipients, "cc"),
    subject,
    messageId: `<${reference}@${host}>`,
    date: createdAt,
    headers,
    ...(html !== null && { html }),
    ...(text !== null && { text }),
    attachments: attachments.map(({ name, type, content, encoding }) => ({
      filename: name,
      contentType: type,
      content: Buffer.from(content, encoding),
    })),
    newline: "\r\n",
    disableFileAccess: true,
    disableUrlAccess: true,
  });
  return composer.compile().build();
}

function addDeliveryOutcome(
  recipients: readonly Recipient[],
  delivery: DeliveryOutcome,
  maskedTexts: Map<string, string>,
): Recipient[] {
  const acceptedAddresses = new Set(delivery.kind === "taken" ? delivery.accepted : []);
  const refusedRecipients = new Map(
    "refused" in delivery ? delivery.refused.map((recipient) => [recipient.address, recipient] as const) : [],
  );
  return recipients.map((recipient) => {
    if (recipient.status) return recipient;
    const refusal = refusedRecipients.get(recipient.address);
    if (refusal) {
      const detail = maskedTexts.get(refusal.detail) ?? "";
      return { ...recipient, detail, ...(refusal.permanent && { status: "rejected" as const }) };
    }
    if (acceptedAddresses.has(recipient.address)) return { ...recipient, status: "sent" as const };
    return recipient;
  });
}

function toAttemptOutcome(recipients: Recipient[], delivery: DeliveryOutcome, detail: string): DeliveryAttemptOutcome {
  if (delivery.kind === "fenced") return { kind: "fenced" };
  if (delivery.kind === "unsure") return { kind: "done", status: "unknown", recipients, detail };
  const isPending = recipients.some(({ status }) => !status);
  const acceptedStatus = getStatusOfAccepted(recipients);
  if (delivery.kind === "refused" && delivery.refused.length === 0) {
    if (!delivery.permanent) return { kind: "later", recipients, detail };
    const status = acceptedStatus ?? (delivery.isSettingFault ? "failed" : "rejected");
    return { kind: "done", status, recipients, detail };
  }
  if (isPending) return { kind: "later", recipients, detail };
  return { kind: "done", status: acceptedStatus ?? "rejected", recipients, detail };
}

export function createEmailDelivery(options: {
  smtp: Smtp;
  destinations: MessageDestinations;
  /** `checked` verifies network addresses and ports, for mail servers of apps; `unchecked` connects to the operator's mail server. */
  connections: { checked: AddressCheckedConnections; unchecked: AddressCheckedConnections };
  /** Host name for the header Message-ID. */
  host: string;
}) {
  const { smtp, destinations, connections, host } = options;
  const domain = isIP(host.replace(/[[\]]/g, "")) !== 0 ? `[${host.replace(/[[\]]/g, "")}]` : host;

  /** Makes one attempt to send an e-mail. Failures of the mail server and of the app's setting are in the returned outcome, not thrown. */
  return async function deliverEmail(
    message: ClaimedMessage,
    { markSending, signal }: DeliveryAttemptControl,
  ): Promise<DeliveryAttemptOutcome> {
    const { appId, recipients } = message;
    let destination: MailDestination | null;
    try {
      destination = await destinations.findMailServer(appId);
    } catch (error) {
      if (!(error instanceof InvalidDestinationError)) throw error;
      return createFailedDeliveryOutcome(message, error.message);
    }
    if (!destination)
      return createFailedDeliveryOutcome(message, "the app no longer has a mail server; write the setting __smtp");
    const email = message.content as Omit<Email, "to">;
    const content = await composeMail(message, email, destination, domain);
    const { connect } = destination.isOperatorServer ? connections.unchecked : connections.checked;
    const owner = destination.isOperatorServer ? "operator" : `app ${appId}`;
    const to = recipients.filter(({ status }) => !status).map(({ address }) => address);
    const delivery = await smtp.deliver(
      { ...destination, owner, connect },
      { from: destination.from, to, content, maySendContent: markSending, signal },
    );
    if (delivery.kind === "fenced") return delivery;
    const replyTexts = [
      delivery.detail,
      ...("refused" in delivery ? delivery.refused.map(({ detail }) => detail) : []),
    ];
    const maskedTexts = new Map<string, string>();
    for (const text of new Set(replyTexts)) maskedTexts.set(text, await destinations.maskReply(appId, text));
    return toAttemptOutcome(
      addDeliveryOutcome(recipients, delivery, maskedTexts),
      delivery,
      maskedTexts.get(delivery.detail)!,
    );
  };
}
