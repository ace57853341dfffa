import { expect } from "chai";
import type { Browser, Page } from "puppeteer";
import type { TestService } from "../harness/service.js";
import { useSharedService } from "../harness/shared-service.js";
import { launchChromium } from "./chromium.js";

interface SettledCall {
  // biome-ignore lint/suspicious/noExplicitAny: the type depends on the operation
  value?: any;
  refused?: { isError: boolean; status: string; error: string };
}

const ECHO_CODE = "async function execute({ payload }) { return [payload, 1]; }";

describe("Svc.App.V3.Actions in a browser, against the service", () => {
  let service: TestService;
  let browser: Browser;
  let page: Page;

  before(async () => {
    [service, browser] = await Promise.all([useSharedService("api,runner"), launchChromium()]);
    const actions = `/v3/apps/${service.appId}/actions`;
    const { body } = await service.rest("POST", actions, {
      body: { name: "page", code: ECHO_CODE, environment: "client" },
    });
    await service.rest("POST", `/v1/apps/${service.appId}/publish`);
    page = await browser.newPage();
    await browser.setCookie({ name: "auth_token", value: service.tokens.editor, domain: "127.0.0.1" });
    await page.goto(`${service.url}${actions}/${body.action.id}/compile?html`);
    // Replaces the viewer's token of the page, because these operations need an editor's token.
    await page.evaluate(`Svc.configure({ token: "${service.tokens.editor}" })`);
  });
  after(async () => {
    await browser?.close();
    await service?.stop();
  });

  const callOperation = (operation: string, ...parameters: unknown[]): Promise<SettledCall> =>
    page.evaluate(
      `Svc.App.V3.Actions.${operation}(...${JSON.stringify(parameters)}).then((value) => ({ value }), (failed) =>
         ({ refused: { isError: failed instanceof Error, status: failed.status, error: failed.error } }))`,
    ) as Promise<SettledCall>;

  async function callForValue(operation: string, ...parameters: unknown[]) {
    const settled = await callOperation(operation, ...parameters);
    expect(settled.refused, operation).to.equal(undefined);
    return settled.value;
  }

  async function expectRejection(status: string, operation: string, ...parameters: unknown[]): Promise<void> {
    const { refused } = await callOperation(operation, ...parameters);
    expect(refused, operation).to.deep.include({ isError: true, status });
    expect(refused?.error, operation).to.be.a("string").that.is.not.empty;
  }

  const manualActionInput = (name: string) => ({
    name,
    code: ECHO_CODE,
    active: true,
    triggers: [{ trigger: "manual" }],
  });

  it("create, getById, update and get return the action without a wrapper, and the list with its pagination", async () => {
    const created = await callForValue("create", { ...manualActionInput("written"), description: "first" });
    expect(created).to.include({ appId: service.appId, name: "written", environment: "server", active: true });
    expect(await callForValue("getById", created.id)).to.deep.equal(created);
    const updated = await callForValue("update", created.id, { description: null, frequency: "0 9 * * *" });
    expect(updated).to.deep.include({ id: created.id, code: ECHO_CODE, description: null, frequency: "0 9 * * *" });
    const newerAction = await callForValue("create", manualActionInput("newer"));
    const first = await callForValue("get", { limit: 1 });
    expect(first).to.deep.equal({ actions: [newerAction], pagination: { total: 3, hasMore: true } });
    const { actions, pagination } = await callForValue("get", { limit: 2, offset: 1 });
    expect([actions[0].id, actions.length, pagination]).to.deep.equal([created.id, 2, { total: 3, hasMore: false }]);
    expect((await callForValue("get")).actions).to.have.length(3);
  });

  it("publish returns {action}, the live version; unpublish and remove return nothing", async () => {
    const { id } = await callForValue("create", manualActionInput("published"));
    const { action, ...more } = await callForValue("publish", id);
    expect(more).to.deep.equal({});
    expect(action).to.deep.include({ name: "published", code: ECHO_CODE });
    expect(action.id).to.not.equal(id);
    expect(await callForValue("unpublish", id)).to.equal(undefined);
    await expectRejection("ACTION_NOT_PUBLISHED", "unpublish", id);
    expect(await callForValue("remove", id)).to.equal(undefined);
    await expectRejection("ACTION_NOT_FOUND", "getById", id);
  });

  it("run returns nothing, runWithResult the result of execute, by name and by ID, and getLogs the entries of both", async () => {
    const { id } = await callForValue("create", manualActionInput("runnable"));
    expect(await callForValue("runWithResult", "runnable", { a: [null] })).to.deep.equal([{ a: [null] }, 1]);
    expect(await callForValue("runWithResult", id)).to.deep.equal([{}, 1]);
    expect(await callForValue("run", "runnable", { queued: true })).to.equal(undefined);
    await page.waitForFunction(`Svc.App.V3.Actions.getLogs({ id: ${id} }).then(({ count }) => count === 3)`, {
      polling: 50,
    });
    const options = { id, where: { type: "app.task.completed", data: { taskId: id } }, limit: 2, offset: 1 };
    const { count, logs, ...more } = await callForValue("getLogs", options);
    expect([count, more]).to.deep.equal([3, {}]);
    expect(logs.map(({ data }: { data: { payload: object } }) => data.payload)).to.deep.equal([{}, { a: [null] }]);
    expect(logs[1].data).to.deep.include({ mode: "on-demand", runOn: "server", taskId: id });
    expect(logs[1].data.result).to.deep.equal({ data: [{ a: [null] }, 1], success: true });
  });

  it("reject with {status, error} for missing resources", async () => {
    await callForValue("create", { ...manualActionInput("in-client"), environment: "client" });
    await callForValue("create", { ...manualActionInput("inactive"), active: false });
    await callForValue("create", {
      ...manualActionInput("failing"),
      code: "async function execute() { throw new TypeError('mine'); }",
    });
    await expectRejection("NAME_ALREADY_EXISTS", "create", manualActionInput("inactive"));
    await expectRejection("NAME_REQUIRED", "create", {});
    await expectRejection("ACTION_NOT_FOUND", "update", 999_999, { active: true });
    await expectRejection("ACTION_NOT_FOUND", "remove", 999_999);
    await expectRejection("ACTION_NOT_FOUND", "publish", 999_999);
    for (const operation of ["run", "runWithResult"]) {
      await expectRejection("CLIENT_ACTION_NOT_RUNNABLE", operation, "in-client");
      await expectRejection("ACTION_INACTIVE", operation, "inactive");
      await expectRejection("ACTION_NOT_FOUND", operation, "nowhere");
    }
    await expectRejection("EXECUTION_FAILED", "runWithResult", "failing");
  });
});
