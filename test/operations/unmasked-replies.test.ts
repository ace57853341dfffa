/**
 * Tests that a message keeps its outcome if the settings cannot be read after the recipient's server has replied. The reply is then hidden,
 * because its secrets cannot be masked.
 */
import { expect } from "chai";
import { NotConnectedError } from "../../src/engine/checked-connections.js";
import type { DeliveryOutcome } from "../../src/engine/smtp.js";
import { MessageDestinations } from "../../src/operations/communicate/destinations.js";
import { createEmailDelivery } from "../../src/operations/communicate/email-delivery.js";
import { createSmsDelivery } from "../../src/operations/communicate/sms-delivery.js";

type SmsOptions = Parameters<typeof createSmsDelivery>[0];

const HIDDEN = "the reply of the server is not shown, because the service could not mask secrets in it";
const SETTINGS = new Map<string, unknown>([
  ["__sms", { provider: "webhook", url: "https://sms.example/send", secret: "the-webhooks-secret" }],
  ["__smtp", { host: "mail.example", port: 587, from: "shop@example.com", user: "u", password: "the-password" }],
]);

/** Returns destinations whose settings can be read once: the database fails after the message was sent. */
function destinationsOfFailingDatabase(): MessageDestinations {
  let reads = 0;
  const readAll = async () => {
    reads += 1;
    if (reads > 1) throw new Error("the database is not reachable");
    return SETTINGS;
  };
  const operatorMail = { server: null, from: null };
  return new MessageDestinations({ settings: { readAll }, scannerCache: {}, operatorMail, allowHttp: false } as never);
}

const CONTROL = { markSending: async () => true, signal: new AbortController().signal };
const messageTo = (address: string, content: object) =>
  ({
    id: 1,
    appId: 1,
    reference: "r",
    createdAt: new Date(),
    recipients: [{ address, name: null, type: "to" }],
    content,
  }) as never;

describe("replies whose secrets cannot be masked", () => {
  const sendSms = (request: SmsOptions["connections"]["request"]) =>
    createSmsDelivery({
      connections: { request } as SmsOptions["connections"],
      destinations: destinationsOfFailingDatabase(),
      createReportUrl: () => null,
    })(messageTo("+15550101", { kind: "sms", body: "x", from: null, provider: null }), CONTROL);

  it("do not change the outcome of a text message", async () => {
    const answer = (status: number) => async () => ({ status, headers: {}, body: '{"id": "at-provider-7"}' });
    expect(await sendSms(answer(200))).to.deep.include({
      ...{ kind: "done", status: "sent", providerId: "at-provider-7", detail: HIDDEN },
    });
    expect(await sendSms(answer(429))).to.deep.include({ kind: "later", detail: HIDDEN });
    expect(await sendSms(answer(400))).to.deep.include({ kind: "done", status: "rejected", detail: HIDDEN });
    const notConnected = () => Promise.reject(new NotConnectedError("the host could not be reached", false));
    expect(await sendSms(notConnected)).to.deep.include({ kind: "later", detail: HIDDEN });
  });

  const sendEmail = (delivery: DeliveryOutcome) =>
    createEmailDelivery({
      smtp: { deliver: async () => delivery, stop: () => undefined },
      destinations: destinationsOfFailingDatabase(),
      connections: { checked: {}, unchecked: {} } as never,
      host: "svc.example",
    })(messageTo("ann@example.com", { kind: "email", subject: "s", text: "t", html: null, attachments: [] }), CONTROL);

  it("do not change the outcome of an e-mail", async () => {
    const accepted = { accepted: ["ann@example.com"], refused: [], detail: "250 queued as 7" };
    const sent = await sendEmail({ kind: "taken", ...accepted });
    expect(sent).to.deep.include({ kind: "done", status: "sent", detail: HIDDEN });
    const refusal = { permanent: false, isSettingFault: false, code: 451, refused: [], detail: "451 try again later" };
    const refused = await sendEmail({ kind: "refused", ...refusal });
    expect(refused).to.deep.include({ kind: "later", detail: HIDDEN });
  });
});
