/**
 * Package `Svc.Communicate`: sends e-mails, text messages and push notifications through the service. In a page, it also
 * opens the user's mail program and shares URLs.
 */
import type {
  BatchedEmail,
  Communicate,
  EmailOptions,
  MessageReceipt,
  SharedPage,
  SmsOptions,
} from "../runtime/message-types.js";
import { wrapWithSvcErrors } from "./calls.js";
import { getConnection } from "./connection.js";
import { defineSvcNamespace } from "./define.js";
import { insertNotification } from "./notification-calls.js";

async function sendRequest(subpath: string, body: unknown): Promise<unknown> {
  const { appId, request } = getConnection();
  return request("POST", `/v1/apps/${appId()}/communicate/${subpath}`, body);
}

async function sendBatch(subpath: string, body: unknown): Promise<MessageReceipt[]> {
  return ((await sendRequest(subpath, body)) as { messages: MessageReceipt[] }).messages;
}

/**
 * Checks that the code runs in a page that a user has opened. Such a page has a URL, and the browser offers `share` or `clipboard` there.
 * If the page was loaded without HTTPS, the browser may offer neither.
 * @throws Error if the code runs elsewhere, such as in a server action
 */
function assertRunsInPage(name: string): void {
  const isPageWithoutHttps = globalThis.isSecureContext === false;
  if (location.protocol === "about:" || !(isPageWithoutHttps || "share" in navigator || "clipboard" in navigator)) {
    throw new Error(
      `Svc.Communicate.${name} works only in a page that a user has opened in a browser, not in a server action`,
    );
  }
}

/** Opens the user's mail program with a new message, which the user can change and send. */
async function composeEmail({ to = [], subject = "", text = "" }: Partial<EmailOptions> = {}): Promise<void> {
  assertRunsInPage("composeEmail");
  const encodeAddresses = (type: string) =>
    to.filter((recipient) => (recipient.type ?? "to") === type).map(({ email }) => encodeURIComponent(email));
  const fields = {
    cc: encodeAddresses("cc").join(","),
    bcc: encodeAddresses("bcc").join(","),
    subject: encodeURIComponent(subject),
    body: encodeURIComponent(text),
  };
  const query = Object.entries(fields).flatMap(([name, value]) => (value === "" ? [] : [`${name}=${value}`]));
  window.open(`mailto:${encodeAddresses("to").join(",")}${query.length > 0 ? `?${query.join("&")}` : ""}`, "_self");
}

/** Shares a URL with other programs of the user. Copies the URL if the browser cannot share. */
async function shareURL({
  url = location.href,
  title = document.title,
  text,
}: SharedPage = {}): Promise<"shared" | "copied"> {
  assertRunsInPage("shareURL");
  if (navigator.share) {
    await navigator.share({ url, title, ...(text !== undefined && { text }) });
    return "shared";
  }
  if (!navigator.clipboard) throw new Error("Svc.Communicate.shareURL needs a page that was loaded over HTTPS");
  await navigator.clipboard.writeText(url);
  return "copied";
}

const communicateFunctions: Omit<Communicate, "init"> = wrapWithSvcErrors({
  sendEmail: async (options: EmailOptions, data?: object) =>
    (await sendRequest("email", data === undefined ? { options } : { options, data })) as MessageReceipt,
  batchSendEmail: (messages: readonly BatchedEmail[]) => sendBatch("email/batch", messages),
  sendSMS: async (message: SmsOptions) => (await sendRequest("sms", message)) as MessageReceipt,
  batchSendSMS: (messages: readonly SmsOptions[]) => sendBatch("sms/batch", messages),
  // Without options, the service rejects the call, because it must not publish an empty notification to all users.
  sendPushNotification: (options) => insertNotification(options && { status: "published", ...options }),
  composeEmail,
  shareURL,
});

defineSvcNamespace("Communicate", { ...communicateFunctions, init: () => communicateFunctions });
