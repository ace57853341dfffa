import { expect } from "chai";
import type { Browser, Page } from "puppeteer";
import { startTestService, type TestService } from "../harness/service.js";
import { launchChromium } from "./chromium.js";

interface Settled {
  // biome-ignore lint/suspicious/noExplicitAny: the value depends on the operation
  value?: any;
  refused?: { isError: boolean; status: string; error: string };
}

const ECHO = "async function execute({ payload }) { return [payload, 1]; }";

/** Tests the client library in Chromium with the real service. */
describe("Svc.App.V3.Actions in a browser, against the service", () => {
  let service: TestService;
  let browser: Browser;
  let page: Page;

  before(async () => {
    [service, browser] = await Promise.all([startTestService(), launchChromium()]);
    const actions = `/v3/apps/${service.appId}/actions`;
    const { body } = await service.rest("POST", actions, { body: { name: "page", code: ECHO, environment: "client" } });
    await service.rest("POST", `/v1/apps/${service.appId}/publish`);
    page = await browser.newPage();
    await browser.setCookie({ name: "auth_token", value: service.tokens.editor, domain: "127.0.0.1" });
    await page.goto(`${service.url}${actions}/${body.action.id}/compile?html`);
    // The page has a viewer's token, but these operations need an editor's token.
    await page.evaluate(`Svc.configure({ token: "${service.tokens.editor}" })`);
  });
  after(async () => {
    await browser?.close();
    await service?.stop();
  });

  const call = (operation: string, ...parameters: unknown[]): Promise<Settled> =>
    page.evaluate(
      `Svc.App.V3.Actions.${operation}(...${JSON.stringify(parameters)}).then((value) => ({ value }), (failed) =>
         ({ refused: { isError: failed instanceof Error, status: failed.status, error: failed.error } }))`,
    ) as Promise<Settled>;

  async function value(operation: string, ...parameters: unknown[]) {
    const settled = await call(operation, ...parameters);
    expect(settled.refused, operation).to.equal(undefined);
    return settled.value;
  }

  async function expectRefusal(status: string, operation: string, ...parameters: unknown[]): Promise<void> {
    const { refused } = await call(operation, ...parameters);
    expect(refused, operation).to.deep.include({ isError: true, status });
    expect(refused?.error, operation).to.be.a("string").that.is.not.empty;
  }

  const manual = (name: string) => ({ name, code: ECHO, active: true, triggers: [{ trigger: "manual" }] });

  it("create, getById, update and get return the action without a wrapper, and the list with its pagination", async () => {
    const created = await value("create", { ...manual("written"), description: "first" });
    expect(created).to.include({ appId: service.appId, name: "written", environment: "server", active: true });
    expect(await value("getById", created.id)).to.deep.equal(created);
    const updated = await value("update", created.id, { description: null, frequency: "0 9 * * *" });
    expect(updated).to.deep.include({ id: created.id, code: ECHO, description: null, frequency: "0 9 * * *" });
    const newer = await value("create", manual("newer"));
    const first = await value("get", { limit: 1 });
    expect(first).to.deep.equal({ actions: [newer], pagination: { total: 3, hasMore: true } });
    const { actions, pagination } = await value("get", { limit: 2, offset: 1 });
    expect([actions[0].id, actions.length, pagination]).to.deep.equal([created.id, 2, { total: 3, hasMore: false }]);
    expect((await value("get")).actions).to.have.length(3);
  });

  it("publish returns {action}, the live version; unpublish and remove return nothing", async () => {
    const { id } = await value("create", manual("published"));
    const { action, ...more } = await value("publish", id);
    expect(more).to.deep.equal({});
    expect(action).to.deep.include({ name: "published", code: ECHO });
    expect(action.id).to.not.equal(id);
    expect(await value("unpublish", id)).to.equal(undefined);
    await expectRefusal("ACTION_NOT_PUBLISHED", "unpublish", id);
    expect(await value("remove", id)).to.equal(undefined);
    await expectRefusal("ACTION_NOT_FOUND", "getById", id);
  });

  it("run returns nothing, runWithResult the result of execute, by name and by ID, and getLogs the entries of both", async () => {
    const { id } = await value("create", manual("runnable"));
    expect(await value("runWithResult", "runnable", { a: [null] })).to.deep.equal([{ a: [null] }, 1]);
    expect(await value("runWithResult", id)).to.deep.equal([{}, 1]);
    expect(await value("run", "runnable", { queued: true })).to.equal(undefined);
    await page.waitForFunction(`Svc.App.V3.Actions.getLogs({ id: ${id} }).then(({ count }) => count === 3)`, {
      polling: 50,
    });
    const options = { id, where: { type: "app.task.completed", data: { taskId: id } }, limit: 2, offset: 1 };
    const { count, logs, ...more } = await value("getLogs", options);
    expect([count, more]).to.deep.equal([3, {}]);
    expect(logs.map(({ data }: { data: { payload: object } }) => data.payload)).to.deep.equal([{}, { a: [null] }]);
    expect(logs[1].data).to.deep.include({ mode: "on-demand", runOn: "server", taskId: id });
    expect(logs[1].data.result).to.deep.equal({ data: [{ a: [null] }, 1], success: true });
  });

  it("reject with {status, error} for missing resources", async () => {
    await value("create", { ...manual("in-client"), environment: "client" });
    await value("create", { ...manual("inactive"), active: false });
    await value("create", { ...manual("failing"), code: "async function execute() { throw new TypeError('mine'); }" });
    await expectRefusal("NAME_ALREADY_EXISTS", "create", manual("inactive"));
    await expectRefusal("NAME_REQUIRED", "create", {});
    await expectRefusal("ACTION_NOT_FOUND", "update", 999_999, { active: true });
    await expectRefusal("ACTION_NOT_FOUND", "remove", 999_999);
    await expectRefusal("ACTION_NOT_FOUND", "publish", 999_999);
    for (const operation of ["run", "runWithResult"]) {
      await expectRefusal("CLIENT_ACTION_NOT_RUNNABLE", operation, "in-client");
      await expectRefusal("ACTION_INACTIVE", operation, "inactive");
      await expectRefusal("ACTION_NOT_FOUND", operation, "nowhere");
    }
    await expectRefusal("EXECUTION_FAILED", "runWithResult", "failing");
  });
});
