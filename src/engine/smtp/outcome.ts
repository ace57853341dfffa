/** Outcome of an attempt to send a message to an SMTP server, from its replies and errors. Texts of the server are truncated, not masked. */
import type SMTPConnection from "nodemailer/lib/smtp-connection";

const DETAIL_MAX_CHARACTERS = 500;

/** A refused recipient; `permanent`: a retry is useless. */
export interface RefusedRecipient {
  address: string;
  permanent: boolean;
  detail: string;
}

export type Delivery =
  /** The server accepted the message for `accepted`. */
  | { kind: "taken"; accepted: string[]; refused: RefusedRecipient[]; detail: string }
  /** The server certainly has not accepted it. `code` is that of the reply, null without a reply. */
  | {
      kind: "refused";
      /** True if a retry is useless. */
      permanent: boolean;
      /** True if the fault is in the settings of the server: address, TLS or credentials. */
      ours: boolean;
      code: number | null;
      refused: RefusedRecipient[];
      detail: string;
    }
  /** The content was being sent, and there was no reply. */
  | { kind: "unsure"; detail: string }
  /** Another process has taken over the message; nothing was sent. */
  | { kind: "fenced" };

/** `forbidden`: the connection is not allowed, so a retry is useless. */
type SmtpError = Error & Partial<SMTPConnection.SMTPError> & { forbidden?: boolean };

/** One line of a reply. */
export const detailOf = (text: string): string =>
  text.replace(/\s+/g, " ").trim().slice(0, DETAIL_MAX_CHARACTERS).toWellFormed();

const isPermanent = ({ responseCode = 0 }: SmtpError): boolean => responseCode >= 500 && responseCode !== 503;

function refusedOf(errors: readonly SmtpError[] = []): RefusedRecipient[] {
  return errors.flatMap((error) => {
    const { recipient, response, message } = error;
    return recipient
      ? [{ address: recipient, permanent: isPermanent(error), detail: detailOf(response ?? message) }]
      : [];
  });
}

export function outcomeOfSuccess(info: SMTPConnection.SentMessageInfo): Delivery {
  const { accepted, rejectedErrors, response } = info;
  return { kind: "taken", accepted: [...accepted], refused: refusedOf(rejectedErrors), detail: detailOf(response) };
}

/** Nodemailer's codes for faults of the message itself, which was not sent. */
const OWN_FAULTS = ["EENVELOPE", "EMESSAGE"];

/** @param started true if the content was being sent */
export function outcomeOfError(error: SmtpError, started: boolean): Delivery {
  const { responseCode = null, code = "", rejectedErrors, response, message, forbidden } = error;
  const detail = detailOf(response ?? message);
  if (responseCode === null && started) return { kind: "unsure", detail };
  const refused = refusedOf(rejectedErrors);
  if (forbidden !== undefined)
    return { kind: "refused", permanent: forbidden, ours: true, code: null, refused, detail };
  const ours = code === "EAUTH" || code === "ETLS";
  const permanent = responseCode === null ? OWN_FAULTS.includes(code) || code === "EAUTH" : isPermanent(error);
  return { kind: "refused", permanent, ours, code: responseCode, refused, detail };
}
