/** Opens pages with the client library for the tests of a suite. Test servers take the place of the service and of another host. */
import type { Browser, Page } from "puppeteer";
import { launchChromium, type PageWatch, watchPage } from "./chromium.js";
import { type ClientService, startClientService } from "./client-service.js";

export interface ClientPage {
  service: ClientService;
  /** Second host, which must receive no request. */
  elsewhere: ClientService;
  page: Page;
  watch: PageWatch;
  run(code: string): Promise<unknown>;
  /** Loads the page again, with these scripts. */
  open(...scripts: string[]): Promise<void>;
}

/**
 * Registers hooks that open a page for each test, by default in a separate profile. With `isReloaded`, all tests share one page, which is
 * reloaded for each test. This is faster, but the tests must store nothing in the page. With `isOpened: false`, each test opens its page
 * itself. The returned object has its fields only while a test or hook runs.
 */
export function useClientPage({ isReloaded = false, isOpened = true } = {}): ClientPage {
  let browser: Browser;
  const clientPage = {
    run: (code: string) => clientPage.page.evaluate(code),
    async open(...scripts: string[]) {
      const query = scripts.length > 0 ? `?with=${scripts.join(",")}` : "";
      await clientPage.page.goto(`${clientPage.service.origin}/page${query}`);
    },
  } as ClientPage;

  before(async () => {
    [clientPage.service, clientPage.elsewhere, browser] = await Promise.all([
      startClientService(),
      startClientService(),
      launchChromium(),
    ]);
  });

  beforeEach(async () => {
    clientPage.service.reset();
    clientPage.elsewhere.reset();
    if (!isReloaded || !clientPage.page) {
      const context = await browser.createBrowserContext();
      clientPage.page = await context.newPage();
      clientPage.watch = watchPage(clientPage.page, clientPage.service.origin);
    }
    if (isOpened) await clientPage.open();
  });

  afterEach(async () => {
    if (!isReloaded) await clientPage.page.browserContext().close();
  });

  after(async () => {
    await browser?.close();
    await Promise.all([clientPage.service?.close(), clientPage.elsewhere?.close()]);
  });

  return clientPage;
}

/** Returns code that evaluates to a description of the error with which the promise rejects, or to "resolved". */
export const rejectionCode = (promise: string) =>
  `(${promise}).then(() => "resolved", (error) =>
    ({ isError: error instanceof Error, name: error.name, message: error.message, own: { ...error },
       json: JSON.stringify(error) }))`;
