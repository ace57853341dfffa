/** Tests text messages through a webhook and through Twilio's REST API, and delivery reports. */
import { createHmac } from "node:crypto";
import { createServer, type IncomingHttpHeaders, type Server } from "node:http";
import { expect } from "chai";
import { rows } from "../../src/data/database.js";
import { DeliveryReports } from "../../src/operations/communicate/delivery-reports.js";
import { createBodySignature } from "../../src/operations/communicate/sms-delivery.js";
import { startTestService, type TestService } from "../harness/service.js";
import { until } from "../harness/until.js";

const SECRET = "the-webhooks-secret";
const TOKEN = "the-twilio-auth-token";

interface ProviderCall {
  url: string;
  headers: IncomingHttpHeaders;
  body: string;
}

describe("text messages and reports", () => {
  let service: TestService;
  let provider: Server;
  let url: string;
  const providerCalls: ProviderCall[] = [];
  let answer: { status: number; body: string } | "hang up";

  before(async () => {
    provider = createServer((request, response) => {
      let body = "";
      request
        .on("data", (chunk) => (body += chunk))
        .on("end", () => {
          providerCalls.push({ url: request.url!, headers: request.headers, body });
          if (answer === "hang up") return request.socket.destroy();
          response.writeHead(answer.status).end(answer.body);
        });
    });
    await new Promise<void>((resolve) => provider.listen(0, "127.0.0.1", () => resolve()));
    url = `http://127.0.0.1:${(provider.address() as { port: number }).port}`;
    service = await startTestService({ ROLES: "api,scheduler", ALLOW_PRIVATE_NETWORK: "1" });
  });
  after(async () => {
    await service.stop();
    provider.close();
  });
  beforeEach(() => {
    providerCalls.length = 0;
    answer = { status: 200, body: `{"id": "at-provider-${Math.random()}"}` };
  });

  const path = (rest: string) => `/v1/apps/${service.appId}/communicate/${rest}`;
  const set = (body: object) => service.rest("POST", `/v1/apps/${service.appId}/settings`, { body });
  const useWebhook = () => set({ __sms: { provider: "webhook", url: `${url}/sms?a=1`, secret: SECRET } });
  const useTwilio = () => set({ __sms: { provider: "twilio", sid: "AC1", token: TOKEN, from: "+15550100", url } });
  const sms = (body: object) => service.rest("POST", path("sms"), { body });
  const message = async (id: number) => (await service.rest("GET", path(`messages/${id}`))).body.message;
  /** Waits until a message has its final status, which must not need a second attempt. Returns the message. */
  const waitForFinalStatus = async (id: number) => {
    const answer = await until(async () => {
      const found = await message(id);
      return found.status === "queued" ? null : found;
    });
    expect(answer.attempts).to.equal(1);
    return answer;
  };
  const hmac = (text: string, secret = SECRET) => createHmac("sha256", secret).update(text).digest("hex");

  function report(
    events: object[],
    { secret = SECRET, at = Math.floor(Date.now() / 1000), appId = service.appId } = {},
  ) {
    const body = JSON.stringify({ events });
    const headers = {
      "svc-signature": `t=${at},v1=${hmac(`${at}.${body}`, secret)}`,
      "content-type": "application/json",
    };
    return service.rest("POST", `/v1/apps/${appId}/communicate/events`, { as: null, body, headers });
  }

  it("are sent to the webhook with a signature, once, with a key that identifies a repeat", async () => {
    await useWebhook();
    const { body } = await sms({ data: { to: "+1 (555) 010-99", body: "Shipped" }, provider: "webhook" });
    expect(await waitForFinalStatus(body.id)).to.include({ status: "sent", text: "Shipped", kind: "sms" });
    const [request] = providerCalls as [ProviderCall];
    expect(providerCalls).to.have.length(1);
    expect(JSON.parse(request.body)).to.include({
      id: body.id,
      to: "+155501099",
      body: "Shipped",
      appId: service.appId,
    });
    const [, at, signed] = /^t=(\d+),v1=(\w+)$/.exec(request.headers["svc-signature"] as string)!;
    expect(signed).to.equal(hmac(`${at}.${request.body}`));
    expect(request.headers["idempotency-key"]).to.match(/^[0-9a-f-]{36}$/);
  });

  it("are rejected with the path of the invalid field, in either form of the call", async () => {
    const FAULTS: [body: object, error: string][] = [
      [{ to: "+15550100", body: "" }, "body must be a text of 1 to 1600 characters (got a text of 0 characters)"],
      [{ to: "+15550100", text: "x" }, "body must be a text of 1 to 1600 characters (got nothing)"],
      [{ to: "+15550100", body: "x", data: {} }, "data.body must be a text of 1 to 1600 characters (got nothing)"],
      [{ data: { to: 1, body: "x" } }, "data.to must be a phone number such as +15550100 (got 1)"],
    ];
    for (const [body, error] of FAULTS) expect((await sms(body)).body).to.include({ status: "REQUEST_INVALID", error });
  });

  it("are sent although the provider gives two of them the same name", async () => {
    await useWebhook();
    answer = { status: 200, body: '{"id": "the-same-for-all"}' };
    const first = (await sms({ to: "+15550101", body: "one" })).body;
    expect((await waitForFinalStatus(first.id)).status).to.equal("sent");
    const second = (await sms({ to: "+15550102", body: "two" })).body;
    expect((await waitForFinalStatus(second.id)).status).to.equal("sent");
    await report([{ providerId: "the-same-for-all", type: "delivered" }]);
    expect([(await message(first.id)).status, (await message(second.id)).status]).to.deep.equal(["delivered", "sent"]);
  });

  it("are sent although the provider's response contains U+0000, which the database cannot store", async () => {
    await useWebhook();
    answer = { status: 200, body: "accepted\0" };
    const { body } = await sms({ to: "+15550101", body: "x" });
    expect(await waitForFinalStatus(body.id)).to.include({ status: "sent", detail: "200 accepted" });
  });

  it("are sent to Twilio's REST API, in either form of the call", async () => {
    await useTwilio();
    answer = { status: 201, body: '{"sid": "SM1"}' };
    const { body } = await sms({ to: "+15550101", body: "Shipped" });
    expect((await waitForFinalStatus(body.id)).status).to.equal("sent");
    const [request] = providerCalls as [ProviderCall];
    expect(request.url).to.equal("/2010-04-01/Accounts/AC1/Messages.json");
    expect(Object.fromEntries(new URLSearchParams(request.body))).to.include({
      To: "+15550101",
      From: "+15550100",
      Body: "Shipped",
    });
    expect(request.headers.authorization).to.equal(`Basic ${Buffer.from(`AC1:${TOKEN}`).toString("base64")}`);
  });

  it("end, or wait for their next try, with any url in the setting", async () => {
    for (const odd of [`${url} `, `${url}?x=1`, `${url}#x`, `${url}/%zz/`, ` ${url}\\a`]) {
      await set({ __sms: { provider: "twilio", sid: "AC1", token: TOKEN, from: "+15550100", url: odd } });
      const { body } = await sms({ to: "+15550101", body: "x" });
      expect((await waitForFinalStatus(body.id)).status, odd).to.equal("sent");
    }
    expect(providerCalls.every(({ url: path }) => path.includes("/2010-04-01/Accounts/AC1/Messages.json"))).to.equal(
      true,
    );
  });

  it("end by the provider's response: temporary errors wait, permanent ones end, unknown results need a person", async () => {
    await useWebhook();
    const outcome = async (providerAnswer: typeof answer) => {
      answer = providerAnswer;
      const { body } = await sms({ to: "+15550101", body: "x" });
      return until(async () => {
        const [row] = await rows<{ status: string; attempts: number; holder: string | null }>(
          service.db,
          "SELECT status, attempts, holder FROM message WHERE id = $1",
          [body.id],
        );
        return row!.attempts > 0 && row!.holder === null ? row!.status : null;
      });
    };
    expect(await outcome({ status: 429, body: "later" })).to.equal("queued");
    expect(await outcome({ status: 400, body: "no such number" })).to.equal("rejected");
    expect(await outcome({ status: 500, body: "" })).to.equal("unknown");
    expect(await outcome("hang up")).to.equal("unknown");
    expect(providerCalls).to.have.length(4);
  });

  it("contain no secret that the provider repeats", async () => {
    await useTwilio();
    answer = { status: 401, body: `bad token ${TOKEN}, ${Buffer.from(`AC1:${TOKEN}`).toString("base64")}` };
    const { body } = await sms({ to: "+15550101", body: "x" });
    const found = await waitForFinalStatus(body.id);
    expect(found.detail).to.contain("bad token").and.not.contain(TOKEN);
    expect(found.detail).to.not.contain(Buffer.from(`AC1:${TOKEN}`).toString("base64").slice(6, 30));
  });

  it("get reports only from callers who know the secret, in time, for messages of that app", async () => {
    await useWebhook();
    const { body } = await sms({ to: "+15550101", body: "x" });
    await waitForFinalStatus(body.id);
    const news = [{ id: body.id, type: "delivered" }];
    for (const forged of [
      await report(news, { secret: "another" }),
      await report(news, { at: Math.floor(Date.now() / 1000) - 1_000 }),
      await report(news, { appId: 2_000_000_000 }),
      await service.rest("POST", path("events"), { body: { events: news } }),
    ]) {
      expect([forged.http, forged.body.status]).to.deep.equal([401, "UNAUTHORIZED"]);
    }
    expect((await message(body.id)).status).to.equal("sent");
    const withNumber = news.map((event) => ({ ...event, recipient: "+15550101" }));
    expect((await report(withNumber)).body).to.deep.equal({ taken: 1 });
    expect((await message(body.id)).status).to.equal("delivered");
    expect((await report(news)).body).to.deep.equal({ taken: 0 });
  });

  it("of Twilio get reports with its own signature", async () => {
    await useTwilio();
    answer = { status: 201, body: '{"sid": "SM2"}' };
    const { body } = await sms({ to: "+15550101", body: "x" });
    await waitForFinalStatus(body.id);
    const form = { MessageSid: "SM2", MessageStatus: "undelivered", ErrorCode: "30003" };
    const signed = service.url + path("events") + Object.entries(form).sort().flat().join("");
    const call = (key: string) =>
      service.rest("POST", path("events"), {
        as: null,
        body: new URLSearchParams(form).toString(),
        headers: {
          "content-type": "application/x-www-form-urlencoded",
          "x-twilio-signature": createHmac("sha1", key).update(signed).digest("base64"),
        },
      });
    expect((await call("wrong")).http).to.equal(401);
    expect((await call(TOKEN)).body).to.deep.equal({ taken: 1 });
    expect(await message(body.id)).to.include({ status: "bounced", detail: "30003" });
  });

  it("of e-mail get reports that become log events, each once, and never undo a status", async () => {
    await set({ __smtp: { secret: SECRET } });
    const { body } = await service.rest("POST", path("email"), {
      body: { to: [{ email: "ann@example.com" }], subject: "x", text: "y" },
    });
    await service.db.query("UPDATE message SET status = 'sent' WHERE id = $1", [body.id]);
    const received = [];
    for (const type of ["delivered", "bounced", "delivered", "complaint", "bounced"]) {
      received.push((await report([{ id: body.id, type, recipient: "ann@example.com", detail: "said" }])).body.taken);
    }
    expect(received).to.deep.equal([1, 1, 0, 1, 0]);
    expect((await message(body.id)).status).to.equal("complained");
    const sql = "SELECT type FROM log_event WHERE data->>'messageId' = $1 ORDER BY id";
    const types = await rows<{ type: string }>(service.db, sql, [String(body.id)]);
    expect(types.map(({ type }) => type)).to.deep.equal([
      "email.communicate",
      "email.delivered",
      "email.bounced",
      "email.complaint",
    ]);
  });

  it("of e-mail get the reports of each recipient, also in lower case", async () => {
    await set({ __smtp: { secret: SECRET } });
    const to = ["Ann@Example.com", "bob@example.com", "cem@example.com"].map((email) => ({ email }));
    const { body } = await service.rest("POST", path("email"), { body: { to, subject: "x", text: "y" } });
    await service.db.query("UPDATE message SET status = 'sent' WHERE id = $1", [body.id]);
    const events: [type: string, recipient?: string][] = [
      ["bounced", "ann@example.com"],
      ["bounced", "bob@example.com"],
      ["delivered", "bob@example.com"],
      ["bounced", "bob@example.com"],
      ["delivered"],
    ];
    const reports = events.map(([type, recipient]) => ({ id: body.id, type, recipient }));
    expect((await report(reports)).body).to.deep.equal({ taken: 3 });
    const stored = await message(body.id);
    expect(stored.status).to.equal("bounced");
    const statuses = stored.to.map(({ status }: { status: string }) => status);
    expect(statuses).to.deep.equal(["bounced", "bounced", "delivered"]);
    const sql = "SELECT type, data->'to' AS list FROM log_event WHERE data->>'messageId' = $1 ORDER BY id OFFSET 1";
    const recipientsByType = await rows<{ type: string; list: string[] }>(service.db, sql, [String(body.id)]);
    expect(recipientsByType.map(({ type, list }) => [type, ...list])).to.deep.equal([
      ["email.bounced", "Ann@Example.com"],
      ["email.bounced", "bob@example.com"],
      ["email.delivered", "cem@example.com"],
    ]);
  });

  it("have the detail of a report masked before a transaction uses a connection", async () => {
    await set({ __smtp: { secret: SECRET } });
    const { body } = await service.rest("POST", path("email"), {
      body: { to: [{ email: "ann@example.com" }], subject: "x", text: "y" },
    });
    await service.db.query("UPDATE message SET status = 'sent' WHERE id = $1", [body.id]);
    const held: unknown[] = [];
    const reports = new DeliveryReports({
      db: service.db,
      logEvents: { emit: async () => undefined } as never,
      destinations: {
        readReportSecret: async () => SECRET,
        async maskSecrets(_appId: number, text: string) {
          const sql = "SELECT FROM message WHERE id = $1 FOR UPDATE SKIP LOCKED";
          held.push((await rows(service.db, sql, [body.id])).length === 0);
          return text;
        },
      } as never,
    });
    const text = JSON.stringify({ events: [{ id: body.id, type: "delivered", detail: "said" }] });
    const signed = createBodySignature(SECRET, text, Math.floor(Date.now() / 1000));
    const request = { address: "", body: text, url: "", signature: signed, twilioSignature: null };
    expect(await reports.report(service.appId, request)).to.deep.equal({ taken: 1 });
    expect(held).to.deep.equal([false]);
  });
});
