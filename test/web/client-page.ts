/** Opens a page with the client library for each test of a suite, with a scripted service and a second host. */
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
  /** Opens the page again with these scripts, after a test has changed the service's responses. */
  open(...scripts: string[]): Promise<void>;
}

/**
 * Registers the hooks of a suite that open the page. The returned object has its values only inside tests. By default, each test has a
 * profile of its own. With `isReloaded`, all tests share one page, which is loaded again for each test. This takes a third of the time; use
 * it if the suite stores nothing in the page. Without `isOpened`, each test opens its page itself.
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

/** Returns code that evaluates to the reason with which the promise is rejected, as plain JSON. */
export const rejectionCode = (promise: string) =>
  `(${promise}).then(() => "resolved", (error) =>
    ({ isError: error instanceof Error, name: error.name, message: error.message, own: { ...error },
       json: JSON.stringify(error) }))`;
