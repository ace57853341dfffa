/** Tests the screens of Studio that its controls open: checks accessibility by axe, and that nothing is wider than the window. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { expect } from "chai";
import type { Browser, Page } from "puppeteer";
import { parseRoute } from "../../src/web/studio/shell/studio-route.js";
import { APP_SUBPAGE_LABELS, isAppSubpage, VIEW_NAMES, type View } from "../../src/web/studio/shell/views.js";
import { startRegistry, type TestRegistry } from "../harness/npm-registry.js";
import { createAccounts, createSignedInPerson, PASSPHRASE } from "../harness/people.js";
import { startPrefixProxy } from "../harness/prefix-proxy.js";
import { startTestService, type TestService } from "../harness/service.js";
import { until } from "../harness/until.js";
import { launchChromium, type PageWatch, watchPage } from "./chromium.js";
import { type Content, fillApp } from "./studio-content.js";
import { COUNT_FETCHES, crawl, kindOfPlace, settle } from "./studio-crawl.js";
import { type StudioPage, studioPage } from "./studio-page.js";

const AXE_FILE = createRequire(import.meta.url).resolve("axe-core/axe.min.js");

export interface WalkOptions {
  width: number;
  theme: "light" | "dark";
}

interface AxeViolation {
  id: string;
  nodes: { html: string; failureSummary: string }[];
}

/** IDs of the items that the test always opens, by page. Of all other items of a page, the test opens one. */
const ALWAYS_OPENED_ITEMS: Partial<Record<View, (content: Content, service: TestService) => number[]>> = {
  actions: ({ actionId }) => [actionId],
  runs: ({ runIds }) => runIds,
  people: (_content, { organizationId }) => [organizationId],
  access: (_content, { organizationId }) => [organizationId],
};

/** Pages of the table of routes. Each part of the page of an app counts as a page. */
const PAGES = VIEW_NAMES.flatMap((view) =>
  view === "app" ? Object.keys(APP_SUBPAGE_LABELS).map((part) => `app/${part}`) : [view],
);

/** Returns the name in PAGES of the page that a URL shows. */
function findPage(href: string): string {
  const { view, item } = parseRoute(href);
  return view === "app" ? `app/${isAppSubpage(item) ? item : Object.keys(APP_SUBPAGE_LABELS)[0]}` : view;
}

/** Paths below `/studio/`: three pages for one-time links, and one path that does not exist. */
const OTHER_PATHS = ["setup", "invitation", "reset", "unknown"];

/**
 * Code for the page: describes the visible elements in their order. Equal elements in a row count once. If several screens have equal
 * descriptions, the test checks only one of them.
 */
const READ_SHAPE = `(() => {
  const kinds = [...document.querySelectorAll("body *")].filter((element) => !element.closest(".monaco-editor, svg, canvas, option"))
    .filter((element) => element.checkVisibility())
    .map((element) => [element.tagName, element.className, element.role, element.ariaInvalid, element.ariaCurrent, element.disabled].join());
  return kinds.filter((kind, at) => kind !== kinds[at - 1]).join(";");
})()`;

/** Code for the page: sends a request with a JSON body, and fails if the service rejects it. */
const sendJson = (method: string, path: string, body: object) => `fetch(${JSON.stringify(path)}, {
  method: "${method}", headers: { "content-type": "application/json" }, body: ${JSON.stringify(JSON.stringify(body))},
}).then(async (answer) => { if (!answer.ok) throw new Error(await answer.text()); })`;

async function findScreenFaults(page: Page): Promise<string[]> {
  const violations = (await page.evaluate(`axe.run(document, { resultTypes: ["violations"] })
    .then(({ violations }) => violations.map(({ id, nodes }) => ({ id,
      nodes: nodes.map(({ html, failureSummary }) => ({ html: html.slice(0, 200), failureSummary })) })))`)) as AxeViolation[];
  const [scrolled, shown] = (await page.evaluate(
    "[document.documentElement.scrollWidth, document.documentElement.clientWidth]",
  )) as [number, number];
  return [
    ...violations.flatMap(({ id, nodes }) =>
      nodes.map(({ html, failureSummary }) => `${id}: ${html} ${failureSummary}`),
    ),
    ...(scrolled > shown ? [`${scrolled} pixels wide in a window of ${shown}`] : []),
  ];
}

export function walkStudio({ width, theme }: WalkOptions): void {
  describe(`Studio, ${theme}, ${width} pixels wide`, () => {
    let registry: TestRegistry;
    let service: TestService;
    let browser: Browser;
    let page: Page;
    let watch: PageWatch;
    let studio: StudioPage;
    let content: Content;
    /** Administrator of the service. This person can open all pages. */
    let person: Awaited<ReturnType<typeof createSignedInPerson>>;
    const shapes = new Set<string>();
    const visited = new Set<string>();
    const checkedPages = new Set<string>();
    const triedOn = new Map<string, Set<string>>();

    before(async () => {
      registry = await startRegistry();
      registry.publish({ name: "x", version: "1.2.3", files: { "index.js": "module.exports = 1" } });
      const environment = { NPM_PACKAGES: "on", NPM_REGISTRY: registry.url };
      [service, browser] = await Promise.all([startTestService(environment), launchChromium()]);
      page = await browser.newPage();
      watch = watchPage(page, service.url);
      await page.setViewport({ width, height: 800 });
      await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: theme }]);
      await page.evaluateOnNewDocument(COUNT_FETCHES);
      studio = studioPage(page);
      person = await createSignedInPerson(service);
      await page.goto(`${service.url}/studio`);
      await page.waitForSelector('form[aria-busy="false"]');
    });
    after(async () => {
      await browser?.close();
      await service?.stop();
      await registry?.close();
    });

    /** Opens these URLs. Follows the links of their screens, but only one link of each kind. Returns the faults of the screens. */
    async function walkUrls(first: string[], isHere: (href: string) => boolean): Promise<string[]> {
      const faults: string[] = [];
      const queue = [...first];
      for (let place = queue.shift(); place !== undefined; place = queue.shift()) {
        if (visited.has(place) || (!first.includes(place) && visited.has(kindOfPlace(place)))) continue;
        visited.add(place).add(kindOfPlace(place));
        const [kind = ""] = kindOfPlace(place).split("?");
        const tried = triedOn.get(kind) ?? new Set();
        triedOn.set(kind, tried);
        const found = await crawl(page, place, tried, async (steps) => {
          checkedPages.add(findPage((await page.evaluate("location.hash")) as string));
          const shape = (await page.evaluate(READ_SHAPE)) as string;
          if (shapes.has(shape)) return;
          shapes.add(shape);
          const where = [place, ...steps].join(" › ");
          faults.push(...(await findScreenFaults(page)).map((fault) => `${where}: ${fault}`));
        });
        queue.push(...[...found].filter(isHere));
      }
      return faults;
    }

    // Puppeteer loads axe through the DevTools protocol, because the policy of the page allows only scripts of the service.
    const loadAxe = () => page.evaluate(readFileSync(AXE_FILE, "utf8"));

    it("has a sign-in without an accessibility error of axe", async () => {
      await loadAxe();
      expect(await findScreenFaults(page)).to.deep.equal([]);
      await studio.signIn(person.token);
    });

    for (const view of VIEW_NAMES) {
      it(`has no error on the page “${view}” of an empty app`, async () => {
        await studio.open(`${service.appId}/${view}`);
        await settle(page);
        expect(await findScreenFaults(page)).to.deep.equal([]);
      });
    }

    it("gets its sample data", async () => {
      content = await fillApp(service);
    });

    it("reports an unknown app, also beside an app with a long name", async () => {
      await studio.open("99/actions");
      await page.waitForSelector(studio.withText("h1", "No app 99"));
      expect(await findScreenFaults(page)).to.deep.equal([]);
      const READ_EDGES = `(() => {
        const { left, right } = document.querySelector(".welcome .primary").getBoundingClientRect();
        return left >= 0 && right <= innerWidth;
      })()`;
      expect(await page.evaluate(READ_EDGES)).to.equal(true);
      await studio.open(`${service.appId}/actions`);
      await settle(page);
    });

    for (const view of VIEW_NAMES) {
      it(`has no accessibility error of axe on any screen of the page “${view}”, and nothing is wider than the window`, async () => {
        const viewHref = `#/${service.appId}/${view}`;
        const first = [
          viewHref,
          ...(ALWAYS_OPENED_ITEMS[view]?.(content, service) ?? []).map((id) => `${viewHref}/${id}`),
        ];
        const faults = await walkUrls(
          first,
          (href) => href === viewHref || href.startsWith(`${viewHref}/`) || href.startsWith(`${viewHref}?`),
        );
        expect(faults.join("\n\n")).to.equal("");
      });
    }

    it("has checked every page of the table of routes, and every part of the page of an app", () => {
      expect(PAGES.filter((name) => !checkedPages.has(name))).to.deep.equal([]);
    });

    it("shows all pages without an error", () => {
      expect(watch.errors).to.deep.equal([]);
    });

    it("has no accessibility error of axe while the connection is lost", async () => {
      // The proxy cuts the connections, because Chromium's offline mode does not close open sockets.
      const proxy = await startPrefixProxy("");
      try {
        proxy.setTarget(service.url);
        await page.goto(`${proxy.url}/studio#/${service.appId}/runs`);
        await page.waitForSelector(".runs-filters");
        await settle(page);
        await loadAxe();
        proxy.cut();
        await page.waitForSelector(".connection:not(:empty)");
        expect(await findScreenFaults(page)).to.deep.equal([]);
        proxy.restore();
        await page.waitForSelector(".connection:empty");
      } finally {
        await proxy.stop();
      }
      await page.goto(`${service.url}/studio#/${service.appId}/runs`);
      await page.waitForSelector(".top-bar");
      await loadAxe();
    });

    it("has no accessibility error of axe in the dialog of an ended session", async () => {
      await createAccounts(service).sessions.endAllSessions(person.user.id);
      // The test has ended the session without a request. So it waits until the service has read the notification of this change.
      await until(async () => (await service.rest("GET", "/v1/apps", { as: person.token })).http === 401);
      await studio.open(`${service.appId}/app/audit`);
      await page.waitForSelector("dialog[open] input[name=passphrase]");
      expect(await findScreenFaults(page)).to.deep.equal([]);
    });

    for (const path of OTHER_PATHS) {
      it(`has no accessibility error of axe on the page /studio/${path}`, async () => {
        await page.goto(`${service.url}/studio/${path}`);
        await page.waitForSelector("h1");
        await loadAxe();
        expect(await findScreenFaults(page)).to.deep.equal([]);
      });
    }

    it("has no accessibility error of axe on the page that finishes an account", async () => {
      const { token } = await createAccounts(service).accounts.createSetupLink();
      const body = { token, firstName: "Grace", lastName: "Hopper", email: "grace@example.com" };
      await page.evaluate(sendJson("POST", "/v1/auth/setup", body));
      await page.goto(`${service.url}/studio`);
      await page.waitForSelector(studio.withText("h2", "Choose how you sign in"));
      await loadAxe();
      expect(await findScreenFaults(page)).to.deep.equal([]);
    });

    it("has no accessibility error of axe without an app, for an administrator and for another person", async () => {
      await page.evaluate(sendJson("PUT", "/v1/auth/account", { passphrase: PASSPHRASE }));
      await service.db.query("DELETE FROM app");
      for (const isAdministrator of [true, false]) {
        await service.db.query("UPDATE person SET is_administrator = $1", [isAdministrator]);
        // The service caches rights, and this statement sends no notification. So the test waits until the service reads the rights again.
        const readKind = () =>
          page.evaluate('fetch("/v1/session").then((answer) => answer.json()).then(({ kind }) => kind)');
        await until(async () => ((await readKind()) === "admin") === isAdministrator);
        await page.goto(`${service.url}/studio`);
        await page.waitForSelector(studio.withText("h1", "No app"));
        expect((await page.$(".welcome form")) !== null).to.equal(isAdministrator);
        await loadAxe();
        expect(await findScreenFaults(page)).to.deep.equal([]);
      }
    });
  });
}
