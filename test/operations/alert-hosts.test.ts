import { expect } from "chai";
import { type AlertHook, startAlertHook } from "../harness/alert-hook.js";
import type { TestService } from "../harness/service.js";
import { useSharedService } from "../harness/shared-service.js";
import { until } from "../harness/until.js";

const SECRET = "a-secret-to-sign-with";

describe("alerts to hosts that an app names", () => {
  let hook: AlertHook;
  let service: TestService;
  before(async () => {
    hook = await startAlertHook();
    service = await useSharedService("api");
  });
  after(async () => {
    await service.stop();
    await hook.stop();
  });

  const path = (rest: string) => `/v1/apps/${service.appId}${rest}`;
  const setSettings = (body: object) => service.rest("POST", path("/settings"), { body });
  const create = async (rule: object) => (await service.rest("POST", path("/alerts"), { body: rule })).body;

  it("reach no private address, by any name, and report only that", async () => {
    await setSettings({
      __hook: { url: hook.url.replace("http:", "https:"), secret: SECRET },
      __meta: "https://169.254.169.254/latest",
    });
    const base = { name: "inside", condition: "failed", channel: "webhook", setting: "__hook" };
    const plain = { ...base, channel: "slack", setting: "__meta", name: "metadata" };
    for (const rule of [base, plain]) {
      const { id } = (await create(rule)).alert;
      await service.rest("POST", path(`/alerts/${id}/test`));
      const [delivery] = await until(async () => {
        const { deliveries } = (await service.rest("GET", path(`/alerts/${id}/deliveries`))).body;
        return deliveries[0]?.status === "failed" && deliveries;
      });
      expect(delivery.detail).to.match(
        /^(the service does not connect to port \d+|the host has an IP address that is not public)$/,
      );
    }
    expect(hook.receivedAlerts).to.deep.equal([]);
    await setSettings({ __hook: { url: hook.url, secret: SECRET } });
    expect((await create({ ...base, name: "http" })).error).to.contain('"url" with an https URL');
  });
});
