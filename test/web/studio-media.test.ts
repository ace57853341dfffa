import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import type { Browser, ElementHandle, Page } from "puppeteer";
import type { TestService } from "../harness/service.js";
import { useSharedService } from "../harness/shared-service.js";
import { until } from "../harness/until.js";
import { mediaOf, picture } from "../media/support.js";
import { launchChromium, type PageWatch, watchPage } from "./chromium.js";
import { type StudioPage, studioPage } from "./studio-page.js";

describe("Studio's media page", () => {
  let service: TestService;
  let browser: Browser;
  let page: Page;
  let watch: PageWatch;
  let studio: StudioPage;
  let folder: string;

  before(async () => {
    [service, browser] = await Promise.all([useSharedService("api"), launchChromium()]);
    folder = mkdtempSync(join(tmpdir(), "svc-upload-"));
    page = await browser.newPage();
    await page.setViewport({ width: 1280, height: 800 });
    watch = watchPage(page, service.url);
    studio = studioPage(page);
    await page.goto(`${service.url}/studio`);
    await studio.signIn(service.tokens.editor);
    await studio.button("Media");
  });
  after(async () => {
    await browser?.close();
    await service?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  const tile = (name: string) => `.tile[title="${name}"]`;
  const listing = async (query = "") => (await mediaOf(service).rest("GET", query)).body;

  async function choose(name: string, bytes: Uint8Array | string): Promise<void> {
    const path = join(folder, name);
    writeFileSync(path, bytes);
    const input = (await page.$('input[type="file"]')) as ElementHandle<never>;
    await input.uploadFile(path);
  }

  it("explains what to do if there is nothing", async () => {
    expect(await studio.textOf(".media .welcome")).to.contain("Drop files here");
  });

  it("creates a folder, opens it, and leads back", async () => {
    await studio.button("New folder");
    await page.keyboard.type("Invoices");
    await page.keyboard.press("Enter");
    await page.waitForSelector(tile("Invoices"));
    await page.click(tile("Invoices"));
    await page.waitForSelector(studio.withText("b", "Invoices", '//*[contains(@class, "path")]'));
    expect(await page.evaluate("location.hash")).to.match(/^#\/\d+\/media\/\d+$/);
    await studio.button("Media", '//*[contains(@class, "path")]');
    await page.waitForSelector(tile("Invoices"));
  });

  it("rejects a folder with a used name, with a message at its field", async () => {
    await studio.button("New folder");
    await page.keyboard.type("Invoices");
    await page.keyboard.press("Enter");
    await page.waitForSelector('.media-head input[aria-invalid="true"]');
    expect(await studio.textOf(".media-head .fault")).to.contain("the parent folder already contains a folder named");
    await page.keyboard.press("Escape");
  });

  it("uploads the chosen files, shows a picture's thumbnail and a file's kind", async () => {
    await choose("sunset.jpg", await picture(1200, 800, "#d84").jpeg().toBuffer());
    await page.waitForSelector(`${tile("sunset.jpg")} img`);
    await choose("notes.txt", "line one\nline two");
    await page.waitForSelector(tile("notes.txt"));
    expect(await studio.textOf(`${tile("notes.txt")} .kind`)).to.equal("TXT");
    expect(await studio.textOf(`${tile("sunset.jpg")} .hint`)).to.contain("1200 × 800");
  });

  it("accepts files that are dropped on the page", async () => {
    await page.evaluate(`{
      const dataTransfer = new DataTransfer();
      dataTransfer.items.add(new File(["dropped"], "dropped.txt"));
      const zone = document.querySelector(".media");
      for (const type of ["dragover", "drop"]) zone.dispatchEvent(new DragEvent(type, { dataTransfer, bubbles: true, cancelable: true }));
    }`);
    await page.waitForSelector(tile("dropped.txt"));
  });

  it("explains why a file is rejected, and removes the message on request", async () => {
    await choose("broken.jpg", new Uint8Array([0xff, 0xd8, 0xff, 0xe1, 0xff, 0xff, 1, 2, 3]));
    await page.waitForSelector(".uploads .fault");
    expect(await studio.textOf(".uploads .fault")).to.contain("but cannot be read:");
    await page.click('[aria-label="Remove broken.jpg from the uploads"]');
    await page.waitForFunction('document.querySelector(".uploads") === null');
  });

  it("shows, renames and moves a file", async () => {
    await page.click(tile("sunset.jpg"));
    await page.waitForSelector(".media-details .preview img");
    await page.waitForFunction('document.querySelector(".preview img").naturalWidth > 500');
    expect(await page.evaluate("location.hash")).to.match(/file=\d+$/);
    await page.reload();
    await page.waitForSelector(".media-details .preview img");
    await studio.replace('.media-details input[aria-label="Name"]', "evening.jpg");
    await studio.button("Rename");
    await page.waitForFunction('document.querySelector(".media-details h2").textContent === "evening.jpg"');
    const [invoices] = (await listing()).folders;
    await page.select('.media-details select[aria-label="Move to"]', String(invoices.id));
    await page.waitForFunction('document.querySelector(".media-details") === null');
    await until(async () => (await listing(`?folderId=${invoices.id}`)).files.length === 1);
  });

  it("copies a link that needs no credential", async () => {
    await browser
      .defaultBrowserContext()
      .overridePermissions(service.url, ["clipboard-read", "clipboard-sanitized-write"]);
    await page.bringToFront();
    await page.click(tile("notes.txt"));
    await page.waitForFunction('document.querySelector(".preview pre")?.textContent === "line one\\nline two"');
    await studio.button("Copy link");
    await page.waitForFunction(
      'document.querySelector(".media-details [role=status]").textContent.startsWith("Copied")',
    );
    const link = String(await page.evaluate("navigator.clipboard.readText()"));
    expect(await (await fetch(link)).text()).to.equal("line one\nline two");
    await page.keyboard.press("Escape");
    await page.waitForFunction('document.querySelector(".media-details") === null');
  });

  it("finds by name in all folders", async () => {
    await page.type('.media-head input[type="search"]', "EVENING");
    await page.waitForSelector(tile("evening.jpg"));
    await page.waitForFunction('document.querySelectorAll(".tile").length === 1');
    await studio.replace('.media-head input[type="search"]', " ");
    await page.keyboard.press("Backspace");
    await page.waitForSelector(tile("notes.txt"));
  });

  it("deletes with the keyboard, and only after confirmation", async () => {
    await page.focus(tile("dropped.txt"));
    await page.keyboard.press("Delete");
    await studio.button("Cancel", "//dialog");
    expect((await listing()).files.map(({ name }: { name: string }) => name)).to.include("dropped.txt");
    await page.focus(tile("dropped.txt"));
    await page.keyboard.press("Delete");
    await studio.button("Delete", "//dialog");
    await page.waitForFunction(`document.querySelector('${tile("dropped.txt")}') === null`);
    expect((await listing()).files.map(({ name }: { name: string }) => name)).to.deep.equal(["notes.txt"]);
  });

  it("fits on a phone: nothing is cut off, and everything can be reached", async () => {
    await page.setViewport({ width: 390, height: 800 });
    for (const step of ["grid", "details"]) {
      if (step === "details") await page.click(tile("notes.txt"));
      if (step === "details") await page.waitForSelector(".media-details .preview pre");
      const wide = await page.evaluate(`[...document.querySelectorAll("body *")].filter((one) =>
        // Leaves out the navigation bar, which can scroll horizontally.
        !one.closest(".top-bar nav") &&
        one.getBoundingClientRect().right > innerWidth + 1 && getComputedStyle(one).position !== "absolute").map((one) => one.className || one.tagName)`);
      expect(wide, step).to.deep.equal([]);
    }
  });

  it("loads only from the service, without an error", () => {
    // Leaves out the errors of requests that this test has sent to be rejected.
    const errors = watch.errors.filter((text) => !/status of 400/.test(text));
    expect({ ...watch, errors }).to.deep.equal({ foreign: [], errors: [] });
  });
});
