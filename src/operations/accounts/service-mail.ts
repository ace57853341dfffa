/**
 * Sends e-mails of the service itself to its people, by SMTP_URL: reset links, invitations. The folder `communicate`
 * sends e-mails of apps.
 */
import { createTransport } from "nodemailer";
import type { Logger } from "pino";
import type { Config } from "../../config.js";

export interface ServiceMailText {
  to: string;
  subject: string;
  text: string;
}

/**
 * Function that sends an e-mail. It logs a failure and does not throw, because the request has been answered already.
 */
export type SendServiceMail = (mail: ServiceMailText) => Promise<void>;

const GREETING_MS = 20_000;
const SILENCE_MS = 60_000;
const LOOPBACK_HOSTS = ["localhost", "127.0.0.1", "::1"];

/** Returns null if no mail server is configured. */
export function createServiceMail(
  { smtpUrl, mailFrom }: Pick<Config, "smtpUrl" | "mailFrom">,
  log: Logger,
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
    // Without TLS no e-mail is sent, because the password would be sent in clear text.
    requireTLS: !isSecure && smtpLogin !== undefined && !LOOPBACK_HOSTS.includes(hostname),
    ignoreTLS: !isSecure && LOOPBACK_HOSTS.includes(hostname),
    connectionTimeout: GREETING_MS,
    greetingTimeout: GREETING_MS,
    socketTimeout: SILENCE_MS,
    disableFileAccess: true,
    disableUrlAccess: true,
  });
  return async ({ to, subject, text }) => {
    try {
      await transport.sendMail({ from: mailFrom, to: { name: "", address: to }, subject, text });
    } catch (error) {
      const { code } = error as { code?: string };
      log.warn({ code }, "an e-mail to a person of this service could not be sent; check SMTP_URL");
    }
  };
}

/** Returns the e-mail of an invitation. */
export const invitationMail =
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
