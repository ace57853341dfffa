/** Tests messages that the service must refuse: header injection, floods, and internal hosts. */
import { expect } from "chai";
import { type MailServer, startMailServer } from "../harness/mail-server.js";
import { startTestService, type TestService } from "../harness/service.js";
import { until } from "../harness/until.js";

const RECIPIENT = [{ email: "ann@example.com" }];
const LINE_BREAKS = ["\r\nBcc: eve@example.com", "\nBcc: eve@example.com", "\rX: y", "\u2028X: y", "\0", "\x0b"];

describe("messages under attack", () => {
  let service: TestService;
  let server: MailServer;

  before(async () => {
    [service, server] = await Promise.all([startTestService({ ROLES: "api,scheduler" }), startMailServer()]);
  });
  after(async () => {
    await service.stop();
    await server.stop();
  });

  const path = (rest: string) => `/v1/apps/${service.appId}/communicate/${rest}`;
  const send = (more: object) =>
    service.rest("POST", path("email"), { body: { to: RECIPIENT, subject: "x", text: "y", ...more } });
  const set = (body: object) => service.rest("POST", `/v1/apps/${service.appId}/settings`, { body });
  const ended = (id: number) =>
    until(async () => {
      const { message } = (await service.rest("GET", path(`messages/${id}`))).body;
      return message.status === "queued" ? null : message;
    });

  it("no line break gets into a header, by any field and in any notation", async () => {
    for (const end of LINE_BREAKS) {
      for (const body of [
        { subject: `x${end}` },
        { subject: "{{a}}", data: { a: `x${end}` } },
        { from_name: `x${end}` },
        { to: [{ email: "ann@example.com", name: `x${end}` }] },
        { to: [{ email: `ann@example.com${end}` }] },
        { headers: { "X-A": `x${end}` } },
        { headers: { [`X-A${end}`]: "x" } },
        { attachments: [{ name: `x${end}`, content: "x" }] },
        { attachments: [{ name: "x", content: "x", type: `text/plain${end}` }] },
      ]) {
        const { http, body: answer } = await send(body);
        expect([http, answer.status], JSON.stringify(body)).to.deep.equal([400, "REQUEST_INVALID"]);
      }
    }
  });

  it("no header that the service sets can be set from outside", async () => {
    for (const name of [
      "From",
      "sender",
      "BCC",
      "Content-Type",
      "Message-ID",
      "DKIM-Signature",
      "Return-Path",
      "Resent-To",
    ]) {
      expect((await send({ headers: { [name]: "x" } })).body.error, name).to.contain("headers");
    }
  });

  it("invalid addresses, invalid lists, and more than 1,000 recipients are rejected by name", async () => {
    const many = Array.from({ length: 1_001 }, (_, n) => ({ email: `a${n}@example.com` }));
    const bad = [
      "a",
      "a@",
      "@b",
      "a@b@c d",
      "a b@c.d",
      "<a@b.c>",
      "a@b..c",
      ".a@b.c",
      "a@-b.c",
      `${"a".repeat(65)}@b.c`,
      "ü@b.c",
    ];
    for (const to of [
      undefined,
      [],
      {},
      "ann@example.com",
      many,
      ...bad.map((email) => [{ email }]),
      [{ email: "a@b.c", type: "x" }],
    ]) {
      const { http, body } = await send({ to });
      expect([http, body.error.startsWith("to")], JSON.stringify(to)?.slice(0, 60)).to.deep.equal([400, true]);
    }
  });

  it("data that would turn a megabyte into gigabytes is rejected in limited time", async () => {
    const { http, body } = await send({ html: "{{a}}".repeat(60_000), data: { a: "x".repeat(400_000) } });
    expect([http, body.error.startsWith("html is longer than")]).to.deep.equal([400, true]);
  });

  it("a name in a template cannot reach a prototype", async () => {
    const { body } = await send({ text: "{{constructor.name}}{{__proto__.a}}{{a.length}}", data: { a: "xyz" } });
    const { message } = (await service.rest("GET", path(`messages/${body.id}`))).body;
    expect(message.text).to.equal("");
  });

  it("an attachment is decoded by its encoding, and its name has no path", async () => {
    const named = (name: string, more = {}) => send({ attachments: [{ name, content: "x", ...more }] });
    for (const answer of [
      await named("../x"),
      await named("a\\b"),
      await named("x", { encoding: "base64" }),
      await named("x", { encoding: "latin1" }),
      await named("x", { path: "/etc/passwd", content: undefined }),
    ]) {
      expect([answer.http, answer.body.error.startsWith("attachments[0]")]).to.deep.equal([400, true]);
    }
  });

  it("the service does not connect to a private host that an app names, by name or by address", async () => {
    for (const host of ["127.0.0.1", "localhost", "[::1]", "169.254.169.254", "10.0.0.1"]) {
      await set({ __smtp: { host, port: host === "127.0.0.1" ? 25 : 587, from: "a@example.com" } });
      const { body } = await send({});
      const message = await ended(body.id);
      expect([message.status, message.detail], host).to.deep.equal([
        "failed",
        "the host has an IP address that is not public",
      ]);
    }
    await set({ __smtp: { host: "example.com", port: 6379, from: "a@example.com" } });
    expect((await ended((await send({})).body.id)).detail).to.equal("the service does not connect to port 6379");
    const sendSms = async (url: string) => {
      await set({ __sms: { provider: "webhook", url, secret: "x" } });
      return service.rest("POST", path("sms"), { body: { to: "+15550100", body: "x" } });
    };
    const refused = await sendSms("http://169.254.169.254/latest");
    expect([refused.http, refused.body.status]).to.deep.equal([400, "SETTINGS_INVALID"]);
    const sms = await sendSms("https://169.254.169.254/latest");
    expect((await ended(sms.body.id)).status).to.equal("failed");
    expect(server.acceptedMessages).to.deep.equal([]);
  });

  it("an invalid setting is rejected by its field, without its value", async () => {
    for (const [setting, field] of [
      [{ host: "mail.example.com", port: "secret-port", from: "a@example.com" }, "port"],
      [{ host: "secret host", from: "a@example.com" }, "host"],
      [{ host: "mail.example.com", from: "secret-from" }, "from"],
      [{ host: "mail.example.com", from: "a@example.com", secure: "secret" }, "secure"],
      ["a secret text", "__smtp"],
    ] as const) {
      await set({ __smtp: setting });
      const { http, body } = await send({});
      expect([http, body.status]).to.deep.equal([400, "SETTINGS_INVALID"]);
      expect(body.error).to.contain(field).and.not.contain("secret");
    }
  });
});
