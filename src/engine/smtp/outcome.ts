/**
 * Derives the outcome of an attempt to send a message from the SMTP server's replies and errors. Texts of the server
 * are truncated but not masked.
 */
import type SMTPConnection from "nodemailer/lib/smtp-connection";

const DETAIL_MAX_CHARACTERS = 500;

/** A recipient that the server has refused. `permanent` means that a retry is useless. */
export interface RefusedRecipient {
  address: string;
  permanent: boolean;
  detail: string;
}

export type Delivery =
  /** The server has accepted the message for the recipients in `accepted`. */
  | { kind: "taken"; accepted: string[]; refused: RefusedRecipient[]; detail: string }
  /** The server has certainly not accepted the message. `code` is the SMTP code of the server's reply; null without a reply. */
  | {
      kind: "refused";
      /** True if a retry is useless. */
      permanent: boolean;
      /** True if the app's settings of the server are the cause: address, TLS or credentials. */
      ours: boolean;
      code: number | null;
      refused: RefusedRecipient[];
      detail: string;
    }
  /** No reply arrived after this process had started to send the content. So the message may have been sent. */
  | { kind: "unsure"; detail: string }
  /** Another process has claimed the message, so that this process sent nothing. */
  | { kind: "fenced" };

/** Error of nodemailer. `forbidden` means that the connection is not allowed, so that a retry is useless. */
type SmtpError = Error & Partial<SMTPConnection.SMTPError> & { forbidden?: boolean };

/** Returns a text of the server as one line of limited length. */
export const detailOf = (text: string): string =>
  text.replace(/\s+/g, " ").trim().slice(0, DETAIL_MAX_CHARACTERS).toWellFormed();

const isPermanent = ({ responseCode = 0 }: SmtpError): boolean => responseCode >= 500 && responseCode !== 503;

function refusedRecipientsOf(errors: readonly SmtpError[] = []): RefusedRecipient[] {
  return errors.flatMap((error) => {
    const { recipient, response, message } = error;
    return recipient
      ? [{ address: recipient, permanent: isPermanent(error), detail: detailOf(response ?? message) }]
      : [];
  });
}

export function outcomeOfSuccess(info: SMTPConnection.SentMessageInfo): Delivery {
  const { accepted, rejectedErrors, response } = info;
  return {
    kind: "taken",
    accepted: [...accepted],
    refused: refusedRecipientsOf(rejectedErrors),
    detail: detailOf(response),
  };
}

/** Codes of nodemailer for faults of the message itself. Such a message was not sent. */
const OWN_FAULTS = ["EENVELOPE", "EMESSAGE"];

/** Returns the outcome of a failed attempt. @param started true if the content was being sent */
export function outcomeOfError(error: SmtpError, started: boolean): Delivery {
  const { responseCode = null, code = "", rejectedErrors, response, message, forbidden } = error;
  const detail = detailOf(response ?? message);
  if (responseCode === null && started) return { kind: "unsure", detail };
  const refused = refusedRecipientsOf(rejectedErrors);
  if (forbidden !== undefined)
    return { kind: "refused", permanent: forbidden, ours: true, code: null, refused, detail };
  const isOurFault = code === "EAUTH" || code === "ETLS";
  const permanent = responseCode === null ? OWN_FAULTS.includes(code) || code === "EAUTH" : isPermanent(error);
  return { kind: "refused", permanent, ours: isOurFault, code: responseCode, refused, detail };
}
