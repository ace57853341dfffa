/** Tests the example app: installs it by its command, books seats in a browser, and removes it. */
import { execFile } from "node:child_process";
import { readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import type { Browser, Page } from "puppeteer";
import { programEnvironment } from "../harness/program-environment.js";
import { longTest, sampleOf } from "../harness/samples.js";
import { startTestService, type TestService } from "../harness/service.js";
import { until } from "../harness/until.js";
import { launchChromium, type PageWatch, watchPage } from "./chromium.js";

const REPOSITORY_ROOT = fileURLToPath(new URL("../../../", import.meta.url));
const EXAMPLE_FOLDER = `${REPOSITORY_ROOT}examples/bookings/`;
/** Time in milliseconds after which the test stops a command and shows its output. */
const COMMAND_TIMEOUT_MS = 150_000;
const GUEST_EMAILS = ["ann@example.com", "bob@example.com"];

interface CommandOutput {
  code: number;
  stdout: string;
  stderr: string;
}

function runCommand(args: readonly string[], environment: Record<string, string>): Promise<CommandOutput> {
  return new Promise((resolve) => {
    const env = { ...programEnvironment(), ...environment };
    execFile(
      process.execPath,
      args,
      { cwd: REPOSITORY_ROOT, env, timeout: COMMAND_TIMEOUT_MS },
      (error, stdout, stderr) => resolve({ code: error?.killed ? -1 : Number(error?.code ?? 0), stdout, stderr }),
    );
  });
}

describe("the files of the example app", () => {
  it("have valid types with the globals of actions, one action a file", async () => {
    const { code, stdout } = await runCommand(["node_modules/typescript/bin/tsc", "-p", EXAMPLE_FOLDER], {});
    expect([code, stdout]).to.deep.equal([0, ""]);
    for (const name of readdirSync(`${EXAMPLE_FOLDER}actions`))
      expect(readdirSync(`${EXAMPLE_FOLDER}actions/${name}`)).to.deep.equal(["action.js"]);
  });
});

describe("the example app", () => {
  let service: TestService;
  let browser: Browser;

  const runExample = (environment: Record<string, string> = {}, ...args: string[]) =>
    runCommand(["scripts/example.mjs", ...args], { SVC_TOKEN: service.tokens.editor, ...environment });
  const installExample = (...args: string[]) =>
    runExample({}, "--url", service.url, "--app", String(service.appId), ...args);
  const get = async (path: string) => (await service.rest("GET", path.replace(":id", String(service.appId)))).body;

  async function readAppState() {
    const [{ actions }, { dataSources }, settings, { apps }] = await Promise.all([
      get("/v3/apps/:id/actions"),
      get("/v1/apps/:id/data-sources"),
      get("/v1/apps/:id/settings/"),
      get("/v1/apps"),
    ]);
    return { actions, dataSources, settings, isPublished: apps[0].isPublished };
  }

  before(async () => {
    [service, browser] = await Promise.all([startTestService(), launchChromium()]);
  });
  after(async () => {
    await browser?.close();
    await service?.stop();
  });

  const findPassword = (output: CommandOutput) => / with the password (\S+)\n$/.exec(output.stdout)![1]!;

  describe("in a browser", () => {
    const watches: PageWatch[] = [];
    /** Protocol IDs of the open WebSockets, as one set for each page. */
    const sockets: Set<string>[] = [];
    let pages: Page[];

    const readNote = (page: Page) => page.$eval("#bookings-note", (e) => e.textContent!);
    const waitForNote = (page: Page, text: string) =>
      page.waitForFunction(`document.querySelector("#bookings-note").textContent === ${JSON.stringify(text)}`);
    const seatSelector = (name: string) => `::-p-xpath(//div[@id="bookings-seats"]/button[.="${name}"])`;
    const messages = async () => (await get("/v1/apps/:id/communicate/messages")).messages;

    async function openSockets(page: Page): Promise<Set<string>> {
      const open = new Set<string>();
      const protocol = await page.createCDPSession();
      await protocol.send("Network.enable");
      protocol.on("Network.webSocketCreated", ({ requestId }) => open.add(requestId));
      protocol.on("Network.webSocketClosed", ({ requestId }) => open.delete(requestId));
      return open;
    }

    async function openBookings(email: string, password: string): Promise<Page> {
      const page = await (await browser.createBrowserContext()).newPage();
      watches.push(watchPage(page, service.url));
      sockets.push(await openSockets(page));
      await page.goto(`${service.url}/apps/${service.appId}`);
      await page.waitForSelector(seatSelector("A1"));
      await page.type("#bookings-guest [name=email]", email);
      await page.type("#bookings-guest [name=password]", password);
      await page.click("#bookings-guest form button");
      await waitForNote(page, "Choose a seat.");
      return page;
    }

    before(async () => {
      const output = await installExample();
      expect([output.code, output.stderr]).to.deep.equal([0, ""]);
      pages = await Promise.all(GUEST_EMAILS.map((email) => openBookings(email, findPassword(output))));
    });

    it("shows a visitor which seats are free, and nothing of who booked", async () => {
      const sources = `/v1/apps/${service.appId}/data-sources`;
      const seats = await service.rest("POST", `${sources}/bookings-seats/query`, { as: "live", body: { limit: 1 } });
      expect(Object.keys(seats.body.entries[0].data)).to.have.members(["Seat", "Taken"]);
      const guests = await service.rest("POST", `${sources}/bookings-guests/query`, { as: "live", body: {} });
      expect([guests.http, guests.body.status]).to.deep.equal([403, "DATA_SOURCE_ACCESS_DENIED"]);
    });

    it("sells a seat to only one of two visitors who book it at once, and thanks this visitor after an analytics event", async () => {
      await Promise.all(pages.map(async (page) => (await page.waitForSelector(seatSelector("A1")))!.click()));
      await Promise.all(
        pages.map((page) =>
          page.waitForFunction('/^Thank you|taken\\.$/.test(document.querySelector("#bookings-note").textContent)'),
        ),
      );
      const notes = await Promise.all(pages.map(readNote));
      expect(
        notes.filter((text: string) => text === "Thank you! Seat A1 is yours, and a mail is on its way."),
      ).to.have.length(1);
      expect(notes.filter((text: string) => /taken\.$/.test(text))).to.have.length(1);
      for (const page of pages) await page.waitForSelector("#bookings-seats button[aria-label='A1, taken']:disabled");
      const { actions } = await get("/v3/apps/:id/actions");
      const { id } = actions.find(({ name }: { name: string }) => name === "bookings-thanks");
      const runs = await until(async () => {
        const found = (await get(`/v3/apps/:id/runs?actionId=${id}`)).runs;
        return found.length > 0 && found[0].finishedAt !== null && found;
      });
      expect(runs).to.have.length(1);
      expect(runs[0]).to.include({ trigger: "analytics", state: "completed" });
    });

    it("puts one mail to the guest who has the seat into the outbox", async () => {
      const [{ data }] = (
        await service.rest("POST", `/v1/apps/${service.appId}/data-sources/bookings-seats/query`, {
          body: { where: { Seat: "A1" } },
        })
      ).body.entries;
      const kept = await messages();
      expect(kept).to.have.length(1);
      expect(kept[0]).to.include({ subject: "Your seat A1", status: "kept" });
      expect(GUEST_EMAILS).to.include(data.Email);
      expect(JSON.stringify(kept[0].to)).to.contain(data.Email);
    });

    it("sells nothing to a visitor who has not signed in, with any payload", async () => {
      const body = { seat: "B1", Email: "eve@example.com", guest: { Email: "eve@example.com" } };
      const path = `/v3/apps/${service.appId}/actions/bookings-book/runWithResult`;
      const { result } = (await service.rest("POST", path, { as: "live", body })).body;
      expect(result).to.deep.equal({ refused: "Sign in to book a seat." });
      expect(await messages()).to.have.length(1);
    });

    it("reminds each guest once, at the time of the schedule, and frees the seats at night", async () => {
      const actionId = async (name: string) =>
        (await get("/v3/apps/:id/actions")).actions.find((action: { name: string }) => action.name === name).id;
      async function runSchedule(name: string) {
        const id = await actionId(name);
        const before = (await get(`/v3/apps/:id/runs?actionId=${id}`)).runs.length;
        await service.db.query(
          `UPDATE schedule SET next_tick = now() - interval '1 second'
           WHERE action_id = (SELECT id FROM action WHERE master_id = $1)`,
          [id],
        );
        const runs = await until(async () => {
          const found = (await get(`/v3/apps/:id/runs?actionId=${id}`)).runs;
          return found.length > before && found[0].finishedAt !== null && found;
        });
        expect(runs[0]).to.include({ trigger: "schedule", state: "completed" });
      }
      await runSchedule("bookings-remind");
      await runSchedule("bookings-remind");
      const reminders = (await messages()).filter(({ subject }: { subject: string }) => subject.startsWith("Tonight"));
      expect(reminders.map(({ subject }: { subject: string }) => subject)).to.deep.equal([
        "Tonight at eight: your seat A1",
      ]);
      await runSchedule("bookings-clear");
      for (const page of pages) await page.waitForSelector("#bookings-seats button:not(:disabled)[aria-label='A1']");
    });

    it("follows its seats, triggers and everything else over one websocket a page", () => {
      expect(sockets.map(({ size }) => size)).to.deep.equal([1, 1]);
    });

    it("loads nothing from other hosts and does not violate the policy of its page", () => {
      expect(watches.map(({ foreign, errors }) => ({ foreign, errors }))).to.deep.equal(
        Array.from({ length: 2 }, () => ({ foreign: [], errors: [] })),
      );
    });

    after(() => Promise.all(pages.map((page) => page.browserContext().close())));
  });

  describe("by its command", () => {
    longTest("is installed a second time without a change except the guests' password", async () => {
      const before = await readAppState();
      const output = await installExample();
      expect([output.code, output.stdout.split("\n").length], output.stdout + output.stderr).to.deep.equal([0, 3]);
      const after = await readAppState();
      expect(after).to.deep.equal(before);
    });

    it("is removed completely, and a second removal reports that nothing is there", async () => {
      expect((await installExample("--remove")).stdout).to.contain("Removed the example from app");
      expect(await readAppState()).to.deep.equal({ actions: [], dataSources: [], settings: {}, isPublished: false });
      const again = await installExample("--remove");
      expect([again.code, again.stdout]).to.deep.equal([0, `App ${service.appId} has no example.\n`]);
    });

    longTest("continues where it was interrupted, and keeps what others published", async () => {
      await service.rest("POST", `/v1/apps/${service.appId}/settings`, {
        body: { _bookings: { publishedApp: true } },
      });
      expect((await installExample()).code).to.equal(0);
      const body = { name: "other", code: "async function execute() {}" };
      const { action } = (await service.rest("POST", `/v3/apps/${service.appId}/actions`, { body })).body;
      await service.rest("POST", `/v3/apps/${service.appId}/actions/${action.id}/publish`);
      expect((await installExample("--remove")).stdout).to.contain("the app stays published");
      const { actions, dataSources, settings, isPublished } = await readAppState();
      expect([actions.length, dataSources, settings, isPublished]).to.deep.equal([1, [], {}, true]);
    });

    longTest("changes nothing of other people under one of its names", async () => {
      const body = { name: "bookings-book", code: "async function execute() { return 1; }" };
      await service.rest("POST", `/v3/apps/${service.appId}/actions`, { body });
      const before = await readAppState();
      const output = await installExample();
      expect([output.code, output.stderr]).to.deep.equal([
        1,
        `example: app ${service.appId} has the action bookings-book, which the example did not create; use another app\n`,
      ]);
      expect((await installExample("--remove")).stdout).to.contain("has no example");
      expect(await readAppState()).to.deep.equal(before);
    });

    const rejectedCommands: [
      what: string,
      environment: () => Record<string, string>,
      args: () => string[],
      words: RegExp,
    ][] = [
      ["an unknown token", () => ({ SVC_TOKEN: "unknown" }), () => [], /rejects this token \(from SVC_TOKEN\)/],
      [
        "a token that may not edit",
        () => ({ SVC_TOKEN: service.tokens.api }),
        () => [],
        /does not permit changes of app 1/,
      ],
      [
        "an app that there is not",
        () => ({}),
        () => ["--app", "77"],
        /has no access to app 77; pass one of its apps by --app \(1\)/,
      ],
      [
        "no app's id",
        () => ({}),
        () => ["--app", "first"],
        /--app must be the ID of an app, a positive whole number \(got first\)/,
      ],
      [
        "a service that is away",
        () => ({}),
        () => ["--url", "http://127.0.0.1:9"],
        /no service responds at http:\/\/127\.0\.0\.1:9/,
      ],
      ["no address", () => ({}), () => ["--url", "localhost"], /--url must be an address such as/],
      [
        "no token at all",
        () => ({ SVC_TOKEN: "", DATA_DIR: "/nowhere" }),
        () => [],
        /SVC_TOKEN is not set, and there is no \/nowhere/,
      ],
      [
        "the token of another service's file",
        () => ({ SVC_TOKEN: "", DATA_DIR: service.dataDir }),
        () => ["--url", "http://example.com"],
        /the token of .* is for .*: set SVC_TOKEN to a token for http:\/\/example\.com/,
      ],
      ["an option that it has not", () => ({}), () => ["--undo"], /Unknown option '--undo'.*\nUsage/s],
    ];
    for (const [title, environment, args, words] of sampleOf(rejectedCommands, 0, 4)) {
      it(`explains in plain words what is wrong: ${title}`, async () => {
        const output = await runExample(environment(), "--url", service.url, "--app", String(service.appId), ...args());
        expect([output.code, output.stdout]).to.deep.equal([1, ""]);
        expect(output.stderr)
          .to.match(words)
          .and.not.match(/\n {4}at /);
      });
    }
  });
});
