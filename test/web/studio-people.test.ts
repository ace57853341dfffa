/** Tests people in Studio: an invitation and its account, role changes while the person works, and a removal. */
import { expect } from "chai";
import type { Browser, Page } from "puppeteer";
import { createSignedInPerson, PASSPHRASE } from "../harness/people.js";
import { longTest } from "../harness/samples.js";
import { startTestService, type TestService } from "../harness/service.js";
import { launchChromium, type PageWatch, watchPage } from "./chromium.js";
import { holdReads } from "./held-reads.js";
import { checkWidths } from "./looks.js";
import { leaveOutCompiler, type StudioPage, studioPage } from "./studio-page.js";

const RETURNING_CODE = "async function execute() { return 'done'; }";

describe("Studio's pages of people", () => {
  let service: TestService;
  let browser: Browser;
  let admin: { page: Page; studio: StudioPage; watch: PageWatch };
  let guest: { page: Page; studio: StudioPage; watch: PageWatch };

  async function open(address: string) {
    const context = await browser.createBrowserContext();
    const page = await context.newPage();
    await leaveOutCompiler(page);
    await page.setViewport({ width: 1280, height: 800 });
    const watch = watchPage(page, service.url);
    await page.goto(service.url + address);
    return { page, studio: studioPage(page), watch };
  }

  before(async () => {
    [service, browser] = await Promise.all([startTestService({ ROLES: "api,runner" }), launchChromium()]);
    const body = { name: "nightly", code: RETURNING_CODE, active: true, triggers: [{ trigger: "manual" }] };
    await service.rest("POST", `/v3/apps/${service.appId}/actions`, { body });
    await service.rest("POST", `/v1/apps/${service.appId}/settings`, { body: { shown: "public value", _hidden: "x" } });
    admin = await open(`/studio#/${service.appId}/apps`);
    await admin.studio.signIn((await createSignedInPerson(service)).token);
  });
  after(async () => {
    await browser?.close();
    await service?.stop();
  });

  const tabs = (page: Page): Promise<string[]> =>
    page.evaluate(
      `[...document.querySelectorAll('nav[aria-label="Views"] a')].map((tab) => tab.textContent)`,
    ) as Promise<string[]>;
  /** Waits until the navigation has these names. Each check sends a `focus` event, because Studio then reads the roles again. */
  async function waitForTabs(page: Page, names: readonly string[]): Promise<void> {
    await page.waitForFunction(
      `(() => {
        dispatchEvent(new Event("focus"));
        const shown = [...document.querySelectorAll('nav[aria-label="Views"] a')].map((tab) => tab.textContent);
        return JSON.stringify(shown) === ${JSON.stringify(JSON.stringify(names))};
      })()`,
      { polling: 300 },
    );
  }
  const choose = async (page: Page, label: string, value: string) => {
    const found = await page.waitForSelector(`::-p-xpath(//label[span="${label}"]/select[not(@aria-disabled="true")])`);
    await found!.select(value);
  };
  const READER_TABS = ["Home", "Actions", "Data", "Media", "Runs", "Schedules", "Settings"];

  it("an owner invites a person, who creates an account with the link and reads what the role may read", async () => {
    const { page, studio } = admin;
    await page.click('[aria-label="People of First organization"]');
    await studio.replace('[aria-label="E-mail address"]', "grace@example.com");
    await choose(page, "Role", "reader");
    await studio.button("Invite");
    const link = (await studio.textOf(".secret-once code"))!;
    await studio.button("Done");
    await page.waitForSelector('[aria-label="Revoke the invitation of grace@example.com"]');
    await checkWidths(page, "people");

    guest = await open(link.slice(link.indexOf("/studio/")));
    await guest.studio.replace('input[name="firstName"]', "Grace");
    await guest.studio.replace('input[name="lastName"]', "Hopper");
    await guest.studio.replace('input[autocomplete="new-password"]', PASSPHRASE);
    await guest.studio.button("Create the account");
    await guest.page.waitForSelector(".top-bar");
    expect(guest.page.url()).to.not.contain("token");
    expect(await tabs(guest.page)).to.deep.equal(READER_TABS);
    await guest.studio.button("Settings");
    await guest.page.waitForSelector(guest.studio.withText("b", "shown"));
    expect(await guest.page.evaluate("document.body.textContent")).to.not.contain("_hidden");
    await guest.studio.open(`${service.appId}/actions`);
    await (await guest.page.waitForSelector(".action-list .action"))!.click();
    await guest.page.waitForSelector(".code-editor .view-line");
    await guest.page.waitForSelector("fieldset.read-only:disabled");
    for (const name of ["Save", "Run", "Publish", "New", "Delete this action", "Duplicate"]) {
      expect(await guest.page.$(guest.studio.withText("button", name)), name).to.equal(null);
    }
  });

  longTest("leads a reader from the address of a new item to the list, also on a phone", async () => {
    await guest.page.setViewport({ width: 390, height: 800 });
    for (const [view, list] of [
      ["data", ".data-list h2"],
      ["actions", ".action-list .action"],
    ] as const) {
      await guest.studio.open(`${service.appId}/${view}/new`);
      await guest.page.waitForFunction(`location.hash === "#/${service.appId}/${view}"`);
      await guest.page.waitForSelector(list, { visible: true });
      expect(await guest.page.$eval(".breadcrumbs h1", (title) => title.textContent)).to.match(/^(Data|Actions)$/);
    }
    await guest.page.setViewport({ width: 1280, height: 800 });
    await guest.page.click(".action-list .action");
    await guest.page.waitForSelector(".code-editor .view-line");
  });

  it("a changed role appears while the other person works: an operator runs what it may not read", async () => {
    await choose(admin.page, "Role of Grace Hopper", "operator");
    await waitForTabs(guest.page, ["Home", "Actions", "Runs", "Schedules"]);
    await guest.page.waitForSelector(".operated");
    await checkWidths(guest.page, "operator");
    expect(await guest.page.$(".code-editor")).to.equal(null);
    await guest.studio.button("Run", '//section[@aria-label="nightly"]');
    await guest.page.waitForSelector('.outcome[data-state="completed"]');
  });

  it("does not overwrite a role that another administrator changed after the page had read it", async () => {
    const sql = "SELECT id FROM person WHERE email = 'grace@example.com'";
    const [{ id }] = await service.db.query(sql);
    const path = `/v1/organizations/1/members/${id}`;
    // Waits until a read of the list is held.
    const reads = await holdReads(admin.page, "ListOrganizationPeople");
    await admin.page.waitForFunction('dispatchEvent(new Event("focus")), heldReads.length > 0', { polling: 300 });
    // A hidden page does not read the list every ten seconds. So only the service can detect the conflict.
    await admin.page.evaluate(
      'Object.defineProperty(document, "visibilityState", { value: "hidden", configurable: true })',
    );
    await reads.endAll();
    await service.rest("PUT", path, { as: "admin", body: { role: "reader" } });
    const role = async () => {
      const { members } = (await service.rest("GET", "/v1/organizations/1/members", { as: "admin" })).body;
      return members.find(({ user }: { user: { id: number } }) => user.id === id).role;
    };
    expect(await role()).to.equal("reader");
    await choose(admin.page, "Role of Grace Hopper", "editor");
    await admin.page.waitForFunction(
      `[...document.querySelectorAll('p.fault[role="alert"]')].some((alert) => alert.textContent.includes("someone else changed this"))`,
    );
    expect(await role()).to.equal("reader");
    await admin.page.evaluate("delete document.visibilityState");
  });

  it("an editor's page has all controls, and a removal ends the session at once", async () => {
    const reads = await holdReads(admin.page, "ListOrganizationPeople");
    await choose(admin.page, "Role of Grace Hopper", "editor");
    await reads.waitForCount(1);
    // Until the list has been read again, the button is disabled: the service would reject a removal that is based on the earlier role.
    expect(await admin.page.$('[aria-label="Remove Grace Hopper"]:enabled')).to.equal(null);
    await reads.endAll();
    await waitForTabs(guest.page, [
      "Home",
      "Actions",
      "Data",
      "Media",
      "Runs",
      "Schedules",
      "Outbox",
      "Notifications",
      "Alerts",
      "Audit log",
      "Settings",
      "Connections",
      "People",
      "Tokens",
      "Versions",
      "Stages",
      "Git repository",
      "Import and export",
      "General",
    ]);
    await guest.page.waitForSelector(guest.studio.withText("button", "New"));
    await (await admin.page.waitForSelector('[aria-label="Remove Grace Hopper"]:enabled'))!.click();
    await admin.studio.button("Remove", "//dialog");
    await admin.page.waitForSelector('[aria-label="Remove Grace Hopper"]', { hidden: true });
    await guest.studio.open(`${service.appId}/settings`);
    await guest.page.waitForSelector("dialog[open]");
    // The service closes the connections of an ended session. Studio must not report that as a lost connection.
    expect(await guest.page.$eval(".notice.connection", (banner) => banner.textContent)).to.equal("");
    await checkWidths(guest.page, "removed");
  });

  longTest("a person with an account accepts in the session of the browser", async () => {
    const email = "ada@example.com";
    const person = { firstName: "Ada", lastName: "Byron", email };
    const { user, token } = (await service.rest("POST", "/v1/admin/users", { as: "admin", body: person })).body;
    const { body } = await service.rest("POST", `/v1/organizations/${service.organizationId}/invitations`, {
      as: "admin",
      body: { email, role: "reader", appId: service.appId },
    });
    const other = await open(body.link.slice(body.link.indexOf("/studio/")));
    await other.studio.button("I have an account: accept with it");
    await other.page.waitForSelector("::-p-xpath(//*[starts-with(normalize-space(.), 'This address has an account')])");
    await other.page.setCookie({ name: "auth_token", value: token, url: service.url });
    await other.studio.button("I have an account: accept with it");
    await other.page.waitForSelector(".top-bar");
    const members = await service.rest("GET", `/v1/apps/${service.appId}/members`, { as: "admin" });
    expect(members.body.members.map((member: { user: { id: number } }) => member.user.id)).to.include(user.id);
  });

  longTest(
    "an administrator adds another one on the page of the service, removes them, and finds both in the audit log",
    async () => {
      const { page, studio } = admin;
      const other = await createSignedInPerson(service);
      await service.db.query("UPDATE person SET is_administrator = false, first_name = 'Bob' WHERE id = $1", [
        other.user.id,
      ]);
      const administrators = async (): Promise<number[]> => {
        const { body } = await service.rest("GET", "/v1/admin/administrators", { as: "admin" });
        return body.administrators.map(({ id }: { id: number }) => id);
      };
      const press = async (label: string, answer: string) => {
        await (await page.waitForSelector(`[aria-label="${label}"]`))!.click();
        await studio.button(answer, "//dialog");
      };
      await studio.open(`${service.appId}/apps`);
      await studio.button("Administrators of the service, and people");
      await press("Make administrator: Bob Lovelace", "Make administrator");
      await page.waitForSelector('[aria-label="Remove the administrator Bob Lovelace"]');
      expect(await administrators()).to.include(other.user.id);
      await checkWidths(page, "service");
      await press("Remove the administrator Bob Lovelace", "Remove");
      await page.waitForSelector('[aria-label="Make administrator: Bob Lovelace"]');
      expect(await administrators()).to.not.include(other.user.id);

      await (await page.waitForSelector('[aria-label="Audit log of First organization"]'))!.click();
      for (const type of ["Administrator created", "Administrator deleted", "Invitation accepted", "Member deleted"]) {
        await page.waitForSelector(studio.withText("span", type));
      }
      await checkWidths(page, "access");
      expect(admin.watch.errors).to.deep.equal([]);
    },
  );

  longTest("people who administer no organization see neither its audit log nor the page of the service", async () => {
    const { body } = await service.rest("POST", `/v1/organizations/${service.organizationId}/invitations`, {
      as: "admin",
      body: { email: "editor@example.org", role: "editor" },
    });
    const other = await open(body.link.slice(body.link.indexOf("/studio/")));
    await other.studio.replace('input[name="firstName"]', "Ed");
    await other.studio.replace('input[name="lastName"]', "Itor");
    await other.studio.replace('input[autocomplete="new-password"]', PASSPHRASE);
    await other.studio.button("Create the account");
    await other.page.waitForSelector(".top-bar");
    const hints = [
      [`access/${service.organizationId}`, "Owners and admins of an organization see its audit log."],
      ["service", "This page is for administrators of the service."],
    ];
    for (const [place, hint] of hints) {
      await other.studio.open(`${service.appId}/${place}`);
      await other.page.waitForSelector(other.studio.withText("p", hint!));
    }
    expect(other.watch.errors).to.deep.equal([]);
  });

  it("neither page has an error or loads from another host", () => {
    for (const { watch } of [admin, guest]) expect(watch.foreign).to.deep.equal([]);
  });
});
