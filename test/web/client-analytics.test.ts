import { expect } from "chai";
import { useClientPage } from "./client-page.js";

const ANALYTICS_PATH = "/v1/apps/1/analytics";

describe("Svc.App.Analytics in a browser", () => {
  const client = useClientPage();

  const eventNames = ({ body }: { body: unknown }) =>
    (body as { events: { data: { name: string } }[] }).events.map(({ data }) => data.name);

  it("leaves out an event of more than 32 KB, so that the others of its batch are recorded", async () => {
    await client.run(`
      Svc.App.Analytics.event("first");
      Svc.App.Analytics.event("large", { text: "é".repeat(16_384) });
      Svc.App.Analytics.event("last");`);
    const [sent] = await client.service.requests(ANALYTICS_PATH);
    expect(eventNames(sent!)).to.deep.equal(["first", "last"]);
  });

  it("does not send events again that the service has, if its response was cut off", async () => {
    client.service.answers.set(`POST ${ANALYTICS_PATH}`, { cut: "after the headers" });
    await client.run(`for (let n = 0; n < 20; n += 1) Svc.App.Analytics.event("one " + n)`);
    await client.service.requests(ANALYTICS_PATH);
    client.service.answers.clear();
    await client.run(`for (let n = 0; n < 20; n += 1) Svc.App.Analytics.event("two " + n)`);
    const sent = await client.service.requests(ANALYTICS_PATH, 2);
    expect(sent.map((request) => eventNames(request)[0])).to.deep.equal(["one 0", "two 0"]);
  });

  for (const [http, status] of [
    [503, "OVERLOADED"],
    [429, "RATE_LIMIT_EXCEEDED"],
  ] as const) {
    it(`sends events again, once and after the stated time, that the service has rejected with ${status}`, async () => {
      const body = { status, error: "try again", retryAfter: 2 };
      client.service.answers.set(`POST ${ANALYTICS_PATH}`, { status: http, body });
      await client.run(`for (let n = 0; n < 20; n += 1) Svc.App.Analytics.event("one " + n)`);
      await client.service.requests(ANALYTICS_PATH);
      const rejectedAt = performance.now();
      client.service.answers.clear();
      // Waits until the first request has ended. So the page adds the next events during its pause after the rejection.
      await client.page.waitForNetworkIdle({ idleTime: 200 });
      await client.run(`for (let n = 0; n < 20; n += 1) Svc.App.Analytics.event("two " + n)`);
      const sent = await client.service.requests(ANALYTICS_PATH, 3);
      expect(performance.now() - rejectedAt).to.be.at.least(1_900);
      expect(sent.map((request) => eventNames(request)[0])).to.deep.equal(["one 0", "one 0", "two 0"]);
      await client.run(`for (let n = 0; n < 20; n += 1) Svc.App.Analytics.event("three " + n)`);
      const all = await client.service.requests(ANALYTICS_PATH, 4);
      expect(eventNames(all[3]!)[0]).to.equal("three 0");
    });
  }

  it("sends at most 100 events a request when the page closes, because the service would reject more", async () => {
    const rejection = { status: 503, body: { status: "OVERLOADED", error: "try again", retryAfter: 60 } };
    client.service.answers.set(`POST ${ANALYTICS_PATH}`, rejection);
    await client.run(`for (let n = 0; n < 20; n += 1) Svc.App.Analytics.event("one " + n)`);
    await client.service.requests(ANALYTICS_PATH);
    await client.page.waitForNetworkIdle({ idleTime: 200 });
    await client.run(`for (let n = 0; n < 100; n += 1) Svc.App.Analytics.event("two " + n)`);
    await client.page.goto("about:blank");
    const [, ...last] = await client.service.requests(ANALYTICS_PATH, 3);
    expect(last.map((request) => eventNames(request).length).sort()).to.deep.equal([100, 20]);
  });
});
