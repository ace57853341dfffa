/** Fields of the e-mail server and the SMS provider of an app, and the settings that they are stored in. Pure. */

export type Channel = "email" | "sms";

export type DeliveryDraft = Readonly<Record<string, string>>;

interface DeliveryField {
  name: string;
  label: string;
  hint?: string;
  type?: "password" | "number" | "url";
  isRequired?: true;
}

interface Kind {
  label: string;
  fields: readonly DeliveryField[];
}

const SECRET = "Signs the provider's reports of bounces and complaints.";

/** Kinds of delivery by name. An app uses one kind of each channel. */
export const KINDS: Readonly<Record<Channel, Readonly<Record<string, Kind>>>> = {
  email: {
    smtp: {
      label: "SMTP server",
      fields: [
        { name: "host", label: "Host", isRequired: true },
        { name: "port", label: "Port", type: "number", hint: "587 with STARTTLS, 465 with TLS from the first byte." },
        { name: "user", label: "User" },
        { name: "password", label: "Password", type: "password" },
        {
          name: "from",
          label: "Sender",
          isRequired: true,
          hint: "An address, also with a name: Shop <shop@example.com>.",
        },
        { name: "secret", label: "Secret for reports", type: "password", hint: SECRET },
      ],
    },
  },
  sms: {
    twilio: {
      label: "Twilio",
      fields: [
        { name: "sid", label: "Account SID", isRequired: true },
        { name: "token", label: "Auth token", type: "password", isRequired: true },
        { name: "from", label: "Sender", isRequired: true, hint: "Phone number or name of the sender." },
      ],
    },
    webhook: {
      label: "Webhook",
      fields: [
        { name: "url", label: "URL", type: "url", isRequired: true },
        {
          name: "secret",
          label: "Secret",
          type: "password",
          isRequired: true,
          hint: "Signs each request, and the provider's reports.",
        },
      ],
    },
  },
};

export const SETTING_KEYS: Readonly<Record<Channel, string>> = { email: "__smtp", sms: "__sms" };

/** Port with TLS from the first byte. */
const TLS_PORT = "465";

/** Error messages by field. */
export function faultsOf(channel: Channel, kind: string, draft: DeliveryDraft): Record<string, string> {
  const faults: Record<string, string> = {};
  for (const { name, label, isRequired } of KINDS[channel][kind]?.fields ?? [])
    if (isRequired && (draft[name] ?? "").trim() === "") faults[name] = `${label} is required.`;
  const port = Number(draft["port"] || TLS_PORT);
  if (!Number.isInteger(port) || port < 1 || port > 65_535) faults["port"] = "Port must be a number from 1 to 65535.";
  if (draft["url"] && !/^https?:\/\//.test(draft["url"])) faults["url"] = "URL must begin with https://.";
  return faults;
}

/** Value of the setting. Empty fields are left out. */
export function settingOf(channel: Channel, kind: string, draft: DeliveryDraft): Record<string, unknown> {
  const names = (KINDS[channel][kind]?.fields ?? []).map(({ name }) => name);
  const texts = names.flatMap((name) => (draft[name]?.trim() ? [[name, draft[name].trim()] as const] : []));
  const value: Record<string, unknown> = Object.fromEntries(texts);
  if (channel === "sms") return { provider: kind, ...value };
  if (draft["port"]) value["port"] = Number(draft["port"]);
  return value;
}
