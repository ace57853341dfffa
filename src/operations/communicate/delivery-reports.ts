/**
 * Receives delivery reports of e-mail and text message providers. Checks the signature of each request. Stores a report
 * only if it advances the status of its message or of a recipient, or is the first report of a delay.
 */

import { createHmac, timingSafeEqual } from "node:crypto";
import { type Db, rows, type SqlClient } from "../../data/database.js";
import { createTokenBucket } from "../../engine/token-bucket.js";
import { ActionError, createRateLimitError } from "../../errors.js";
import { DELIVERY_REPORTS_PER_ADDRESS_AND_MINUTE, RATE_WINDOW_MS } from "../../limits.js";
import { getAddressBlock } from "../../rules/address-block.js";
import { isObject } from "../../rules/describe-value.js";
import { refuseField } from "../../rules/fields.js";
import { isEmailAddress, isPhoneNumber } from "../../rules/message-fields.js";
import type { LogEventStore } from "../records/log-events.js";
import { isAdvance, STATUS_RANKS } from "./delivery-status.js";
import type { MessageDestinations } from "./destinations.js";
import type { MessageKind, MessageStatus, Recipient } from "./outbox.js";
import { createBodySignature } from "./sms-delivery.js";
import { createMessageEventData, EVENT_TYPE_BY_MESSAGE_STATUS, toMessageEventCause } from "./status-events.js";

/** Request of a provider with delivery reports. `body` is not parsed yet, because the signature covers its exact bytes. */
export interface DeliveryReportRequest {
  address: string;
  body: string;
  /** URL to which the provider sent the request. Twilio's signature covers this URL. */
  url: string;
  signature: string | null;
  twilioSignature: string | null;
}

const MAX_REPORTS_PER_REQUEST = 100;
/** Maximum difference in seconds between the time in a signature and the current time. Twilio's signatures contain no time. */
const SIGNATURE_MAX_AGE_SECONDS = 300;
const DETAIL_MAX_CHARACTERS = 500;

/** Status that a message gets, by the type of its delivery report. `delayed` does not change the status. */
const REPORTED_STATUSES = {
  delivered: "delivered",
  delayed: "delayed",
  bounced: "bounced",
  bounce: "bounced",
  complaint: "complained",
  complained: "complained",
  rejected: "rejected",
} as const;

const REPORT_TYPE_BY_TWILIO_STATUS: Record<string, keyof typeof REPORTED_STATUSES> = {
  delivered: "delivered",
  undelivered: "bounced",
  failed: "rejected",
};

interface DeliveryReport {
  id: number | null;
  providerId: string | null;
  type: keyof typeof REPORTED_STATUSES;
  recipient: string | null;
  detail: string | null;
}

interface ReportedStatus {
  id: number;
  kind: MessageKind;
  status: MessageStatus;
  recipients: Recipient[];
  runId: number | null;
  personId: number | null;
}

function equalsInConstantTime(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)];
  return left.length === right.length && timingSafeEqual(left, right);
}

const createSignatureError = () =>
  new ActionError(
    "UNAUTHORIZED",
    "the signature of the delivery report is missing, not valid or too old; check the clock of the sender, and the field secret in the setting __smtp or __sms",
  );

const createTwilioSignatureError = () =>
  new ActionError(
    "UNAUTHORIZED",
    "the signature of Twilio's delivery report is not valid; check the field token in the setting __sms, and the operator's PUBLIC_URL",
  );

function parseReport(value: unknown, index: number): DeliveryReport {
  const eventPath = `events[${index}]`;
  if (!isObject(value)) refuseField(eventPath, "an object", value);
  const { id = null, providerId = null, type, recipient = null, detail = null } = value;
  if (typeof type !== "string" || !Object.hasOwn(REPORTED_STATUSES, type)) {
    refuseField(`${eventPath}.type`, "one of delivered, delayed, bounced, complaint, rejected", type);
  }
  if (id === null ? typeof providerId !== "string" : !Number.isSafeInteger(id) || (id as number) < 1) {
    refuseField(`${eventPath}.id`, "the ID of a message, unless providerId is set", id);
  }
  const isAddress = typeof recipient === "string" && (isEmailAddress(recipient) || isPhoneNumber(recipient));
  if (recipient !== null && !isAddress) {
    refuseField(`${eventPath}.recipient`, "an e-mail address or a phone number", recipient);
  }
  if (detail !== null && typeof detail !== "string") refuseField(`${eventPath}.detail`, "a text", detail);
  return { id, providerId, type, recipient, detail } as DeliveryReport;
}

function parseReports(body: string): DeliveryReport[] {
  let input: unknown;
  try {
    input = JSON.parse(body);
  } catch {
    throw new ActionError("REQUEST_INVALID", "the body is not valid JSON");
  }
  const list = isObject(input) ? input["events"] : input;
  if (!Array.isArray(list) || list.length > MAX_REPORTS_PER_REQUEST) {
    refuseField("events", `an array of at most ${MAX_REPORTS_PER_REQUEST} events`, list);
  }
  return list.map(parseReport);
}

/** True if the report is about this recipient or names no recipient. Ignores case, because providers write addresses in lower case. */
const isReportedRecipient = ({ recipient }: DeliveryReport, { address }: Recipient): boolean =>
  recipient === null || recipient.toLowerCase() === address.toLowerCase();

/* Selects a message by its ID at this service ($3) or at the provider ($4). */
const SELECT_MESSAGE = `
  SELECT id, kind, status, recipients, run_id AS "runId", person_id AS "personId" FROM message
   WHERE app_id = $1 AND kind = ANY ($2::text[]) AND (id = $3 OR provider_id = $4) FOR UPDATE`;
const UPDATE_MESSAGE_STATUS =
  "UPDATE message SET status = $2, detail = coalesce($3, detail), recipients = $4, updated_at = now() WHERE id = $1";
const MARK_DELAYED = "UPDATE message SET delayed_at = now() WHERE id = $1 AND delayed_at IS NULL RETURNING id";

interface DeliveryReportsOptions {
  db: Db;
  destinations: MessageDestinations;
  logEvents: LogEventStore;
}

export class DeliveryReports {
  private readonly reportBucket = createTokenBucket({
    limit: DELIVERY_REPORTS_PER_ADDRESS_AND_MINUTE,
    windowMs: RATE_WINDOW_MS,
  });

  constructor(private readonly options: DeliveryReportsOptions) {}

  /** Returns the kinds of messages (email, sms) whose secret matches the request's signature. @throws UNAUTHORIZED if no secret matches */
  private async findSignedKinds(
    appId: number,
    { body, signature: input }: DeliveryReportRequest,
  ): Promise<MessageKind[]> {
    const [, seconds = ""] = /^t=(\d{1,12}),v1=[0-9a-f]{64}$/.exec(input ?? "") ?? [];
    if (input === null || Math.abs(Date.now() / 1000 - Number(seconds || Number.NaN)) > SIGNATURE_MAX_AGE_SECONDS)
      throw createSignatureError();
    if (seconds === "") throw createSignatureError();
    const kinds: MessageKind[] = [];
    for (const kind of ["email", "sms"] as const) {
      const secret = await this.options.destinations.readReportSecret(appId, kind, "secret");
      if (secret !== null && equalsInConstantTime(createBodySignature(secret, body, Number(seconds)), input))
        kinds.push(kind);
    }
    if (kinds.length === 0) throw createSignatureError();
    return kinds;
  }

  /** Parses the form that Twilio sends as a delivery report, and checks its signature. @throws UNAUTHORIZED */
  private async parseTwilioReport(
    appId: number,
    { body, url, twilioSignature }: DeliveryReportRequest,
  ): Promise<DeliveryReport[]> {
    const token = await this.options.destinations.readReportSecret(appId, "sms", "token");
    const formFields = [...new URLSearchParams(body)].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
    const signedText = url + formFields.map(([name, value]) => name + value).join("");
    if (
      token === null ||
      !equalsInConstantTime(createHmac("sha1", token).update(signedText).digest("base64"), twilioSignature!)
    )
      throw createTwilioSignatureError();
    const fields = new Map(formFields);
    const type = REPORT_TYPE_BY_TWILIO_STATUS[fields.get("MessageStatus") ?? ""];
    const providerId = fields.get("MessageSid") ?? "";
    const detail = fields.get("ErrorCode") ?? null;
    return type && providerId ? [{ id: null, providerId, type, recipient: null, detail }] : [];
  }

  /** Masks secrets in `detail`. Call this method before the transaction: the scan takes time, and a transaction occupies a connection. */
  private async maskReport(appId: number, report: DeliveryReport): Promise<DeliveryReport> {
    if (report.detail === null) return report;
    const detail = report.detail.slice(0, DETAIL_MAX_CHARACTERS).toWellFormed();
    return { ...report, detail: await this.options.destinations.maskSecrets(appId, detail) };
  }

  private async applyReport(
    executor: SqlClient,
    appId: number,
    kinds: MessageKind[],
    report: DeliveryReport,
  ): Promise<boolean> {
    const [message] = await rows<ReportedStatus>(executor, SELECT_MESSAGE, [
      appId,
      kinds,
      report.id,
      report.providerId,
    ]);
    if (!message) return false;
    const { id, kind, status, recipients } = message;
    const { detail } = report;
    const newStatus = REPORTED_STATUSES[report.type];
    // A queued message has a status for each recipient who needs no further attempt. Reports apply only to these recipients.
    const isQueued = status === "queued";
    if (!isQueued && !(status in STATUS_RANKS)) return false;
    let reportedRecipients = recipients.filter(
      (recipient) => isReportedRecipient(report, recipient) && !(isQueued && !recipient.status),
    );
    if (isQueued && reportedRecipients.length === 0) return false;
    if (newStatus === "delayed") {
      if ((await rows(executor, MARK_DELAYED, [id])).length === 0) return false;
    } else {
      const rank = STATUS_RANKS[newStatus]!;
      const changedRecipients = reportedRecipients.filter((recipient) => isAdvance(rank, recipient.status));
      const changesMessage = !isQueued && isAdvance(rank, status);
      if (!changesMessage && changedRecipients.length === 0) return false;
      const updatedRecipients = recipients.map((recipient) =>
        changedRecipients.includes(recipient) ? { ...recipient, status: newStatus } : recipient,
      );
      await rows(executor, UPDATE_MESSAGE_STATUS, [
        id,
        changesMessage ? newStatus : status,
        changesMessage ? detail : null,
        JSON.stringify(updatedRecipients),
      ]);
      if (changedRecipients.length > 0) reportedRecipients = changedRecipients;
    }
    const type = EVENT_TYPE_BY_MESSAGE_STATUS[newStatus];
    if (kind !== "email" || !type) return true;
    const data = createMessageEventData(id, reportedRecipients, detail);
    await this.options.logEvents.emit(executor, toMessageEventCause(message), appId, { type, data });
    return true;
  }

  /**
   * Stores the delivery reports in a request. `taken` in the result is the number of reports that changed a message.
   * @throws RATE_LIMIT_EXCEEDED if the network address sends too many requests, UNAUTHORIZED, REQUEST_INVALID
   */
  async report(appId: number, request: DeliveryReportRequest): Promise<{ taken: number }> {
    const retryAfter = this.reportBucket.takeTokens(getAddressBlock(request.address));
    if (retryAfter > 0)
      throw createRateLimitError(
        `too many requests with delivery reports from this network address; try again in ${retryAfter} s`,
        retryAfter,
      );
    const isTwilio = request.twilioSignature !== null;
    const kinds: MessageKind[] = isTwilio ? ["sms"] : await this.findSignedKinds(appId, request);
    const reports = isTwilio ? await this.parseTwilioReport(appId, request) : parseReports(request.body);
    let appliedReports = 0;
    for (const report of reports) {
      const maskedReport = await this.maskReport(appId, report);
      const isNew = await this.options.db.transaction((manager) =>
        this.applyReport(manager, appId, kinds, maskedReport),
      );
      appliedReports += isNew ? 1 : 0;
    }
    return { taken: appliedReports };
  }
}
