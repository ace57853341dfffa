/**
 * Sends e-mails of the service itself, by the mail server in SMTP_URL: reset links and invitations for people. The
 * folder `communicate` sends the e-mails of apps.
 */
import { createTransport } from "nodemailer";
import type { Logger } from "pino";
import { runInBackground } from "../../background.js";
import type { Config } from "../../config.js";

export interface ServiceEmail {
  to: string;
  subject: string;
  text: string;
}

/** Tries to send an e-mail. If the failure is temporary, tries again in the background. A failure is logged, not thrown. */
export type SendServiceMail = (mail: ServiceEmail) => Promise<void>;

const SMTP_GREETING_TIMEOUT_MS = 20_000;
const SMTP_IDLE_TIMEOUT_MS = 60_000;
/**
 * Delays before further attempts to send an e-mail. All attempts start within the hour for which a reset link is valid. If the process
 * stops, it makes no further attempts.
 */
const RETRY_DELAYS_MS: readonly number[] = [10_000, 60_000, 10 * 60_000];
const LOOPBACK_HOSTS = ["localhost", "127.0.0.1", "::1"];

/**
 * True if another attempt may succeed: the mail server sent no response code, for example because the connection failed, or a temporary
 * error (4xx, such as greylisting).
 */
const isTemporary = (responseCode: number | undefined): boolean => responseCode === undefined || responseCode < 500;

/** Creates the function that sends the service's e-mails. Returns null if no mail server is configured. */
export function createServiceMailer(
  { smtpUrl, mailFrom }: Pick<Config, "smtpUrl" | "mailFrom">,
  log: Pick<Logger, "warn">,
  retryDelaysMs = RETRY_DELAYS_MS,
): SendServiceMail | null {
  if (smtpUrl === null || mailFrom === null) return null;
  const { protocol, hostname, port, username, password } = new URL(smtpUrl);
  const isSecure = protocol === "smtps:";
  const smtpLogin = username ? { user: decodeURIComponent(username), pass: decodeURIComponent(password) } : undefined;
  const transport = createTransport({
    host: hostname,
    port: Number(port) || (isSecure ? 465 : 587),
    secure: isSecure,
    ...(smtpLogin && { auth: smtpLogin }),
    // Requires TLS if SMTP_URL has a password (except on the same host), so that the password is never sent in clear text.
    requireTLS: !isSecure && smtpLogin !== undefined && !LOOPBACK_HOSTS.includes(hostname),
    ignoreTLS: !isSecure && LOOPBACK_HOSTS.includes(hostname),
    connectionTimeout: SMTP_GREETING_TIMEOUT_MS,
    greetingTimeout: SMTP_GREETING_TIMEOUT_MS,
    socketTimeout: SMTP_IDLE_TIMEOUT_MS,
    disableFileAccess: true,
    disableUrlAccess: true,
  });
  const send = async (mail: ServiceEmail, attempt = 0): Promise<void> => {
    const { to, subject, text } = mail;
    try {
      await transport.sendMail({ from: mailFrom, to: { name: "", address: to }, subject, text });
    } catch (error) {
      const { code, responseCode } = error as { code?: string; responseCode?: number };
      const retryDelayMs = isTemporary(responseCode) ? retryDelaysMs[attempt] : undefined;
      log.warn(
        { code, responseCode, retryInSeconds: retryDelayMs === undefined ? null : retryDelayMs / 1_000 },
        "an e-mail to a person of this service could not be sent; check SMTP_URL",
      );
      if (retryDelayMs !== undefined) setTimeout(() => runInBackground(send(mail, attempt + 1)), retryDelayMs).unref();
    }
  };
  return (mail) => send(mail);
}

export const createInvitationMailer =
  (send: SendServiceMail) =>
  ({ email, role, expiresAt }: { email: string; role: string; expiresAt: string }, link: string): Promise<void> =>
    send({
      to: email,
      subject: "You are invited",
      text: `Hello,

you are invited as ${role}. To accept, open this link before ${expiresAt}:

${link}
`,
    });
