/**
 * Makes one attempt to send a text message: by Twilio's REST API, or by a signed webhook that the app has configured.
 * Does not write to the database.
 */
import { createHmac } from "node:crypto";
import {
  type AddressCheckedConnections,
  type HttpResponse,
  NotConnectedError,
} from "../../engine/checked-connections.js";
import { toDeliveryDetail } from "../../engine/smtp/outcome.js";
import { InvalidDestinationError, type SmsDestination } from "../../rules/message-destination.js";
import type { Sms } from "../../rules/message-input.js";
import { createFailedDeliveryOutcome, type DeliveryAttemptOutcome } from "./attempt-outcome.js";
import type { MessageDestinations } from "./destinations.js";
import type { DeliveryAttemptControl } from "./email-delivery.js";
import type { ClaimedMessage } from "./outbox.js";

const PROVIDER_ID_PATTERN = /^[\x21-\x7e]{1,200}$/;
/** HTTP statuses of a temporary rejection: the provider has not accepted the message, but may accept it later. */
const TEMPORARY_REJECTION_STATUSES = [408, 425, 429, 503];

interface SmsRequest {
  url: URL;
  headers: Record<string, string>;
  body: string;
  /** Field of the provider's JSON response that contains the provider's ID of the message. */
  idField: "sid" | "id";
}

/** Signs the body of a webhook. Returns `t=<Unix seconds>,v1=<hex>`, where the hexadecimal part is the HMAC-SHA256 of `<t>.<body>`. */
export function createBodySignature(secret: string, body: string, seconds: number): string {
  return `t=${seconds},v1=${createHmac("sha256", secret).update(`${seconds}.${body}`).digest("hex")}`;
}

function createTwilioRequest(
  message: ClaimedMessage,
  to: string,
  destination: SmsDestination & { provider: "twilio" },
  callback: string | null,
): SmsRequest {
  const { sid, token, url } = destination;
  const { body, from } = message.content as Omit<Sms, "to">;
  const formBody = new URLSearchParams({ To: to, From: from ?? destination.from, Body: body });
  if (callback !== null) formBody.set("StatusCallback", callback);
  const authorization = `Basic ${Buffer.from(`${sid}:${token}`).toString("base64")}`;
  const headers = { authorization, "content-type": "application/x-www-form-urlencoded" };
  const requestUrl = new URL(url);
  requestUrl.pathname = `${requestUrl.pathname.replace(/\/$/, "")}/2010-04-01/Accounts/${sid}/Messages.json`;
  return { url: requestUrl, headers, body: formBody.toString(), idField: "sid" };
}

function createWebhookRequest(
  message: ClaimedMessage,
  to: string,
  destination: SmsDestination & { provider: "webhook" },
): SmsRequest {
  const { appId, id, reference, content } = message;
  const { body: text, from } = content as Omit<Sms, "to">;
  const body = JSON.stringify({ id, appId, to, from, body: text });
  const signatureText = createBodySignature(destination.secret, body, Math.floor(Date.now() / 1000));
  const headers = { "content-type": "application/json", "svc-signature": signatureText, "idempotency-key": reference };
  return { url: new URL(destination.url), headers, body, idField: "id" };
}

function readProviderId({ body }: HttpResponse, field: SmsRequest["idField"]): string | null {
  try {
    const id = String((JSON.parse(body) as Record<string, unknown>)[field] ?? "");
    return PROVIDER_ID_PATTERN.test(id) ? id : null;
  } catch {
    return null;
  }
}

export function createSmsDelivery(options: {
  connections: AddressCheckedConnections;
  destinations: MessageDestinations;
  /** Returns the URL to which the provider sends delivery reports; null if the service's URL is not an https URL. */
  createReportUrl: (appId: number) => string | null;
}) {
  const { connections, destinations, createReportUrl } = options;

  async function maskDetail(appId: number, text: string): Promise<string> {
    return destinations.maskReply(appId, toDeliveryDetail(text));
  }

  async function toOutcome(
    message: ClaimedMessage,
    response: HttpResponse,
    idField: SmsRequest["idField"],
  ): Promise<DeliveryAttemptOutcome> {
    const { appId, recipients } = message;
    const { status } = response;
    const detail = await maskDetail(appId, `${status} ${response.body}`);
    if (status >= 200 && status < 300) {
      const sent = recipients.map((recipient) => ({ ...recipient, status: "sent" as const }));
      return { kind: "done", status: "sent", recipients: sent, detail, providerId: readProviderId(response, idField) };
    }
    if (TEMPORARY_REJECTION_STATUSES.includes(status)) return { kind: "later", recipients, detail };
    // The provider may have sent the message before it returned the error, so the service does not know whether the message was sent.
    if (status >= 500) return { kind: "done", status: "unknown", recipients, detail };
    return { kind: "done", status: status === 401 || status === 403 ? "failed" : "rejected", recipients, detail };
  }

  return async function deliverSms(
    message: ClaimedMessage,
    { markSending, signal }: DeliveryAttemptControl,
  ): Promise<DeliveryAttemptOutcome> {
    const { appId, recipients, content } = message;
    let destination: SmsDestination | null;
    try {
      destination = await destinations.findSmsProvider(appId);
    } catch (error) {
      if (!(error instanceof InvalidDestinationError)) throw error;
      return createFailedDeliveryOutcome(message, error.message);
    }
    const { provider } = content as Omit<Sms, "to">;
    if (!destination)
      return createFailedDeliveryOutcome(
        message,
        "the app no longer has a provider of text messages; write the setting __sms",
      );
    if (provider !== null && provider !== destination.provider)
      return createFailedDeliveryOutcome(
        message,
        `the message requires the provider ${provider}, but the setting __sms has ${destination.provider}`,
      );
    const to = recipients[0]!.address;
    const { url, headers, body, idField } =
      destination.provider === "twilio"
        ? createTwilioRequest(message, to, destination, createReportUrl(appId))
        : createWebhookRequest(message, to, destination);
    if (!(await markSending())) return { kind: "fenced" };
    let response: HttpResponse;
    try {
      response = await connections.request(url, { method: "POST", headers, body, signal });
    } catch (error) {
      const detail = await maskDetail(appId, (error as Error).message);
      if (!(error instanceof NotConnectedError)) return { kind: "done", status: "unknown", recipients, detail };
      return error.forbidden ? createFailedDeliveryOutcome(message, detail) : { kind: "later", recipients, detail };
    }
    return toOutcome(message, response, idField);
  };
}
