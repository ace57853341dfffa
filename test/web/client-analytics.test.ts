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
    expect(sent.map((one) => eventNames(one)[0])).to.deep.equal(["one 0", "two 0"]);
  });
});
