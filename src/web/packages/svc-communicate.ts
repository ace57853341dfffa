/**
 * Package `Svc.Communicate`: sends e-mails, text messages and push notifications through the service. In a page it also offers functions of
 * the browser.
 */
import type {
  BatchedEmail,
  Communicate,
  EmailOptions,
  MessageReceipt,
  SharedPage,
  SmsOptions,
} from "../runtime/message-types.js";
import { rejecting } from "./calls.js";
import { connection } from "./connection.js";
import { define } from "./define.js";
import { insert } from "./notification-calls.js";

const path = (rest: string) => `/v1/apps/${connection().appId()}/communicate/${rest}`;

async function send(rest: string, body: unknown): Promise<unknown> {
  return connection().request("POST", path(rest), body);
}

async function sendAll(rest: string, body: unknown): Promise<MessageReceipt[]> {
  return ((await send(rest, body)) as { messages: MessageReceipt[] }).messages;
}

/** @throws Error if the code does not run in a page with a user */
function mustBePage(name: string): void {
  if (location.protocol === "about:" || !("share" in navigator || "clipboard" in navigator)) {
    throw new Error(`Svc.Communicate.${name} works only in a page with a user`);
  }
}

/** Opens the user's mail program with a new message that is not sent yet. */
async function composeEmail({ to = [], subject = "", text = "" }: Partial<EmailOptions> = {}): Promise<void> {
  mustBePage("composeEmail");
  const of = (type: string) =>
    to.filter((one) => (one.type ?? "to") === type).map(({ email }) => encodeURIComponent(email));
  const fields = {
    cc: of("cc").join(","),
    bcc: of("bcc").join(","),
    subject: encodeURIComponent(subject),
    body: encodeURIComponent(text),
  };
  const query = Object.entries(fields).flatMap(([name, value]) => (value === "" ? [] : [`${name}=${value}`]));
  window.open(`mailto:${of("to").join(",")}${query.length > 0 ? `?${query.join("&")}` : ""}`, "_self");
}

/** Shares a URL with other programs of the user. Copies the URL if the browser cannot share. */
async function shareURL({
  url = location.href,
  title = document.title,
  text,
}: SharedPage = {}): Promise<"shared" | "copied"> {
  mustBePage("shareURL");
  if (navigator.share) {
    await navigator.share({ url, title, ...(text !== undefined && { text }) });
    return "shared";
  }
  await navigator.clipboard.writeText(url);
  return "copied";
}

const members: Omit<Communicate, "init"> = rejecting({
  sendEmail: async (options: EmailOptions, data?: object) =>
    (await send("email", data === undefined ? { options } : { options, data })) as MessageReceipt,
  batchSendEmail: (messages: readonly BatchedEmail[]) => sendAll("email/batch", messages),
  sendSMS: async (message: SmsOptions) => (await send("sms", message)) as MessageReceipt,
  batchSendSMS: (messages: readonly SmsOptions[]) => sendAll("sms/batch", messages),
  sendPushNotification: (options) => insert({ status: "published", ...options }),
  composeEmail,
  shareURL,
});

define("Communicate", { ...members, init: () => members });
