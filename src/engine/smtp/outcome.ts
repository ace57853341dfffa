/** Outcome of an attempt to send a message, from the SMTP server's replies and errors. Does not mask secrets in their texts. */
import type SMTPConnection from "nodemailer/lib/smtp-connection";

const DETAIL_MAX_CHARACTERS = 500;

/** Recipient that the server has refused. `permanent` is true if a retry is useless. */
export interface RefusedRecipient {
  address: string;
  permanent: boolean;
  detail: string;
}

export type DeliveryOutcome =
  /** The server has accepted the message for the recipients in `accepted`. */
  | { kind: "taken"; accepted: string[]; refused: RefusedRecipient[]; detail: string }
  /** The server has certainly not accepted the message. `code` is the SMTP code of the server's reply; null without a reply. */
  | {
      kind: "refused";
      /** True if a retry is useless. */
      permanent: boolean;
      /** True if a setting of the app may be the cause: an address to which no connection is possible, TLS, or the credentials. */
      isSettingFault: boolean;
      code: number | null;
      refused: RefusedRecipient[];
      detail: string;
    }
  /** The process had started to send the content, but got no reply. So the server may have accepted the message. */
  | { kind: "unsure"; detail: string }
  /** This process has lost its claim on the message, so it did not send the content. */
  | { kind: "fenced" };

/**
 * Error of nodemailer or of the connection. `forbidden` is true if the service may not connect to the server, so that a retry is useless.
 */
type SmtpError = Error & Partial<SMTPConnection.SMTPError> & { forbidden?: boolean; library?: string; reason?: string };

/** Returns the text as one line of limited length without control characters: PostgreSQL could not store U+0000. */
export const toDeliveryDetail = (text: string): string =>
  text
    .replace(/[\s\p{Cc}]+/gu, " ")
    .trim()
    .slice(0, DETAIL_MAX_CHARACTERS)
    .toWellFormed();

/** Error of OpenSSL if the server answers without TLS. */
const NO_TLS_REASON = "wrong version number";
const NO_TLS_ADVICE = '; for a port that uses STARTTLS, such as 587, set "secure" to false';

/** Returns the reply of the server or the error. An error of OpenSSL becomes its reason, because its message has a path of OpenSSL's code. */
function describeError({ response, message, library, reason }: SmtpError): string {
  if (response !== undefined || library === undefined || reason === undefined)
    return toDeliveryDetail(response ?? message);
  return toDeliveryDetail(`the TLS connection failed (${reason})${reason === NO_TLS_REASON ? NO_TLS_ADVICE : ""}`);
}

const isPermanent = ({ responseCode = 0 }: SmtpError): boolean => responseCode >= 500 && responseCode !== 503;

function listRefusedRecipients(errors: readonly SmtpError[] = []): RefusedRecipient[] {
  return errors.flatMap((error) => {
    const { recipient, response, message } = error;
    return recipient
      ? [{ address: recipient, permanent: isPermanent(error), detail: toDeliveryDetail(response ?? message) }]
      : [];
  });
}

export function createDeliverySuccessOutcome(info: SMTPConnection.SentMessageInfo): DeliveryOutcome {
  const { accepted, rejectedErrors, response } = info;
  return {
    kind: "taken",
    accepted: [...accepted],
    refused: listRefusedRecipients(rejectedErrors),
    detail: toDeliveryDetail(response),
  };
}

/** Error codes of nodemailer for a fault in the message itself. The message was not sent. */
const MESSAGE_FAULT_CODES = ["EENVELOPE", "EMESSAGE"];

/** Returns the outcome of a failed attempt. @param contentStarted true if the process had started to send the content */
export function createDeliveryErrorOutcome(error: SmtpError, contentStarted: boolean): DeliveryOutcome {
  const { responseCode = null, code = "", rejectedErrors, forbidden } = error;
  const detail = describeError(error);
  if (responseCode === null && contentStarted) return { kind: "unsure", detail };
  const refused = listRefusedRecipients(rejectedErrors);
  if (forbidden !== undefined)
    return { kind: "refused", permanent: forbidden, isSettingFault: true, code: null, refused, detail };
  const isSettingFault = code === "EAUTH" || code === "ETLS";
  const permanent = responseCode === null ? MESSAGE_FAULT_CODES.includes(code) || code === "EAUTH" : isPermanent(error);
  return { kind: "refused", permanent, isSettingFault, code: responseCode, refused, detail };
}
