/**
 * Tests messages with a real mail server. The service stores each message before it sends the message, and sends it only once. Each message
 * gets one final status.
 */
import { expect } from "chai";
import { rows } from "../../src/data/database.js";
import { createBodySignature } from "../../src/operations/communicate/sms-delivery.js";
import { type MailServer, startMailServer } from "../harness/mail-server.js";
import { insertPublishedActions } from "../harness/published-actions.js";
import { startTestService, type TestService } from "../harness/service.js";
import { until } from "../harness/until.js";

const HOUR_MS = 3_600_000;
const RECIPIENT = [{ email: "ann@example.com", name: "Ann" }];
const ORDER_MAIL = { to: RECIPIENT, subject: "Your order", text: "It has shipped." };
const PASSWORD = "a-long-mail-password";

describe("messages", () => {
  let service: TestService;
  let server: MailServer;
  let moved = 0;

  before(async () => {
    const clock = { now: () => Date.now() + moved, msUntil: (time: number) => time - Date.now() - moved };
    server = await startMailServer();
    service = await startTestService({ ROLES: "api,scheduler", ALLOW_PRIVATE_NETWORK: "1" }, undefined, { clock });
  });
  after(async () => {
    await service.stop();
    await server.stop();
  });
  beforeEach(async () => {
    server.acceptedMessages.length = 0;
    server.behaviour = {};
    await setSmtp({});
  });

  const path = (rest: string) => `/v1/apps/${service.appId}/communicate/${rest}`;
  const settings = (body: object) => service.rest("POST", `/v1/apps/${service.appId}/settings`, { body });
  const setSmtp = (more: object) =>
    settings({ __smtp: { host: "127.0.0.1", port: server.port, from: "Shop <shop@example.com>", ...more } });
  const send = (body: object = ORDER_MAIL) => service.rest("POST", path("email"), { body });
  const message = async (id: number) => (await service.rest("GET", path(`messages/${id}`))).body.message;
  const ended = (id: number) =>
    until(async () => {
      const found = await message(id);
      return found.status === "queued" ? null : found;
    });
  const tried = (id: number, attempts: number) =>
    until(async () => {
      const sql = "SELECT FROM message WHERE id = $1 AND attempts >= $2 AND holder IS NULL";
      return (await rows(service.db, sql, [id, attempts])).length > 0 ? message(id) : null;
    });
  /** Sets the clock to just after this time, and notifies the sender, which then sends the messages that are due. */
  async function moveTo(iso: string): Promise<void> {
    moved = Date.parse(iso) - Date.now() + 1;
    await service.db.query("SELECT pg_notify('svc_message', '')");
  }
  const events = async (type: string, messageId: number) => {
    const sql = "SELECT data FROM log_event WHERE type = $1 AND data->>'messageId' = $2 ORDER BY id";
    const found = await rows<{ data: Record<string, unknown> }>(service.db, sql, [type, String(messageId)]);
    return found.map(({ data }) => data);
  };

  it("are sent once each, with their data filled in, and get the status sent", async () => {
    const { http, body } = await send({
      to: [...RECIPIENT, { email: "bob@example.com", type: "cc" }, { email: "eve@example.com", type: "bcc" }],
      subject: "Order {{order.id}}",
      from_name: "The shop",
      html: "<p>Dear {{name}}</p>",
      headers: { "X-Order": "7" },
      attachments: [{ type: "text/csv", name: "list.csv", content: "YSxi", encoding: "base64" }],
      data: { name: "<b>Ann</b>", order: { id: 7 } },
    });
    expect([http, body.status]).to.deep.equal([202, "queued"]);
    expect(await ended(body.id)).to.include({ status: "sent", attempts: 1 });
    expect(server.acceptedMessages).to.have.length(1);
    const [{ text, to, from }] = server.acceptedMessages as [MailServer["acceptedMessages"][0]];
    expect(to).to.deep.equal(["ann@example.com", "bob@example.com", "eve@example.com"]);
    expect(from).to.equal("shop@example.com");
    expect(text)
      .to.contain("Subject: Order 7")
      .and.contain("From: The shop <shop@example.com>")
      .and.contain("X-Order: 7");
    expect(text)
      .to.contain("Dear &lt;b&gt;Ann&lt;/b&gt;")
      .and.contain("Cc: bob@example.com")
      .and.not.contain("eve@example.com");
    expect(text).to.contain("list.csv").and.contain("YSxi");
    expect(await events("email.communicate", body.id)).to.deep.include.members([
      { messageId: body.id, to, recipients: 3, detail: null, subject: "Order 7" },
    ]);
  });

  it("have each address once, in its most visible list", async () => {
    const to = [
      { email: "ann@example.com", type: "bcc" },
      { email: "Ann@example.com", name: "Ann" },
      { email: "bob@example.com", type: "cc" },
      { email: "bob@example.com", type: "bcc" },
    ];
    const { body } = await send({ to, subject: "Order 7", text: "shipped" });
    await ended(body.id);
    const [accepted] = server.acceptedMessages as [MailServer["acceptedMessages"][0]];
    expect(accepted.to).to.deep.equal(["Ann@example.com", "bob@example.com"]);
    expect(accepted.text)
      .to.match(/^To: .*Ann@example\.com/m)
      .and.contain("Cc: bob@example.com");
  });

  it("are stored and not sent if no server or provider is set", async () => {
    await service.rest("DELETE", `/v1/apps/${service.appId}/settings`, { body: { keys: ["__smtp"] } });
    const { body } = await send();
    expect(body.status).to.equal("kept");
    const kept = await message(body.id);
    expect(kept).to.include({ status: "kept", text: ORDER_MAIL.text, subject: ORDER_MAIL.subject });
    expect(kept.updatedAt, "nothing has changed since").to.equal(kept.createdAt);
    const listed = await service.rest("GET", path("messages?kind=email&status=kept&limit=1"));
    expect(listed.body.messages[0]).to.include({ id: body.id, status: "kept", recipients: 1 });
    expect(server.acceptedMessages).to.deep.equal([]);
  });

  it("that the server rejects for an hour are sent when it accepts them, with the same Message-ID", async () => {
    const ids = new Set<string>();
    server.behaviour.onData = ({ messageId }) => {
      ids.add(messageId);
      return { code: 451, message: "try again later" };
    };
    const { body } = await send();
    let found = await tried(body.id, 1);
    expect(found).to.include({ status: "queued", detail: "451 try again later" });
    const movedBefore = moved;
    while (moved - movedBefore < HOUR_MS) {
      await moveTo(found.dueAt);
      found = await tried(body.id, found.attempts + 1);
      expect(found.status).to.equal("queued");
    }
    expect(found.attempts).to.be.within(5, 12);
    server.behaviour = {};
    await moveTo(found.dueAt);
    expect((await ended(body.id)).status).to.equal("sent");
    expect(server.acceptedMessages.map(({ messageId }) => messageId)).to.deep.equal([...ids]);
    expect(await events("email.delayed", body.id)).to.have.length(1);
  });

  it("that no server accepts for 24 hours fail, and are not tried again", async () => {
    await setSmtp({ port: 1 });
    const { body } = await send();
    await tried(body.id, 1);
    await moveTo(new Date(Date.now() + moved + 25 * HOUR_MS).toISOString());
    const found = await ended(body.id);
    expect(found.status).to.equal("failed");
    expect(found.detail).to.contain("ECONNREFUSED");
  });

  it("that the server may have accepted are not sent again: their status is unknown", async () => {
    server.behaviour.onData = () => "accept and disconnect";
    const { body } = await send();
    expect(await ended(body.id)).to.include({ status: "unknown", attempts: 1 });
    await moveTo(new Date(Date.now() + moved + HOUR_MS).toISOString());
    expect((await send()).http).to.equal(202);
    await server.waitForMessages(2);
    expect(
      server.acceptedMessages.filter(({ messageId }) => messageId === server.acceptedMessages[0]!.messageId),
    ).to.have.length(1);
  });

  it("that are unknown wait for a person, who marks them as sent or sends them again", async () => {
    server.behaviour.onData = () => "accept and disconnect";
    const first = (await send()).body.id;
    await ended(first);
    const second = (await send()).body.id;
    await ended(second);
    server.behaviour = {};
    const decide = (id: number, decision: string, as = "editor") =>
      service.rest("POST", path(`messages/${id}/decide`), { body: { decision }, as });
    expect((await decide(first, "sent", "api")).http).to.equal(403);
    expect((await decide(first, "perhaps")).body.status).to.equal("REQUEST_INVALID");
    expect((await decide(first, "sent")).body.message.status).to.equal("sent");
    expect((await decide(second, "again")).body.message.status).to.equal("queued");
    expect((await ended(second)).status).to.equal("sent");
    expect(server.acceptedMessages.map(({ messageId }) => messageId)[2]).to.equal(
      server.acceptedMessages[1]!.messageId,
    );
    const { http, body } = await decide(first, "again");
    expect([http, body.status]).to.deep.equal([409, "MESSAGE_DECIDED"]);
    const trail = await service.rest("GET", `/v1/apps/${service.appId}/audit?limit=2`);
    expect(trail.body.entries[0]).to.deep.include({
      type: "app.message.decide",
      data: { messageId: second, decision: "again" },
    });
  });

  it("have a result for each recipient as the server decides", async () => {
    const answers: Record<string, number[]> = { "later@example.com": [450, 450], "never@example.com": [550] };
    server.behaviour.onRecipient = (address) => {
      const code = answers[address]?.shift();
      return code ? { code, message: `no ${address}` } : null;
    };
    const { body } = await send({
      ...ORDER_MAIL,
      to: [...RECIPIENT, { email: "later@example.com" }, { email: "never@example.com" }],
    });
    for (const attempts of [1, 2]) {
      const { dueAt, status } = await tried(body.id, attempts);
      expect(status).to.equal("queued");
      await moveTo(dueAt);
    }
    const found = await ended(body.id);
    expect(found.status).to.equal("sent");
    expect(found.to.map(({ status }: { status: string }) => status)).to.deep.equal(["sent", "sent", "rejected"]);
    expect(server.acceptedMessages.map(({ to }) => to)).to.deep.equal([["ann@example.com"], ["later@example.com"]]);
    const [rejected] = await events("email.rejected", body.id);
    expect(rejected).to.deep.include({ to: ["never@example.com"], recipients: 1 });
  });

  it("keep the delivery report of one recipient while they wait for another one", async () => {
    const secret = "a-secret-of-reports";
    await setSmtp({ secret });
    let id = 0;
    const report = async (type: string, recipient?: string) => {
      const body = JSON.stringify({ events: [{ id, type, recipient }] });
      const signature = createBodySignature(secret, body, Math.floor(Date.now() / 1000));
      const headers = { "svc-signature": signature, "content-type": "application/json" };
      return (await service.rest("POST", path("events"), { as: null, body, headers })).body.taken;
    };
    const refusal = { code: 450, message: "busy" };
    server.behaviour.onRecipient = (address) => (address === "later@example.com" ? refusal : null);
    const to = ["ann@example.com", "bob@example.com", "later@example.com"].map((email) => ({ email }));
    ({ id } = (await send({ ...ORDER_MAIL, to })).body);
    const { dueAt } = await tried(id, 1);
    const reportCounts = [];
    for (const type of ["bounced", "bounced", "delayed"]) reportCounts.push(await report(type, "ann@example.com"));
    reportCounts.push(await report("delivered", "later@example.com"));
    expect(reportCounts).to.deep.equal([1, 0, 0, 0]);
    expect(await message(id)).to.include({ status: "queued", attempts: 1 });
    // This report arrives during the next attempt. The attempt must not overwrite the status that the report sets.
    server.behaviour.onRecipient = async () => {
      reportCounts.push(await report("delivered", "bob@example.com"));
      return null;
    };
    await moveTo(dueAt);
    const found = await ended(id);
    expect(reportCounts.at(-1)).to.equal(1);
    expect(found.status).to.equal("bounced");
    expect(found.to.map(({ status }: { status: string }) => status)).to.deep.equal(["bounced", "delivered", "sent"]);
    expect(await report("delivered")).to.equal(1);
    expect((await events("email.bounced", id)).map(({ to }) => to)).to.deep.equal([["ann@example.com"]]);
    expect((await events("email.delivered", id)).map(({ to }) => to)).to.deep.equal([
      ["bob@example.com"],
      ["later@example.com"],
    ]);
  });

  it("that the server rejects start the actions with that trigger", async () => {
    server.behaviour.onData = () => ({ code: 550, message: "spam" });
    const [copy] = await insertPublishedActions(service.db, service.appId, [
      { name: "on-rejected", triggers: [{ trigger: "log", where: { type: "email.rejected" } }] },
    ]);
    const { body } = await send();
    expect((await ended(body.id)).status).to.equal("rejected");
    const started = await rows(service.db, "SELECT FROM run WHERE trigger = 'log' AND action_id = $1", [copy!.id]);
    expect(started).to.have.length(1);
  });

  it("never show the app's credentials if a server repeats them", async () => {
    server.behaviour.auth = { user: "shop", password: "another one" };
    await setSmtp({ user: "shop-user", password: PASSWORD });
    const { body } = await send();
    const found = await ended(body.id);
    expect(found.status).to.equal("failed");
    expect(found.detail).to.contain("535 no such login");
    const all = JSON.stringify(await rows(service.db, "SELECT * FROM message"));
    for (const secret of [PASSWORD, Buffer.from(PASSWORD).toString("base64"), "shop-user"]) {
      expect(all).to.not.contain(secret);
    }
  });

  it("repeated under one Idempotency-Key are one message", async () => {
    const headers = { "idempotency-key": "order-7" };
    const ids = [];
    for (let call = 0; call < 2; call += 1) {
      ids.push((await service.rest("POST", path("email"), { body: ORDER_MAIL, headers })).body.id);
    }
    expect(ids[0]).to.equal(ids[1]);
    await ended(ids[0]);
    expect(server.acceptedMessages).to.have.length(1);
  });

  it("are rejected with the path of the invalid field, in either form of the call", async () => {
    const FAULTS: [fields: object, path: string][] = [
      [{ to: [] }, "to must be an array"],
      [{ subject: "a\nb" }, "subject must be"],
      [{ html: 1 }, "html must be a text"],
      [{ headers: { "X-A": 1 } }, "headers.X-A must be"],
      [{ headers: { "-": "a" } }, "each name in headers must be"],
      [{ attachments: [{ content: "a" }] }, "attachments[0].name must be"],
    ];
    for (const [fields, text] of FAULTS) {
      const mail = { ...ORDER_MAIL, ...fields };
      const startOf = (error: string, { length }: string) => error.slice(0, length);
      expect(startOf((await send(mail)).body.error, text)).to.equal(text);
      const inOptions = text.replace(/^(each name in )?/, "$1options.");
      expect(startOf((await send({ options: mail })).body.error, inOptions)).to.equal(inOptions);
    }
  });

  it("of a batch are all stored or none", async () => {
    const bad = [{ options: ORDER_MAIL }, { options: { ...ORDER_MAIL, to: [{ email: "no" }] } }];
    const refused = await service.rest("POST", path("email/batch"), { body: bad });
    expect(refused.body.error).to.contain("[1]: options.to[0].email");
    const { body } = await service.rest("POST", path("email/batch"), {
      body: ["a", "b"].map((name) => ({ options: { ...ORDER_MAIL, subject: "{{name}}" }, data: { name } })),
    });
    await server.waitForMessages(2);
    expect(server.acceptedMessages.map(({ text }) => /^Subject: (.*)$/m.exec(text)?.[1]).sort()).to.deep.equal([
      "a",
      "b",
    ]);
    expect(body.messages).to.have.length(2);
  });

  it("are the same over GraphQL", async () => {
    const sent = await service.graphql(
      `mutation ($app: Int!, $options: EmailInput) { sendEmail(appId: $app, options: $options, data: {n: 1}) { id status } }`,
      { app: service.appId, options: { ...ORDER_MAIL, subject: "n = {{n}}" } },
    );
    const { id } = sent.data.sendEmail;
    await ended(id);
    const read = await service.graphql(
      `query ($app: Int!, $id: Int!) {
        message(appId: $app, id: $id) { status subject to { address status } }
        messages(appId: $app, kind: email, limit: 1) { messages { id } pagination { total } }
      }`,
      { app: service.appId, id },
    );
    expect(read.data.message).to.deep.equal({
      status: "sent",
      subject: "n = 1",
      to: [{ address: "ann@example.com", status: "sent" }],
    });
    expect(read.data.messages.messages[0].id).to.equal(id);
  });

  it("cannot be sent with the token of an app user", async () => {
    for (const as of ["live", "viewer"]) {
      expect((await service.rest("POST", path("email"), { body: ORDER_MAIL, as })).http).to.equal(403);
      expect((await service.rest("GET", path("messages"), { as })).http).to.equal(403);
    }
  });
});
