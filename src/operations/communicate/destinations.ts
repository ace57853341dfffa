/**
 * Finds the mail server or text message provider for an app's messages: in the app's protected settings, or in the
 * operator's configuration. Also masks the credentials of these destinations in replies of servers. Sends no messages.
 */
import type { Config } from "../../config.js";
import type { SqlClient } from "../../data/database.js";
import type { SecretScannerCache } from "../../engine/secret-scan.js";
import {
  parseSmsDestination,
  parseSmtpDestination,
  type SmsDestination,
  type SmtpDestination,
} from "../../rules/message-destination.js";
import type { Settings } from "../settings/settings.js";

/** Mail server of the service's operator. It sends the e-mails of apps that have not configured a mail server. */
export interface OperatorMailServer {
  server: Pick<SmtpDestination, "host" | "port" | "secure" | "user" | "password"> | null;
  /** Sender address of e-mails; null if no address is configured. */
  from: string | null;
}

export function readOperatorMailServer({
  smtpUrl,
  mailFrom,
}: Pick<Config, "smtpUrl" | "mailFrom">): OperatorMailServer {
  if (smtpUrl === null) return { server: null, from: mailFrom };
  const { protocol, hostname, port, username, password } = new URL(smtpUrl);
  const isSecure = protocol === "smtps:";
  const smtpServer = { host: hostname, port: Number(port) || (isSecure ? 465 : 587), secure: isSecure };
  const credentials = { user: decodeURIComponent(username) || null, password: decodeURIComponent(password) || null };
  return { server: { ...smtpServer, ...credentials }, from: mailFrom };
}

/** Mail server for an app's e-mails. Only the network address of an app's own server is checked, not that of the operator's server. */
export type MailDestination = SmtpDestination & { isOperatorServer: boolean };

/** Fields of a destination's setting whose values are masked in the replies of servers. */
const SECRET_FIELDS = ["user", "password", "pass", "token", "sid", "secret"] as const;
/** Minimum length of a masked value. Shorter values are not masked in replies of servers, because a reply can contain them by chance. */
const SECRET_MIN_CHARACTERS = 4;

const HIDDEN_REPLY = "the reply of the server is not shown, because the service could not mask secrets in it";

interface MessageDestinationsOptions {
  settings: Settings;
  scannerCache: SecretScannerCache;
  operatorMail: OperatorMailServer;
  /** True if providers of text messages may have http URLs (ALLOW_PRIVATE_NETWORK). */
  allowHttp: boolean;
}

function collectSecrets(key: string, value: unknown): { name: string; value: string; mustMatchWhole: boolean }[] {
  const fields = (typeof value === "object" && value !== null ? value : {}) as Record<string, unknown>;
  const secretTexts = SECRET_FIELDS.map((field) => fields[field]).filter((text) => typeof text === "string");
  return secretTexts
    .filter((text) => text.length >= SECRET_MIN_CHARACTERS)
    .map((text) => ({ name: key, value: text, mustMatchWhole: false }));
}

export class MessageDestinations {
  constructor(private readonly options: MessageDestinationsOptions) {}

  private async readSetting(appId: number, key: "__smtp" | "__sms", executor?: SqlClient): Promise<unknown> {
    return (await this.options.settings.readAll(appId, executor)).get(key);
  }

  /**
   * Returns the mail server for the app's e-mails, or null if none is configured.
   * @param executor the caller's transaction, so that the query needs no second connection
   * @throws InvalidDestinationError that names the invalid field of the app's setting
   */
  async findMailServer(appId: number, executor?: SqlClient): Promise<MailDestination | null> {
    const { operatorMail } = this.options;
    const appDestination = parseSmtpDestination(await this.readSetting(appId, "__smtp", executor), operatorMail.from);
    if (appDestination) return { ...appDestination, isOperatorServer: false };
    if (operatorMail.server === null || operatorMail.from === null) return null;
    return {
      ...parseSmtpDestination({ ...operatorMail.server, from: operatorMail.from }, null)!,
      isOperatorServer: true,
    };
  }

  /** Returns the provider for the app's text messages, or null if none is configured. @throws the errors of `findMailServer` */
  async findSmsProvider(appId: number): Promise<SmsDestination | null> {
    return parseSmsDestination(await this.readSetting(appId, "__sms"), this.options.allowHttp);
  }

  /** Returns the secret with which the app's provider signs delivery reports; null if the app's setting contains no secret. */
  async readReportSecret(appId: number, kind: "email" | "sms", field: "secret" | "token"): Promise<string | null> {
    const value = await this.readSetting(appId, kind === "email" ? "__smtp" : "__sms");
    const secret = typeof value === "object" && value !== null ? (value as Record<string, unknown>)[field] : null;
    return typeof secret === "string" && secret !== "" ? secret : null;
  }

  /** Masks the credentials of the app's destinations, and of the operator's mail server, in `text`. */
  async maskSecrets(appId: number, text: string): Promise<string> {
    const { settings, scannerCache, operatorMail } = this.options;
    const all = await settings.readAll(appId);
    const secrets = [
      ...collectSecrets("__smtp", all.get("__smtp")),
      ...collectSecrets("__sms", all.get("__sms")),
      ...collectSecrets("SMTP_URL", operatorMail.server),
    ];
    if (secrets.length === 0) return text;
    const [masked] = await scannerCache
      .getScanner(String(appId), `messages:${JSON.stringify(secrets)}`, secrets)
      .mask([{ text }]);
    return masked!;
  }

  /** Masks secrets in a server's reply. Returns HIDDEN_REPLY if this fails, because the outcome must be stored in any case. */
  async maskReply(appId: number, text: string): Promise<string> {
    return this.maskSecrets(appId, text).catch(() => HIDDEN_REPLY);
  }
}
