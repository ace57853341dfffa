/** What a try to hand a message to an SMTP server came to, read from replies and errors. Texts are the server's, bounded; nothing is masked here. */
import type SMTPConnection from "nodemailer/lib/smtp-connection";

const DETAIL_MAX_CHARACTERS = 500;

/** A recipient that the server refused; `permanent`: for good. */
export interface RefusedRecipient {
  address: string;
  permanent: boolean;
  detail: string;
}

export type Delivery =
  /** The server took the message for `accepted`. */
  | { kind: "taken"; accepted: string[]; refused: RefusedRecipient[]; detail: string }
  /** The server certainly has nothing of it. `code` is the reply's, null where none came. */
  | {
      kind: "refused";
      /** Asking again would be in vain. */
      permanent: boolean;
      /** What is wrong is how the service meets the server: its address, TLS, credentials. */
      ours: boolean;
      code: number | null;
      refused: RefusedRecipient[];
      detail: string;
    }
  /** The content was on its way, and no reply came. */
  | { kind: "unsure"; detail: string }
  /** Somebody else holds the message by now; nothing was sent. */
  | { kind: "fenced" };

/** `forbidden`: of a way there that could not be opened, and whether it never will be. */
type SmtpError = Error & Partial<SMTPConnection.SMTPError> & { forbidden?: boolean };

/** One line of what came. */
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

/** Nodemailer's codes for what never left this side: the message itself is what the server would not have. */
const OWN_FAULTS = ["EENVELOPE", "EMESSAGE"];

/** @param begun whether the content was on its way */
export function outcomeOfError(error: SmtpError, begun: boolean): Delivery {
  const { responseCode = null, code = "", rejectedErrors, response, message, forbidden } = error;
  const detail = detailOf(response ?? message);
  if (responseCode === null && begun) return { kind: "unsure", detail };
  const refused = refusedOf(rejectedErrors);
  if (forbidden !== undefined)
    return { kind: "refused", permanent: forbidden, ours: true, code: null, refused, detail };
  const ours = code === "EAUTH" || code === "ETLS";
  const permanent = responseCode === null ? OWN_FAULTS.includes(code) || code === "EAUTH" : isPermanent(error);
  return { kind: "refused", permanent, ours, code: responseCode, refused, detail };
}
