import { setTimeout as delay } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import { expect } from "chai";
import type { Browser, Page } from "puppeteer";
import { type Network, startNetwork } from "../harness/network.js";
import { startTestService, type TestService } from "../harness/service.js";
import { until } from "../harness/until.js";
import { launchChromium } from "../web/chromium.js";

const OFFLINE_MS = 30_000;
const ON_PAGE_VIEW = [{ trigger: "analytics", where: { type: "analytics.pageView" } }];
/** Returns the code of an action that adds `label` to the set `window.ran`. The set shows which code has run in the page. */
const createRecordingCode = (label: string) =>
  `async function execute() { (window.ran ??= new Set()).add(${JSON.stringify(label)}); }`;

describe("an open page without a network for 30 s", () => {
  let service: TestService;
  let browser: Browser;
  let page: Page;
  let network: Network;
  before(async () => {
    network = await startNetwork();
    [service, browser] = await Promise.all([startTestService({ PUBLIC_URL: network.url }), launchChromium()]);
    network.setTarget(service.url);
    page = await browser.newPage();
  });
  after(async () => {
    await browser?.close();
    await service?.stop();
    await network?.stop();
  });

  const actions = () => `/v3/apps/${service.appId}/actions`;
  const post = async (path: string, body?: object) => (await service.rest("POST", path, { body })).body;

  async function createPublished(name: string): Promise<number> {
    const input = {
      name,
      code: createRecordingCode(name),
      active: true,
      environment: "client",
      triggers: ON_PAGE_VIEW,
    };
    const { id } = (await post(actions(), input)).action;
    await post(`${actions()}/${id}/publish`);
    return id;
  }

  /** Sends page views until one of them starts exactly these actions. */
  const waitForActions = (...expected: string[]) =>
    until(async () => {
      await page.evaluate("window.ran = new Set(); void Svc.App.Analytics.pageView({})");
      await delay(200);
      return isDeepStrictEqual(await page.evaluate("[...window.ran].sort()"), expected);
    }, 40_000);

  it("runs a newly published version within 2 s while it has a network", async () => {
    await post(`/v1/apps/${service.appId}/publish`);
    const master = await createPublished("first");
    await page.goto(`${network.url}/apps/${service.appId}`);
    await waitForActions("first");
    await service.rest("PUT", `${actions()}/${master}`, { body: { code: createRecordingCode("second") } });
    await post(`${actions()}/${master}/publish`);
    const startedAt = Date.now();
    await waitForActions("second");
    expect(Date.now() - startedAt).to.be.below(2_000);
    await service.rest("DELETE", `${actions()}/${master}`);
  });

  it("then runs the actions that were changed or added in the meantime, and none that was removed or unpublished", async () => {
    await post(`/v1/apps/${service.appId}/publish`);
    const [changed, removed, unpublished] = [
      await createPublished("old"),
      await createPublished("gone"),
      await createPublished("over"),
    ];
    await page.goto(`${network.url}/apps/${service.appId}`);
    await waitForActions("gone", "old", "over");
    network.cut();
    await service.rest("PUT", `${actions()}/${changed}`, { body: { code: createRecordingCode("new") } });
    await post(`${actions()}/${changed}/publish`);
    await service.rest("DELETE", `${actions()}/${removed}`);
    await delay(OFFLINE_MS);
    await post(`${actions()}/${unpublished}/unpublish`);
    await createPublished("added");
    network.restore();
    const restored = Date.now();
    await waitForActions("added", "new");
    process.stdout.write(`${JSON.stringify({ caughtUpMs: Date.now() - restored })}\n`);
    const copies = await service.db.query("SELECT name FROM action WHERE master_id IS NOT NULL ORDER BY name");
    expect(copies).to.deep.equal([{ name: "added" }, { name: "old" }]);
  });
});
