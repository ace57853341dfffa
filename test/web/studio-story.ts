/**
 * Tests the work of a person in Studio at a given window width. The person creates an account, and later an action, an access rule and the
 * settings of the mail server.
 */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect } from "chai";
import type { Browser, Page } from "puppeteer";
import { type MailServer, startMailServer } from "../harness/mail-server.js";
import { createAccounts, PASSPHRASE } from "../harness/people.js";
import { startTestService, type TestService } from "../harness/service.js";
import { launchChromium, type PageWatch, watchPage } from "./chromium.js";
import { type StudioPage, studioPage } from "./studio-page.js";

const shoutCode = (words: string) =>
  `async function execute({ payload }) {\n  console.log("for", payload.name);\n  return payload.name.toUpperCase() + "${words}";\n}\n`;

interface StudioWindow {
  page: Page;
  watch: PageWatch;
  studio: StudioPage;
}

interface StoryWindow extends StudioWindow {
  service: TestService;
  mail: MailServer;
}

/** Runs a copied command in a shell, in which the variable TOKEN has this token. */
async function runCommand(command: string, token: string): Promise<unknown> {
  const env = { PATH: process.env["PATH"]!, TOKEN: token };
  const { stdout } = await promisify(execFile)("sh", ["-c", command], { env });
  return JSON.parse(stdout);
}

const waitForSave = ({ studio }: StudioWindow) => studio.saved();
const waitForOutcome = ({ page }: StudioWindow, state: string) =>
  page.waitForSelector(`.outcome[data-state="${state}"]`);
const openTab = ({ studio }: StudioWindow, name: string) => studio.button(name, '//*[@role="tablist"]');
const readAction = async ({ rest, appId }: TestService) =>
  (await rest("GET", `/v3/apps/${appId}/actions`)).body.actions[0];

async function makeAccount({ service, page, studio }: StoryWindow): Promise<void> {
  const { link } = await createAccounts(service).accounts.createSetupLink();
  await page.goto(link);
  await page.waitForSelector('form[aria-busy="false"]');
  const fields = { firstName: "Ada", lastName: "Lovelace", email: "ada@example.com", passphrase: PASSPHRASE };
  for (const [name, text] of Object.entries(fields)) await studio.replace(`input[name="${name}"]`, text);
  await studio.button("Create the account");
  await page.waitForSelector(".top-bar");
}

async function writeAction(scene: StoryWindow): Promise<void> {
  const { service, page, studio } = scene;
  await studio.open(`${service.appId}/actions/new`);
  await page.waitForSelector(".code-editor .view-line");
  await studio.write(shoutCode(""));
  await studio.replace('[data-field="name"] input', "shout");
  await studio.save();
  await waitForSave(scene);
  await studio.run();
  await waitForOutcome(scene, "failed");
  expect(await studio.textOf(".result.failed")).to.contain("TypeError");
  await studio.write(shoutCode("!"));
  await studio.replace("#payload", '{"name": "ada"}');
  await studio.run();
  await waitForOutcome(scene, "completed");
  expect(await studio.textOf(".result")).to.equal('"ADA!"');
}

async function publish(scene: StoryWindow): Promise<void> {
  const { page, studio } = scene;
  await page.select('[data-field="triggers"] select:has(option[value="schedule"])', "schedule");
  await studio.replace('[data-field="frequency"] input', "0 9 * * 1-5");
  await page.waitForSelector(".ticks li:nth-child(5)");
  await studio.save();
  await waitForSave(scene);
  await openTab(scene, "Publish");
  await studio.button("Publish the app");
  await studio.button("Publish", '//*[@role="tabpanel"]');
  await page.waitForSelector(studio.withText("button", "Publish again"));
}

/** Runs the command that the panel Call shows for the payload of the panel Run. The log must show the run without a reload. */
async function callAndWatch(scene: StoryWindow): Promise<void> {
  const { service, page, studio } = scene;
  await openTab(scene, "Run");
  await studio.replace("#payload", '{"name": "grace"}');
  await openTab(scene, "Call");
  await (await page.waitForSelector("::-p-xpath(//summary[.='runWithResult'])"))!.click();
  const command = (await studio.textOf(".call-example[open] pre"))!;
  expect(command).to.match(/^curl /);
  await openTab(scene, "Log");
  await page.waitForFunction('document.querySelectorAll(".entry").length === 2');
  expect(await runCommand(command, service.tokens.live!)).to.include({ result: "GRACE!" });
  await page.waitForFunction('document.querySelectorAll(".entry").length === 3');
  expect(await studio.textOf(".entry:first-child .gist")).to.contain("GRACE!");
}

async function runAgainAndRestore(scene: StoryWindow): Promise<void> {
  const { service, page, studio } = scene;
  const failed = (await service.rest("GET", `/v3/apps/${service.appId}/runs?state=failed`)).body.runs[0];
  await studio.open(`${service.appId}/runs/${failed.id}`);
  await studio.replace("#again-payload", '{"name": "alan"}');
  await studio.button("Run again");
  await page.waitForSelector(".run-head .run-state.completed");
  expect(await studio.textOf('[aria-label="Result"] .result')).to.equal('"ALAN!"');
  await studio.open(`${service.appId}/actions/${(await readAction(service)).id}`);
  await page.waitForSelector(".code-editor .view-line");
  await openTab(scene, "Versions");
  await page.waitForSelector(".versions li:nth-child(3) button");
  await (await page.waitForSelector(".versions li:last-child button"))!.click();
  await page.waitForSelector(".diff .added");
  await studio.button("Restore", '//*[contains(@class, "version-panel")]');
  await studio.button("Restore", "//dialog");
  await page.waitForSelector(studio.withText("span", "before a restore"));
  expect(await readAction(service)).to.include({ code: shoutCode(""), frequency: null });
}

async function changeTogether(scene: StoryWindow, theirs: StudioWindow): Promise<void> {
  const { service, page, studio } = scene;
  await theirs.studio.write(shoutCode("?"));
  await theirs.studio.save();
  await waitForSave(theirs);
  await page.bringToFront();
  await page.waitForFunction('/Grace Hopper changed code/.test(document.querySelector(".news")?.textContent)');
  await studio.write(shoutCode("mine"));
  await theirs.page.bringToFront();
  await theirs.studio.write(shoutCode("theirs"));
  await theirs.studio.save();
  await waitForSave(theirs);
  await page.bringToFront();
  await page.waitForFunction('/Grace Hopper has saved/.test(document.querySelector(".banner")?.textContent)');
  await studio.button("Go on with mine");
  await studio.save();
  await waitForSave(scene);
  expect((await readAction(service)).code).to.equal(shoutCode("mine"));
}

async function invitePerson({ page, studio }: StoryWindow): Promise<void> {
  await studio.open("apps");
  await (await page.waitForSelector('[aria-label="People of First organization"]'))!.click();
  await studio.replace('[aria-label="E-mail address"]', "alan@example.com");
  await (await page.waitForSelector('::-p-xpath(//label[span="Role"]/select)'))!.select("reader");
  await studio.button("Invite");
  expect(await studio.textOf(".secret-once code")).to.contain("/studio/invitation");
  await studio.button("Done");
  await page.waitForSelector('[aria-label="Revoke the invitation of alan@example.com"]');
}

async function writeRule({ service, page, studio }: StoryWindow): Promise<void> {
  await studio.open(`${service.appId}/data`);
  // Waits for the list, because on a phone it appears above the form and moves the form down.
  await page.waitForSelector(".data-list .empty");
  await studio.replace(".data-source.new input", "Orders");
  await studio.button("Create empty");
  await studio.button("Rules", '//*[@role="tablist"]');
  await page.waitForSelector('select[aria-label="Add a rule"]');
  await page.select('select[aria-label="Add a rule"]', "Everyone reads");
  await studio.button("Save access rules");
  await page.waitForSelector('[data-field="accessRules"] > .row > button.primary:disabled');
  const { dataSource } = (await service.rest("GET", `/v1/apps/${service.appId}/data-sources/Orders?by=name`)).body;
  expect(dataSource.accessRules).to.deep.equal([{ type: ["select"], allow: "all" }]);
}

async function setMailServer({ service, mail, page, studio }: StoryWindow): Promise<void> {
  await studio.open(`${service.appId}/outbox/email`);
  await studio.replace('input[aria-label="Address for the test"]', "ada@example.com");
  await studio.button("Send a test");
  await page.waitForSelector(".test-message .chip.kept");
  const field = (label: string) => `::-p-xpath(//article//div[label[starts-with(., "${label}")]]/input)`;
  await studio.replace(field("Host"), "127.0.0.1");
  await studio.replace(field("Port"), String(mail.port));
  await studio.replace(field("Sender"), "Shop <shop@example.com>");
  await studio.button("Save", "//article");
  await page.waitForSelector("::-p-xpath(//span[starts-with(., 'configured')])");
  await studio.button("Send a test");
  await page.waitForSelector(".test-message .chip.sent");
  expect(mail.acceptedMessages.map(({ from, to }) => ({ from, to }))).to.deep.equal([
    { from: "shop@example.com", to: ["ada@example.com"] },
  ]);
}

/** Declares the test. */
export function testStory(width: number): void {
  describe(`the story of an app in windows ${width} pixels wide`, () => {
    let service: TestService;
    let browser: Browser;
    let mail: MailServer;
    let other: string;

    before(async () => {
      [service, browser, mail] = await Promise.all([
        startTestService({ ALLOW_PRIVATE_NETWORK: "1" }),
        launchChromium(),
        startMailServer(),
      ]);
      const person = { firstName: "Grace", lastName: "Hopper", email: "grace@example.com" };
      const { user, token } = (await service.rest("POST", "/v1/admin/users", { as: "admin", body: person })).body;
      await service.rest("POST", `/v1/apps/${service.appId}/editors`, { body: { userId: user.id } });
      other = token;
    });
    after(async () => {
      await browser?.close();
      await service?.stop();
      await mail?.stop();
    });

    async function openWindow(): Promise<StudioWindow> {
      const page = await (await browser.createBrowserContext()).newPage();
      await page.setViewport({ width, height: 800, isMobile: width < 500, hasTouch: width < 500 });
      return { page, watch: watchPage(page, service.url), studio: studioPage(page) };
    }

    it("starts with the first link, and leads to a called action that two people change, an invitation, a rule and a sent e-mail", async () => {
      const mine: StoryWindow = { ...(await openWindow()), service, mail };
      await makeAccount(mine);
      await writeAction(mine);
      await publish(mine);
      await callAndWatch(mine);
      await runAgainAndRestore(mine);
      const theirs = await openWindow();
      await theirs.page.goto(`${service.url}/studio#/${service.appId}/actions/${(await readAction(service)).id}`);
      await theirs.studio.signIn(other);
      await theirs.page.waitForSelector(".code-editor .view-line");
      await changeTogether(mine, theirs);
      await invitePerson(mine);
      await writeRule(mine);
      await setMailServer(mine);
      expect([...mine.watch.errors, ...theirs.watch.errors]).to.deep.equal([]);
    });
  });
}
