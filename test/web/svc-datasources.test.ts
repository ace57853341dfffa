/** Tests `Svc.DataSources` and the page's user with the real service. The same code runs in a server action and in a page of the app. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect } from "chai";
import type { Browser, Page } from "puppeteer";
import { longTest } from "../harness/samples.js";
import { startTestService, type TestService } from "../harness/service.js";
import { launchChromium } from "./chromium.js";

/** Code that calls each operation once. Its results must be equal in a page and in a server action. */
const EVERY_OPERATION = `
  const made = await Svc.DataSources.create({ name: NAME, columns: ["Row"], entries: [{ Row: "A", Seat: 1 }, { Row: "A", Seat: 2 }] });
  const all = (await Svc.DataSources.get()).map(({ name }) => name).includes(NAME);
  const seats = await Svc.DataSources.connectByName(NAME);
  const same = await Svc.DataSources.connect(made.id);
  const inserted = await seats.insert({ Row: "B", Seat: 1 });
  const updated = await same.update(inserted.id, { By: "Ada" }, { ifUpdatedAt: inserted.updatedAt });
  const stale = await seats.update(inserted.id, { By: "Eve" }, { ifUpdatedAt: inserted.updatedAt }).then(() => null, (error) => [error.status, error.entry?.data.By]);
  const found = (await seats.find({ where: { Row: "A" }, order: [["data.Seat", "DESC"]] })).map(({ data }) => data.Seat);
  const page = await seats.find({ limit: 1, includePagination: true });
  const one = (await seats.findOne({ where: { By: "Ada" } })).data;
  const none = await seats.findOne({ where: { By: "nobody" } });
  const byId = (await seats.findById(inserted.id)).data;
  const conditions = [
    () => seats.remove({ where: { Row: undefined } }),
    () => seats.remove({ where: { $or: [{ Row: "A" }, { Seat: { $gt: undefined } }] } }),
    () => seats.find({ where: { Row: { $in: ["A", undefined] } } }),
    () => seats.findOne({ where: { Row: undefined } }),
    () => seats.find({ where: { Row: () => "A" } }),
    () => seats.findWithCursor({ where: { Row: undefined } }),
    () => seats.find({ aggregate: [{ $match: { Row: undefined } }] }),
    async () => seats.subscribe({ where: { Row: undefined } }, () => {}).unsubscribe(),
  ];
  const undefinedConditions = [];
  for (const call of conditions) undefinedConditions.push(await call().then(() => "sent", ({ status, error }) => status + ": " + error));
  const missing = await seats.findById(987654321).catch((error) => error.status);
  await seats.append([{ Row: "C", Seat: 1 }, { Row: "C", Seat: 2 }]);
  const cursor = await seats.findWithCursor({ limit: 2 });
  const pages = [];
  for (let at = cursor; at.length > 0; at = await at.next()) pages.push([at.map(({ data }) => data.Row + data.Seat).join(), at.isFirstPage, at.isLastPage]);
  const back = (await (await cursor.next()).prev()).map(({ data }) => data.Row + data.Seat).join();
  const counts = await seats.commit({ entries: [{ data: { Row: "D" } }, { id: inserted.id, data: { By: "Bea" } }], extend: true, returnEntries: true });
  const rows = await seats.getIndex("Row");
  const indexes = await seats.getIndexes(["Row", "By"]);
  const noIndexes = await seats.getIndexes([]);
  const grouped = await seats.find({ aggregate: [{ $group: { _id: "$Row", n: { $sum: 1 } } }, { $sort: { _id: 1 } }] });
  const removed = (await seats.removeById(inserted.id)).id === inserted.id;
  const deleted = await seats.remove({ where: { Row: "C" } });
  const csv = await seats.import("Row,Seat\\nX,1\\nY,2\\n");
  const replaced = await seats.replaceWith([{ Row: "Z" }]);
  const left = (await seats.find()).map(({ data }) => data);
  const renamed = (await Svc.DataSources.update(made.id, { name: NAME + "!" })).name === NAME + "!";
  await Svc.DataSources.delete(made.id);
  const gone = await Svc.DataSources.getById(made.id).catch((error) => error.status);
  return { all, updated: updated.data, stale, found, total: page.pagination.total, some: page.entries.length, one, none: none === undefined, byId, undefinedConditions, missing,
    pages, back, counts: counts.entries.map(({ data }) => data).sort((a, b) => (a.Row < b.Row ? -1 : 1)), rows: rows.sort(), indexes: Object.keys(indexes), noIndexes, grouped, removed, deleted, csv, replaced, left, renamed, gone };
`;

const EXPECTED_RESULTS = {
  all: true,
  updated: { Row: "B", Seat: 1, By: "Ada" },
  stale: ["ENTRY_CHANGED", "Ada"],
  found: [2, 1],
  total: 3,
  some: 1,
  one: { Row: "B", Seat: 1, By: "Ada" },
  none: true,
  byId: { Row: "B", Seat: 1, By: "Ada" },
  undefinedConditions: [
    "where.Row must not be undefined",
    "where.$or[1].Seat.$gt must not be undefined",
    "where.Row.$in[1] must not be undefined",
    "where.Row must not be undefined",
    "where.Row must be a JSON value (got a function)",
    "where.Row must not be undefined",
    "aggregate[0].$match.Row must not be undefined",
    "where.Row must not be undefined",
  ].map((fault) => `REQUEST_INVALID: ${fault}`),
  missing: "ENTRY_NOT_FOUND",
  pages: [
    ["A1,A2", true, false],
    ["B1,C1", false, false],
    ["C2", false, true],
  ],
  back: "A1,A2",
  counts: [{ Row: "B", Seat: 1, By: "Bea" }, { Row: "D" }],
  rows: ["A", "B", "C", "D"],
  indexes: ["Row", "By"],
  noIndexes: {},
  grouped: [
    { _id: "A", n: 2 },
    { _id: "B", n: 1 },
    { _id: "C", n: 2 },
    { _id: "D", n: 1 },
  ],
  removed: true,
  deleted: { deletedCount: 2 },
  csv: { inserted: 2 },
  replaced: { inserted: 1 },
  left: [{ Row: "Z" }],
  renamed: true,
  gone: "DATA_SOURCE_NOT_FOUND",
};

describe("Svc.DataSources", () => {
  let service: TestService;
  let browser: Browser;
  let page: Page;
  /** Site of a customer, on another origin than the service. */
  const customerSite = createServer((_request, response) =>
    response.setHeader("content-type", "text/html").end("<!doctype html>"),
  );
  let customerUrl: string;

  async function openCustomerPage(token: string): Promise<Page> {
    const opened = await (await browser.createBrowserContext()).newPage();
    await opened.goto(customerUrl);
    await opened.addScriptTag({ url: `${service.url}/client/svc.js` });
    const configuration = { apiUrl: service.url, appId: service.appId, token };
    await opened.evaluate(`Svc.configure(${JSON.stringify(configuration)})`);
    return opened;
  }

  before(async () => {
    const environment = { ROLES: "api,runner", ALLOW_PRIVATE_NETWORK: "1" };
    [service, browser] = await Promise.all([startTestService(environment), launchChromium()]);
    await new Promise<void>((resolve) => customerSite.listen(0, "127.0.0.1", resolve));
    customerUrl = `http://127.0.0.1:${(customerSite.address() as AddressInfo).port}/`;
    const body = { origins: [new URL(customerUrl).origin] };
    await service.rest("PUT", `/v1/apps/${service.appId}/origins`, { body });
    page = await openCustomerPage(service.tokens.editor);
  });

  after(async () => {
    await browser?.close();
    customerSite.close();
    await service?.stop();
  });

  it("works as documented in a page", async () => {
    const done = await page.evaluate(`(async () => { const NAME = "page seats"; ${EVERY_OPERATION} })()`);
    expect(done).to.deep.equal(EXPECTED_RESULTS);
  });

  longTest("works in the same way in a server action that lists the package", async () => {
    const code = `async function execute() { const NAME = "action seats, ä"; ${EVERY_OPERATION} }`;
    const action = {
      name: "seats",
      active: true,
      triggers: [{ trigger: "manual" }],
      dependencies: ["svc-datasources"],
      code,
    };
    await service.rest("POST", `/v3/apps/${service.appId}/actions`, { body: action });
    const { body } = await service.rest("POST", `/v3/apps/${service.appId}/actions/seats/runWithResult`);
    expect(body.result ?? body).to.deep.equal(EXPECTED_RESULTS);
  });

  longTest("sells a seat once, for any number of concurrent requests", async () => {
    await service.rest("POST", `/v1/apps/${service.appId}/data-sources`, {
      body: { name: "Sale", entries: [{ By: null }] },
    });
    const code = `async function execute({ payload }) {
      const seats = await Svc.DataSources.connectByName("Sale");
      const free = await seats.findOne({ where: { By: null } });
      if (!free) return "sold out";
      try {
        await seats.update(free.id, { By: payload.name }, { ifUpdatedAt: free.updatedAt });
        return "sold";
      } catch (error) {
        if (error.status !== "ENTRY_CHANGED") throw error;
        return "somebody was faster";
      }
    }`;
    const action = {
      name: "sell",
      active: true,
      triggers: [{ trigger: "manual" }],
      dependencies: ["svc-datasources"],
      code,
    };
    await service.rest("POST", `/v3/apps/${service.appId}/actions`, { body: action });
    const path = `/v3/apps/${service.appId}/actions/sell/runWithResult`;
    const answers = await Promise.all(
      Array.from({ length: 8 }, (_, at) => service.rest("POST", path, { body: { name: `caller ${at}` } })),
    );
    const sold = answers.filter(({ body }) => body.result === "sold");
    expect(sold).to.have.length(1);
    for (const { body } of answers) expect(body.result).to.be.oneOf(["sold", "sold out", "somebody was faster"]);
  });

  it("reports committed changes to a page, also from a pause, for its where", async () => {
    const body = { name: "Live", entries: [] };
    const { dataSource } = (await service.rest("POST", `/v1/apps/${service.appId}/data-sources`, { body })).body;
    const entries = `/v1/apps/${service.appId}/data-sources/${dataSource.id}/entries`;
    const insert = (data: object) => service.rest("POST", entries, { body: { data } });
    await page.evaluate(`(async () => {
      window.news = [];
      const live = await Svc.DataSources.connectByName("Live");
      window.following = live.subscribe({ where: { On: true } }, (news) => window.news.push(news));
    })()`);
    await page.waitForFunction('following.status() === "subscribed"');
    const first = (await insert({ On: true, N: 1 })).body;
    await insert({ On: false, N: 2 });
    await page.waitForFunction("news.length === 1");
    await page.evaluate("following.pause()");
    expect(await page.evaluate("following.status()")).to.equal("paused");
    await insert({ On: true, N: 3 });
    await service.rest("PUT", `${entries}/${first.id}`, { body: { data: { On: false } } });
    await page.evaluate("following.resume()");
    await page.waitForFunction("news.flatMap((one) => [...one.inserted, ...one.deleted]).length === 3");
    const seen = await page.evaluate(`({
      inserted: news.flatMap(({ inserted }) => inserted.map(({ data }) => data.N)),
      left: news.flatMap(({ deleted }) => deleted.map(({ id }) => id)),
    })`);
    expect(seen).to.deep.equal({ inserted: [1, 3], left: [first.id] });
    await page.evaluate("following.unsubscribe()");
    expect(await page.evaluate("following.status()")).to.equal("unsubscribed");
  });

  it("reports changes and notifications to a live page again after its app was unpublished and published, each once", async () => {
    const app = `/v1/apps/${service.appId}`;
    await service.rest("POST", `${app}/publish`);
    const rules = [{ type: ["select"], allow: "all" }];
    await service.rest("POST", `${app}/data-sources`, { body: { name: "Offers", accessRules: rules } });
    const headers = { origin: new URL(customerUrl).origin };
    const { token } = (await service.rest("POST", `${app}/visitors`, { as: null, headers })).body;
    const livePage = await openCustomerPage(token);
    for (const name of ["svc-datasources", "svc-notifications"])
      await livePage.addScriptTag({ url: `${service.url}/client/packages/${name}.js` });
    await livePage.evaluate(`(async () => {
      // Shortens the page's delays between two attempts to connect, which are up to 5 minutes.
      const wait = window.setTimeout;
      window.delays = [];
      window.setTimeout = (call, ms) => {
        delays.push(ms);
        return wait(call, ms / 100);
      };
      window.onlineListeners = 0;
      const [add, remove] = [window.addEventListener, window.removeEventListener];
      window.addEventListener = (type, ...rest) => {
        if (type === "online") onlineListeners += 1;
        add.call(window, type, ...rest);
      };
      window.removeEventListener = (type, ...rest) => {
        if (type === "online") onlineListeners -= 1;
        remove.call(window, type, ...rest);
      };
      window.offers = [];
      window.titles = [];
      const source = await Svc.DataSources.connectByName("Offers");
      window.following = source.subscribe({}, ({ inserted }) => offers.push(...inserted.map(({ data }) => data.N)));
      Svc.Notifications.init().stream(({ data }) => titles.push(data.title));
    })()`);
    const publish = async (N: number) => {
      await service.rest("POST", `${app}/data-sources/Offers/entries`, { body: { data: { N } } });
      const body = { status: "published", data: { title: `offer ${N}` } };
      await service.rest("POST", `${app}/notifications`, { body });
    };
    await livePage.waitForFunction('following.status() === "subscribed"');
    await publish(1);
    await livePage.waitForFunction("offers.length === 1 && titles.length === 1");
    await service.rest("POST", `${app}/unpublish`);
    await livePage.waitForFunction('following.status() === "refused"');
    await livePage.evaluate("Svc.configure({})");
    // The delays grow, because the app may stay unpublished.
    await livePage.waitForFunction("delays.filter((ms) => ms > 64_000).length > 1");
    await publish(2);
    await service.rest("POST", `${app}/publish`);
    await livePage.waitForFunction("offers.length > 1 && titles.length > 1");
    expect(await livePage.evaluate("following.status()")).to.equal("subscribed");
    await publish(3);
    await livePage.waitForFunction("offers.includes(3) && titles.includes('offer 3')");
    expect(await livePage.evaluate("[offers, titles]")).to.deep.equal([
      [1, 2, 3],
      ["offer 1", "offer 2", "offer 3"],
    ]);
    expect(await livePage.evaluate("onlineListeners")).to.be.at.most(2);
    await livePage.close();
  });

  it("signs the page's user in and out, and uses that user in the rules and in the actions that the page runs", async () => {
    const users = {
      name: "Users",
      isUsers: true,
      hooks: [{ type: "operations", runOn: ["insert"], fields: { Password: ["hash"] } }],
      accessRules: [{ type: ["select"], allow: "loggedIn", exclude: ["Password"] }],
      entries: [{ Email: "ada@example.com", Password: "enchantress" }],
    };
    await service.rest("POST", `/v1/apps/${service.appId}/data-sources`, { body: users });
    const code = `async function execute() { return (await Svc.Session.get()).entries?.dataSource.data ?? null; }`;
    const action = {
      name: "who",
      active: true,
      triggers: [{ trigger: "manual" }],
      dependencies: ["svc-session"],
      code,
    };
    await service.rest("POST", `/v3/apps/${service.appId}/actions`, { body: action });
    const viewer = await openCustomerPage(service.tokens.viewer);
    const received = await viewer.evaluate(`(async () => {
      const users = await Svc.DataSources.connectByName("Users");
      const count = () => users.find().then(({ length }) => length, (error) => error.status);
      const who = () => Svc.App.V3.Actions.runWithResult("who");
      const how = (Password) => ({ passport: "dataSource", dataSourceId: "Users", where: { Email: "ada@example.com", Password } });
      const before = await count();
      const wrong = await Svc.Session.authorize(how("guess")).catch((error) => error.status);
      const session = await Svc.Session.authorize(how("enchantress"));
      const known = (await Svc.Session.get()).entries.dataSource.data;
      const inside = [await count(), await who()];
      await Svc.Session.set({ locale: "en-gb" });
      await Svc.Session.logout();
      const after = [await count(), (await Svc.Session.get()).entries ?? null, await who()];
      return { before, wrong, signedIn: session.entries.dataSource.data, known, inside, after };
    })()`);
    const ada = { Email: "ada@example.com" };
    expect(received).to.deep.equal({
      before: "DATA_SOURCE_ACCESS_DENIED",
      wrong: "UNAUTHORIZED",
      signedIn: ada,
      known: ada,
      inside: [1, ada],
      after: ["DATA_SOURCE_ACCESS_DENIED", null, null],
    });
  });
});
