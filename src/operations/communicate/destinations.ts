/**
 * Where an app's messages go: its protected settings, read by the service itself, or else what the operator gave. Also hides what those
 * settings hold in whatever a server or provider answers. Sends nothing.
 */
import type { Config } from "../../config.js";
import type { SecretScans } from "../../engine/secret-scan.js";
import {
  type SmsDestination,
  type SmtpDestination,
  smsDestination,
  smtpDestination,
} from "../../rules/message-destination.js";
import type { Settings } from "../settings/settings.js";

/** The operator's own server, for the apps that have none. */
export interface OperatorMail {
  server: Pick<SmtpDestination, "host" | "port" | "secure" | "user" | "password"> | null;
  /** The sender's address; null where none is given. */
  from: string | null;
}

/** What SMTP_URL and MAIL_FROM say. */
export function operatorMail({ smtpUrl, mailFrom }: Pick<Config, "smtpUrl" | "mailFrom">): OperatorMail {
  if (smtpUrl === null) return { server: null, from: mailFrom };
  const { protocol, hostname, port, username, password } = new URL(smtpUrl);
  const secure = protocol === "smtps:";
  const known = { host: hostname, port: Number(port) || (secure ? 465 : 587), secure };
  const credentials = { user: decodeURIComponent(username) || null, password: decodeURIComponent(password) || null };
  return { server: { ...known, ...credentials }, from: mailFrom };
}

/** `ours`: the operator's server, which may stand anywhere. */
export type MailDestination = SmtpDestination & { ours: boolean };

/** What a destination's words are searched for. */
const SECRET_FIELDS = ["user", "password", "pass", "token", "sid", "secret"] as const;
/** Shorter ones would be found by chance in every reply. */
const SECRET_MIN_CHARACTERS = 4;

export type Destinations = ReturnType<typeof createDestinations>;

export function createDestinations(options: { settings: Settings; scans: SecretScans; operator: OperatorMail }) {
  const { settings, scans, operator } = options;

  async function setting(appId: number, key: "__smtp" | "__sms"): Promise<unknown> {
    return (await settings.backend(appId)).get(key);
  }

  function secretsIn(key: string, value: unknown): { name: string; value: string; whole: boolean }[] {
    const fields = (typeof value === "object" && value !== null ? value : {}) as Record<string, unknown>;
    const texts = SECRET_FIELDS.map((field) => fields[field]).filter((one) => typeof one === "string");
    return texts
      .filter((text) => text.length >= SECRET_MIN_CHARACTERS)
      .map((text) => ({ name: key, value: text, whole: false }));
  }

  return {
    /** null: nothing would send e-mail for the app. @throws DestinationFault naming the field of the setting */
    async mail(appId: number): Promise<MailDestination | null> {
      const own = smtpDestination(await setting(appId, "__smtp"), operator.from);
      if (own) return { ...own, ours: false };
      if (operator.server === null || operator.from === null) return null;
      return { ...smtpDestination({ ...operator.server, from: operator.from }, null)!, ours: true };
    },

    /** null: nothing would send text messages for the app. @throws as `mail` */
    async sms(appId: number): Promise<SmsDestination | null> {
      return smsDestination(await setting(appId, "__sms"));
    },

    /** By what a provider of delivery reports signs them; null where the app has set nothing. */
    async reportSecret(appId: number, kind: "email" | "sms", field: "secret" | "token"): Promise<string | null> {
      const value = await setting(appId, kind === "email" ? "__smtp" : "__sms");
      const secret = typeof value === "object" && value !== null ? (value as Record<string, unknown>)[field] : null;
      return typeof secret === "string" && secret !== "" ? secret : null;
    },

    /** What a server said, as it may be kept: no value of the settings by which it was reached is in it. */
    async masked(appId: number, text: string): Promise<string> {
      const all = await settings.backend(appId);
      const secrets = [
        ...secretsIn("__smtp", all.get("__smtp")),
        ...secretsIn("__sms", all.get("__sms")),
        ...secretsIn("SMTP_URL", operator.server),
      ];
      if (secrets.length === 0) return text;
      const [kept] = await scans.of(String(appId), `messages:${JSON.stringify(secrets)}`, secrets).mask([{ text }]);
      return kept!;
    },
  };
}
