/** Opens the client library in a real page for each test of a suite, with its service and a foreign host. */
import type { Browser, Page } from "puppeteer";
import { launchChromium, type PageWatch, watchPage } from "./chromium.js";
import { type ClientService, startClientService } from "./client-service.js";

export interface ClientPage {
  service: ClientService;
  /** Another host, which must receive nothing. */
  elsewhere: ClientService;
  page: Page;
  watch: PageWatch;
  /** Evaluates code in the page. */
  run(code: string): Promise<unknown>;
  /** Reloads the page with its scripts, after a test has set the service up. */
  open(...scripts: string[]): Promise<void>;
}

/** Registers the suite's hooks; the returned object is filled before each test. */
export function useClientPage(): ClientPage {
  let browser: Browser;
  const fixture = {
    run: (code: string) => fixture.page.evaluate(code),
    async open(...scripts: string[]) {
      const query = scripts.length > 0 ? `?with=${scripts.join(",")}` : "";
      await fixture.page.goto(`${fixture.service.origin}/page${query}`);
    },
  } as ClientPage;

  before(async () => {
    [fixture.service, fixture.elsewhere, browser] = await Promise.all([
      startClientService(),
      startClientService(),
      launchChromium(),
    ]);
  });

  beforeEach(async () => {
    fixture.service.reset();
    fixture.elsewhere.reset();
    const context = await browser.createBrowserContext();
    fixture.page = await context.newPage();
    fixture.watch = watchPage(fixture.page, fixture.service.origin);
    await fixture.open();
  });

  afterEach(() => fixture.page.browserContext().close());

  after(async () => {
    await browser?.close();
    await Promise.all([fixture.service?.close(), fixture.elsewhere?.close()]);
  });

  return fixture;
}

/** Code that returns the reason of a rejected promise in a serializable form. */
export const rejectionOf = (promise: string) =>
  `(${promise}).then(() => "resolved", (error) =>
    ({ isError: error instanceof Error, name: error.name, message: error.message, own: { ...error },
       json: JSON.stringify(error) }))`;
