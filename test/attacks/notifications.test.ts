/** Tests invalid push subscriptions: endpoints on internal hosts, faulty keys, and messages above the limit of push services. */
import { expect } from "chai";
import { startTestService, type TestService } from "../harness/service.js";

const SUBSCRIPTION_KEYS = {
  p256dh: "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
  auth: "BTBZMqHH6r4Tts7J_aSIgg",
};

describe("notifications under attack", () => {
  let service: TestService;

  before(async () => {
    service = await startTestService({ ROLES: "api" });
  });
  after(() => service.stop());

  const device = (body: unknown) =>
    service.rest("POST", `/v1/apps/${service.appId}/push/subscriptions`, { body, as: "live" });

  it("no device can have a private address, an address without TLS, or one with a password", async () => {
    for (const endpoint of [
      "http://push.example.net/a",
      "https://127.0.0.1/a",
      "https://[::1]/a",
      "https://10.0.0.1/a",
      "https://169.254.169.254/latest",
      "https://2130706433/",
      "https://a:b@push.example.net/",
      "file:///etc/passwd",
      "x".repeat(3_000),
      7,
    ]) {
      const { http, body } = await device({ endpoint, keys: SUBSCRIPTION_KEYS });
      expect([http, body.error.startsWith("endpoint")], String(endpoint)).to.deep.equal([400, true]);
    }
  });

  it("no device can have invalid keys", async () => {
    const endpoint = "https://push.example.net/a";
    for (const keys of [
      {},
      { ...SUBSCRIPTION_KEYS, auth: "x" },
      { ...SUBSCRIPTION_KEYS, p256dh: `${SUBSCRIPTION_KEYS.p256dh}AA` },
      { ...SUBSCRIPTION_KEYS, auth: [1] },
    ]) {
      const { http, body } = await device({ endpoint, keys });
      expect([http, body.error.startsWith("keys.")]).to.deep.equal([400, true]);
    }
  });

  it("one user has twenty devices at most", async () => {
    for (let n = 0; n < 22; n += 1)
      await device({ endpoint: `https://push.example.net/${n}`, keys: SUBSCRIPTION_KEYS });
    const { body } = await service.rest("GET", `/v1/apps/${service.appId}/push/subscriptions`, { as: "live" });
    expect(body.subscriptions).to.have.length(20);
  });

  it("nothing that is too large, too deep or not storable becomes a notification", async () => {
    let deep: unknown = 1;
    for (let level = 0; level < 60; level += 1) deep = { deep };
    for (const bad of [
      { data: { title: "x".repeat(40_000) } },
      { data: { deep } },
      { data: { title: "a\0b" } },
      { data: { title: "\ud800" } },
      { data: { title: 7 } },
      { data: [] },
      { orderAt: "tomorrow" },
      { status: "sent" },
      { pushNotification: { payload: { body: "x".repeat(4_000) } } },
      { pushNotification: { payload: {}, delayUntilTimestamp: 1e300 } },
    ]) {
      const { http, body } = await service.rest("POST", `/v1/apps/${service.appId}/notifications`, { body: bad });
      expect([http, body.status], JSON.stringify(bad).slice(0, 80)).to.deep.equal([400, "REQUEST_INVALID"]);
    }
  });
});
