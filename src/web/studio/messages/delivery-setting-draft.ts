/** Fields for the e-mail server and the SMS provider of an app, and the conversion of their values to a setting. Pure functions. */

export type DeliveryChannel = "email" | "sms";

export type DeliverySettingDraft = Readonly<Record<string, string>>;

interface DeliveryField {
  name: string;
  label: string;
  hint?: string;
  type?: "password" | "number" | "url";
  isRequired?: true;
  /** Values that the person can choose, with their labels. Missing if the field accepts any text. */
  options?: readonly (readonly [value: string, label: string])[];
}

interface DeliveryKind {
  label: string;
  fields: readonly DeliveryField[];
}

const WEBHOOK_SECRET_HINT = "Signs the provider's reports of bounces and complaints.";

/**
 * Ways to deliver messages, such as an SMTP server, by their names. An app uses one way for e-mail and one way for SMS.
 */
export const MESSAGE_DELIVERY_KINDS: Readonly<Record<DeliveryChannel, Readonly<Record<string, DeliveryKind>>>> = {
  email: {
    smtp: {
      label: "SMTP server",
      fields: [
        { name: "host", label: "Host", isRequired: true },
        { name: "port", label: "Port", type: "number", hint: "587 with STARTTLS, 465 with TLS from the first byte." },
        {
          name: "secure",
          label: "TLS",
          options: [
            ["", "By the port"],
            ["true", "From the first byte"],
            ["false", "STARTTLS if the server offers it"],
          ],
        },
        { name: "user", label: "User" },
        { name: "password", label: "Password", type: "password" },
        {
          name: "from",
          label: "Sender",
          hint: "An address, also with a name: Shop <shop@example.com>. If empty: the user if it is an address, else MAIL_FROM.",
        },
        { name: "secret", label: "Secret for reports", type: "password", hint: WEBHOOK_SECRET_HINT },
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

export const DELIVERY_SETTING_KEYS: Readonly<Record<DeliveryChannel, string>> = { email: "__smtp", sms: "__sms" };

const isPort = (text: string): boolean => {
  const port = Number(text);
  return Number.isInteger(port) && port >= 1 && port <= 65_535;
};

/** Returns the typed text of a field without spaces around it; a password with its spaces. */
const getFieldText = ({ name, type }: DeliveryField, draft: DeliverySettingDraft): string =>
  type === "password" ? (draft[name] ?? "") : (draft[name] ?? "").trim();

/**
 * Returns the error messages by the name of the field. Checks only the fields of the chosen kind of delivery, because the others are not
 * saved.
 */
export function validateDeliverySettingDraft(
  channel: DeliveryChannel,
  kind: string,
  draft: DeliverySettingDraft,
): Record<string, string> {
  const faults: Record<string, string> = {};
  for (const field of MESSAGE_DELIVERY_KINDS[channel][kind]?.fields ?? []) {
    const { name, label, type, isRequired } = field;
    const text = getFieldText(field, draft);
    if (isRequired && text === "") faults[name] = `${label} is required.`;
    else if (type === "number" && text !== "" && !isPort(text))
      faults[name] = `${label} must be a number from 1 to 65535 (got "${text}").`;
    else if (type === "url" && !/^https?:\/\//.test(text))
      faults[name] = `${label} must begin with https://, or in development with http:// (got "${text}").`;
  }
  return faults;
}

/** Returns the value to store in the app's delivery setting (`__smtp` or `__sms`), without empty fields. */
export function createDeliverySetting(
  channel: DeliveryChannel,
  kind: string,
  draft: DeliverySettingDraft,
): Record<string, unknown> {
  const fields = MESSAGE_DELIVERY_KINDS[channel][kind]?.fields ?? [];
  const filledTexts = fields
    .map((field) => [field.name, getFieldText(field, draft)] as const)
    .filter(([, text]) => text !== "");
  const value: Record<string, unknown> = Object.fromEntries(filledTexts);
  if (channel === "sms") return { provider: kind, ...value };
  if (value["port"] !== undefined) value["port"] = Number(value["port"]);
  if (value["secure"] !== undefined) value["secure"] = value["secure"] === "true";
  return value;
}
