/**
 * Opens the addresses of Studio, as bookmarks, e-mails and the docs contain them. Checks which page appears, that controls have names for
 * screen readers, and that no time has AM or PM.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import type { Browser, Page, SerializedAXNode } from "puppeteer";
import { APP_SUBPAGE_LABELS, VIEW_DETAILS, VIEW_NAMES, type View } from "../../src/web/studio/shell/views.js";
import { longTest } from "../harness/samples.js";
import { startTestService, type TestService } from "../harness/service.js";
import { launchChromium, type PageWatch, watchPage } from "./chromium.js";
import { type StudioPage, studioPage } from "./studio-page.js";

/** Options of each wait for a page. The short time limit lets the test go on after a missing page, and list all faults at its end. */
const PAGE_WAIT = { timeout: 60_000 };
const CODE = "async function execute() {\n  return 1;\n}\n";

/** IDs of the items that addresses contain. */
interface Items {
  app: number;
  action: number;
  run: number;
  source: number;
  folder: number;
  file: number;
  message: number;
  alert: number;
  notification: number;
  organization: number;
}

interface PageAddress {
  /** Address after `#`. */
  address: string;
  /** Heading of the page. */
  head: string;
  /** First part of the title; by default the heading. */
  title?: string;
  /** Selector of an element that appears only with the item or the search parameters. */
  part?: string;
  /** Address to which the page changes the URL. Without this field, the test does not check the URL. */
  redirectsTo?: string;
}

/** For each page, its addresses with an item or search parameters: the end of the address, a selector, and the heading. */
const ADDRESSES_OF_ITEMS: Record<
  View,
  (items: Items) => readonly (readonly [rest: string, part: string, head?: string])[]
> = {
  home: () => [],
  actions: ({ action }) => [
    [`/${action}`, '[data-field="name"] input', "first"],
    ["/new", ".workspace", "New action"],
    ["/new?template=schedule", ".workspace .ticks li", "New action"],
    [`/new?copyOf=${action}`, ".workspace", "New action"],
    ["/nonsense", ".templates"],
    ["/999999", ".actions-view"],
  ],
  runs: ({ action, run }) => [
    [`/${run}`, ".timeline", `Run ${run}`],
    [`/${run}?state=failed`, '.breadcrumbs a[href$="/runs?state=failed"]', `Run ${run}`],
    ["/999999", '::-p-xpath(//a[.="All runs"])', "Run 999999"],
    ["/nonsense", ".runs-filters"],
    ["?state=completed", 'select[name="state"][data-set="true"]'],
    [`?action=${action}&trigger=manual&copy=master&range=7d`, 'select[name="trigger"][data-set="true"]'],
    ["?search=nothing", ".runs-page .empty"],
  ],
  schedule: () => [],
  data: ({ source }) => [
    [`/${source}`, ".entries-panel", "people"],
    [`/${source}?sort=name&order=desc`, '[role="columnheader"][aria-sort="descending"]', "people"],
    [`/${source}?tab=rules`, '::-p-xpath(//*[@role="tab"][@aria-selected="true"][.="Rules"])', "people"],
    [`/${source}?search=Ada`, 'input[aria-label="Search the entries"]', "people"],
    ["/999999", ".data-view .welcome"],
  ],
  media: ({ folder, file }) => [
    [`?file=${file}`, "dialog[open]"],
    [`/${folder}`, '.path [aria-current="location"]'],
    [`?folder=${folder}`, "dialog[open]"],
    ["?search=pic", ".tiles li"],
  ],
  outbox: ({ message }) => [
    [`/${message}`, ".mailbox.opened"],
    ["/email", ".mailbox.opened"],
    ["/sms", ".mailbox.opened"],
    ["?status=failed", ".mailbox .empty"],
  ],
  notifications: ({ notification }) => [
    [`/${notification}`, ".mailbox.opened"],
    ["/new", ".mailbox.opened"],
  ],
  alerts: ({ alert }) => [
    [`/${alert}`, ".mailbox.opened"],
    ["/new", ".mailbox.opened"],
  ],
  settings: () => [["?key=title", '.setting[data-key="title"] :focus']],
  app: () => [
    ...Object.entries(APP_SUBPAGE_LABELS).map(([part, label]) => [`/${part}`, "#app-part", label] as const),
    ["/nonsense", "#app-part"],
  ],
  account: () => [],
  apps: () => [],
  people: ({ organization }) => [[`/${organization}`, "#content h2, #content h3"]],
  access: ({ organization }) => [[`/${organization}`, "#content h2, #content h3"]],
  service: () => [],
};

const headOf = (view: View) => (view === "app" ? APP_SUBPAGE_LABELS.general : VIEW_DETAILS[view].label);

/** Returns the heading and the title of a page without an item. */
const headsOf = (view: View) => ({ head: headOf(view), title: VIEW_DETAILS[view].label });

function listAddresses(items: Items): PageAddress[] {
  const { app } = items;
  const pages = VIEW_NAMES.flatMap((view): PageAddress[] => [
    { address: `/${app}/${view}`, ...headsOf(view) },
    { address: `/${app}/${view}/`, ...headsOf(view) },
    // An address without an app ID opens the first app.
    { address: `/${view}`, ...headsOf(view) },
    // An unknown parameter changes nothing.
    { address: `/${app}/${view}?nonsense=1`, ...headsOf(view) },
    ...ADDRESSES_OF_ITEMS[view](items).map(([rest, part, head]) => ({
      address: `/${app}/${view}${rest}`,
      ...(head === undefined ? headsOf(view) : { head }),
      part,
    })),
  ]);
  return [
    ...pages,
    { address: `/${app}`, head: "Home" },
    { address: "/", head: "Home" },
    { address: "", head: "Home" },
    { address: `${app}/runs`, head: "Runs" },
    { address: `/${app}/nonsense`, head: "Home" },
    { address: `/${app}/nonsense/5`, head: "Home" },
    { address: "/nonsense", head: "Home" },
    // In an earlier release, the page of runs had the name `log`.
    { address: `/${app}/log`, head: "Runs" },
    { address: `/${app}/log?state=completed`, head: "Runs", part: 'select[name="state"][data-set="true"]' },
    // The editor moves to the line once. The page then removes the line from its address.
    {
      address: `/${app}/actions/${items.action}?line=2&column=3`,
      head: "first",
      part: ".workspace",
      redirectsTo: `/${app}/actions/${items.action}`,
    },
  ];
}

async function fillItems({ appId, rest, url, tokens }: TestService): Promise<Items> {
  const post = async (path: string, body: unknown) => {
    const answer = await rest("POST", path, { body });
    expect(answer.http, `${path}: ${JSON.stringify(answer.body)}`).to.be.within(200, 299);
    return answer.body;
  };
  const [v1, v3] = [`/v1/apps/${appId}`, `/v3/apps/${appId}/actions`];
  const triggers = [{ trigger: "manual" }];
  const { action } = await post(v3, { name: "first", active: true, triggers, code: CODE });
  await post(`${v3}/${action.id}/runWithResult`, {});
  const run = (await rest("GET", `/v3/apps/${appId}/runs`)).body.runs[0];
  await post(`${v1}/settings`, { title: "Shop" });
  const { dataSource } = await post(`${v1}/data-sources`, { name: "people" });
  await post(`${v1}/data-sources/${dataSource.id}/entries`, { name: "Ada" });
  const { folder } = await post(`${v1}/media/folders`, { name: "pictures" });
  const content = new FormData();
  content.append("file", new Blob(["a text"], { type: "text/plain" }), "words.txt");
  const headers = { "auth-token": tokens.editor };
  const sent = await fetch(`${url}${v1}/media/files`, { method: "POST", headers, body: content });
  const { files } = (await sent.json()) as { files: { id: number }[] };
  const notification = await post(`${v1}/notifications`, { data: { title: "Hello" } });
  const to = [{ email: "ada@example.com" }];
  await post(`${v1}/communicate/email`, { to, subject: "Hello", html: "<p>Hello</p>" });
  const message = (await rest("GET", `${v1}/communicate/messages`)).body.messages[0];
  const alert = await post(`${v1}/alerts`, { name: "a", condition: "failed", channel: "email", to: [to[0]!.email] });
  const { organizations } = (await rest("GET", "/v1/auth/session", { as: "admin" })).body;
  return {
    app: appId,
    action: action.id,
    run: run.id,
    source: dataSource.id,
    folder: folder.id,
    file: files[0]!.id,
    message: message.id,
    alert: alert.alert.id,
    notification: notification.id,
    organization: organizations[0]?.id ?? 1,
  };
}

/** Accessibility roles for which the test expects a name. */
const NAMED_ROLES = new Set(
  "button,link,textbox,searchbox,combobox,checkbox,radio,switch,spinbutton,slider,tab,menuitem,dialog,alertdialog".split(
    ",",
  ),
);

/** Returns a description of each control in the page's accessibility tree that has no name. */
async function findUnnamedControls(page: Page): Promise<string[]> {
  const listUnnamed = ({ role, name = "", children = [] }: SerializedAXNode): string[] => [
    ...(NAMED_ROLES.has(role) && name.trim() === "" ? [`a ${role} without a name`] : []),
    ...children.flatMap(listUnnamed),
  ];
  return listUnnamed((await page.accessibility.snapshot({ interestingOnly: false }))!);
}

const findTwelveHourTimes = async (page: Page): Promise<string[]> =>
  (await page.$eval("#content", (content) => content.textContent)).match(/\d\s[AP]M\b/g) ?? [];

/** Returns the addresses in the docs. IDs of this test's items replace those of the examples. */
function listDocumentedAddresses({ app, action, run, source }: Items): string[] {
  const pages = readdirSync("docs", { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".md"));
  const addresses = pages.flatMap((name) => readFileSync(join("docs", name), "utf8").match(/#\/[\w/?=&-]+/g) ?? []);
  return [...new Set(addresses)].map((address) =>
    address
      .slice(1)
      .replace(/^\/1\b/, `/${app}`)
      .replace("actions/12", `actions/${action}`)
      .replace("runs/12", `runs/${run}`)
      .replace("data/3", `data/${source}`),
  );
}

describe("the addresses of Studio", () => {
  let service: TestService;
  let browser: Browser;
  let page: Page;
  let watch: PageWatch;
  let studio: StudioPage;
  let items: Items;

  before(async () => {
    [service, browser] = await Promise.all([startTestService(), launchChromium()]);
    items = await fillItems(service);
    page = await browser.newPage();
    watch = watchPage(page, service.url);
    studio = studioPage(page);
    await page.goto(`${service.url}/studio`);
    await studio.signIn(service.tokens.admin);
  });
  after(async () => {
    await browser?.close();
    await service?.stop();
  });

  async function show({ address, head, title = head, part, redirectsTo }: PageAddress): Promise<void> {
    const isShown = `document.title.startsWith(${JSON.stringify(`${title} · `)}) &&
      document.querySelector(".breadcrumbs h1")?.textContent === ${JSON.stringify(head)} &&
      !/^(Loading…)?$/.test(document.querySelector("#content").textContent)`;
    await page.evaluate(`location.hash = ${JSON.stringify(address)}`);
    await page.waitForFunction(isShown, PAGE_WAIT).catch(async () => {
      const shown = await page.evaluate("[document.title, document.querySelector('.breadcrumbs h1')?.textContent]");
      throw new Error(`#${address} shows ${JSON.stringify(shown)} and not ${head}`);
    });
    if (part !== undefined)
      await page.waitForSelector(part, PAGE_WAIT).catch(() => {
        throw new Error(`#${address} shows no ${part}`);
      });
    if (redirectsTo === undefined) return;
    await page.waitForFunction(`location.hash === ${JSON.stringify(`#${redirectsTo}`)}`, PAGE_WAIT).catch(() => {
      throw new Error(`#${address} does not become #${redirectsTo}`);
    });
  }

  /** Opens a page other than the expected one, so that an address that changes nothing is detected. */
  async function openOtherPage({ head }: PageAddress): Promise<void> {
    const view = head === VIEW_DETAILS.account.label ? "settings" : "account";
    await show({ address: `/${items.app}/${view}`, head: VIEW_DETAILS[view].label });
  }

  /** Opens an address from another page. Adds a message to `faults` if the page is wrong, a control has no name, or a time has AM or PM. */
  async function open(shown: PageAddress, faults: string[]): Promise<void> {
    try {
      await openOtherPage(shown);
      await show(shown);
      const wrong = [...(await findUnnamedControls(page)), ...(await findTwelveHourTimes(page))];
      if (wrong.length > 0) throw new Error(`#${shown.address} shows ${wrong.join(", ")}`);
    } catch (error) {
      faults.push((error as Error).message);
    }
  }

  longTest(
    "open the pages, items and filters that they name, also without an app, with unknown names and with unknown parameters",
    async () => {
      const faults: string[] = [];
      for (const shown of listAddresses(items)) {
        await open(shown, faults);
      }
      expect(faults).to.deep.equal([]);
    },
  );

  longTest("are those of the documentation", async () => {
    const faults: string[] = [];
    const documented = listDocumentedAddresses(items);
    expect(documented.length).to.be.above(5);
    const views = documented.map((address) =>
      address
        .split("?")[0]!
        .split("/")
        .find((part) => part in VIEW_DETAILS),
    );
    for (const [at, address] of documented.entries()) {
      const view = views[at] as View | undefined;
      expect(view, address).to.be.a("string");
      const item = address.split("?")[0]!.split("/")[3];
      const itemHeads: Partial<Record<View, string>> = {
        actions: "first",
        runs: `Run ${item}`,
        data: "people",
        app: APP_SUBPAGE_LABELS[item as keyof typeof APP_SUBPAGE_LABELS],
      };
      await open({ address, head: (item && itemHeads[view!]) || headOf(view!) }, faults);
    }
    expect(faults).to.deep.equal([]);
  });

  longTest("open in another tab, from a link of the page", async () => {
    await show({ address: `/${items.app}/runs`, head: "Runs" });
    const link = await page.waitForSelector(`.runs-box a[href$="#/${items.app}/runs/${items.run}"]`);
    const href = await link!.evaluate((element) => (element as unknown as { href: string }).href);
    const tab = await browser.newPage();
    await tab.goto(href);
    await tab.waitForFunction(`document.title.startsWith("Run ${items.run} · ")`);
    await tab.waitForSelector(".timeline");
    await tab.close();
  });

  longTest("show an app that does not exist as such", async () => {
    await studio.open("999999/runs");
    await page.waitForSelector(studio.withText("h1", "No app 999999"));
  });

  longTest("cause no error", async () => {
    expect(watch.errors).to.deep.equal([]);
  });
});
