/** Tests data sources in Studio: creates them from a file, and searches, edits and restores entries. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import type { Browser, ElementHandle, HTTPRequest, Page } from "puppeteer";
import { longTest } from "../harness/samples.js";
import type { TestService } from "../harness/service.js";
import { useSharedService } from "../harness/shared-service.js";
import { untilEqual } from "../harness/until.js";
import { launchChromium, type PageWatch, watchPage } from "./chromium.js";
import { editHooksAndIndexes, editRules, followEntries, readCells, tryRules } from "./data-forms.js";
import { holdReads } from "./held-reads.js";
import { type StudioPage, studioPage } from "./studio-page.js";

/** Code for the page: true if the grid contains a cell of the last of 100,000 entries. */
const SHOWS_LAST_ENTRY = 'document.querySelector(`.grid-rows button[aria-label="N: 99999"]`) !== null';

describe("Studio's page of data sources", () => {
  let service: TestService;
  let browser: Browser;
  let page: Page;
  let watch: PageWatch;
  let studio: StudioPage;
  const folder = mkdtempSync(join(tmpdir(), "svc-studio-data-"));

  before(async () => {
    [service, browser] = await Promise.all([useSharedService("api"), launchChromium()]);
    page = await browser.newPage();
    await page.setViewport({ width: 1280, height: 800 });
    watch = watchPage(page, service.url);
    studio = studioPage(page);
    await page.goto(`${service.url}/studio#/${service.appId}/data`);
    await studio.signIn(service.tokens.editor);
  });

  after(async () => {
    await browser?.close();
    await service?.stop();
    rmSync(folder, { recursive: true });
  });

  const choose = async (name: string, text: string) => {
    const file = join(folder, name);
    writeFileSync(file, text);
    await ((await page.waitForSelector('input[type="file"]')) as ElementHandle<never>).uploadFile(file);
  };
  const typesShown = () =>
    page.$$eval('.data-import select[aria-label^="Type of"]', (all) => all.map((element) => element.value));
  const rows = (count: number) =>
    page.waitForFunction(`document.querySelectorAll(".grid-rows .grid-row button.cell").length >= ${count}`);
  const cells = () => readCells(page);
  const stored = async (name: string) => {
    const query = { order: [["id", "ASC"]] };
    const path = `/v1/apps/${service.appId}/data-sources/${encodeURIComponent(name)}/query`;
    return (await service.rest("POST", path, { body: query })).body.entries.map(({ data }: { data: object }) => data);
  };

  it("creates one from a CSV, whose first rows it shows before anything is sent", async () => {
    await studio.replace(".data-source.new .field input", "Seats");
    await choose("seats.csv", "Row,Seat\nA,1\nA,2\nB,1\n");
    await page.waitForSelector(".data-import td");
    const heads = await page.$$eval(".data-import th", (all) => all.map((head) => head.firstChild!.textContent));
    expect(heads).to.deep.equal(["Row", "Seat"]);
    // All columns are texts until the person chooses types: as a number, 00123 would lose its zeros.
    expect(await typesShown()).to.deep.equal(["text", "text"]);
    await studio.button("Use suggested types");
    expect(await typesShown()).to.deep.equal(["text", "number"]);
    await page.select('select[aria-label="Type of Row"]', "date");
    expect(await page.$$eval(".data-import td.fault", (all) => all.map((cell) => cell.textContent))).to.deep.equal([
      ...["A", "A", "B"],
    ]);
    await studio.button("Create from this file");
    await page.waitForSelector(
      "::-p-xpath(//*[@role='alert'][starts-with(., 'row 2 of the file: \"Row\" must be a date such as')])",
    );
    await page.select('select[aria-label="Type of Row"]', "text");
    await page.select('select[aria-label="Type of Seat"]', "text");
    expect(await page.$eval(".data-import select", (field) => field.selectedOptions[0]!.textContent)).to.equal(
      "Detected: commas",
    );
    await studio.button("Create from this file");
    await rows(6);
    expect((await cells()).sort()).to.deep.equal(["A|1", "A|2", "B|1"]);
  });

  it("asks before unsaved rules are left for another tab or page", async () => {
    await studio.button("Rules", '//*[@role="tablist"]');
    await studio.showJson("hooks");
    await studio.replace("#hooks", "[1]");
    await studio.button("Entries", '//*[@role="tablist"]');
    await studio.button("Cancel", "//dialog");
    expect(await page.$eval("#hooks", (text) => (text as unknown as { value: string }).value)).to.equal("[1]");
    await studio.follow("Settings");
    await studio.button("Cancel", "//dialog");
    await studio.button("Entries", '//*[@role="tablist"]');
    await studio.button("Discard changes", "//dialog");
    await rows(6);
  });

  it("sorts by a column, searches in all, and edits a cell in place", async () => {
    const head = await page.waitForSelector("::-p-xpath(//*[contains(@class,'grid-head')]//button[.//b='Seat'])");
    await head!.click();
    await head!.click();
    await page.waitForFunction('document.querySelector(".grid-rows .grid-row").textContent.includes("2")');
    expect((await cells())[0]).to.equal("A|2");
    await studio.replace('input[aria-label="Search the entries"]', "b");
    await page.waitForFunction('document.querySelector(".entries-panel .hint").textContent === "1 entry"');
    await page.waitForFunction('location.hash.endsWith("?sort=Seat&order=desc&search=b")');
    await page.reload();
    await page.waitForFunction('document.querySelector(".entries-panel .hint")?.textContent === "1 entry"');
    await page.waitForSelector('[role="columnheader"][aria-sort="descending"]');
    await page.click(".grid-rows button.cell");
    expect(await page.$eval(".grid-rows input.cell", (cell) => cell.getBoundingClientRect().height)).to.equal(30);
    await studio.replace(".grid-rows input.cell", "C");
    await page.keyboard.press("Enter");
    await page.waitForFunction('document.querySelector(".entries-panel .hint").textContent === "0 entries"');
    expect(await stored("Seats")).to.deep.include({ Row: "C", Seat: "1" });
    await page.evaluate('location.hash = location.hash.replace("search=b", "search=a")');
    await page.waitForFunction('document.querySelector(".entries-panel .hint").textContent === "2 entries"');
    await studio.replace('input[aria-label="Search the entries"]', "");
  });

  it("is a table for assistive technology, with a column name for each cell", async () => {
    await rows(6);
    const [heads, first] = await studio.rowsOf("Entries");
    expect(heads!.map(({ name }) => name)).to.deep.equal(["id", "Row", "Seat", "Delete"]);
    expect(heads!.map(({ role }) => role)).to.deep.equal(Array(4).fill("columnheader"));
    expect(first!.map(({ role }) => role)).to.deep.equal(["rowheader", "cell", "cell", "cell"]);
    expect(first![1]!.name).to.match(/^Row: /);
  });

  it("has an address for each tab of a data source", async () => {
    await studio.button("Versions", '//*[@role="tablist"]');
    await page.waitForFunction('location.hash.includes("tab=versions")');
    await page.reload();
    await page.waitForSelector('[role="tab"][aria-selected="true"][data-tab="Versions"]');
    await studio.button("Entries", '//*[@role="tablist"]');
    await page.waitForFunction('!location.hash.includes("tab=")');
  });

  it("does not overwrite another person's change, and says so", async () => {
    await rows(6);
    await page.click(".grid-rows button.cell");
    const path = `/v1/apps/${service.appId}/data-sources/Seats/query`;
    const { entries } = (await service.rest("POST", path, { body: {} })).body;
    for (const { id } of entries)
      await service.rest("PUT", `/v1/apps/${service.appId}/data-sources/Seats/entries/${id}`, {
        body: { data: { Row: "theirs" } },
      });
    await studio.replace(".grid-rows input.cell", "mine");
    await page.keyboard.press("Enter");
    await page.waitForFunction('document.querySelector(".grid-rows").textContent.includes("theirs")');
    await page.waitForSelector(".entries-panel [role=alert] ::-p-text(someone else changed this entry)");
    expect(JSON.stringify(await stored("Seats"))).to.not.contain("mine");
  });

  it("creates one by hand: an empty one, an entry in it, a column, and a value there", async () => {
    await studio.button("New", '//*[@class="data-list"]');
    await studio.replace(".data-source.new .field input", "Guests by hand");
    await studio.button("Create empty");
    await studio.button("Add an entry");
    await page.waitForSelector('[aria-label^="Delete entry"]');
    await studio.button("Add a column");
    await studio.replace('[aria-label="Name of the new column"]', "Email");
    await page.keyboard.press("Enter");
    await (await page.waitForSelector(".grid-rows button.cell"))!.click();
    await studio.replace(".grid-rows input.cell", "ada@example.com");
    // The page reads the entries twice: after it has changed them, and because the service reports this change.
    const reads = await holdReads(page, "FindEntries");
    await page.keyboard.press("Enter");
    await reads.waitForCount(2);
    await reads.end(0);
    expect(await page.$(studio.withText("button", "ada@example.com"))).not.to.equal(null);
    await reads.endAll();
    await page.waitForSelector(studio.withText("button", "ada@example.com"));
    await untilEqual(() => stored("Guests by hand"), [{ Email: "ada@example.com" }]);
    await studio.button("Seats", '//*[@class="data-list"]');
    await rows(6);
  });

  it("downloads a CSV whose cells a spreadsheet does not execute as formulas, and JSON with the stored texts", async () => {
    const path = `/v1/apps/${service.appId}/data-sources/Seats/entries`;
    const formula = await service.rest("POST", path, { body: { Row: "=1+1", Seat: "@A1" } });
    const download = (format: string) =>
      page.$eval(`a[download="Seats.${format}"]`, async (link) => (await fetch(link.href)).text());
    expect((await download("csv")).split("\r\n").slice(-2)).to.deep.equal([`"'=1+1","'@A1"`, ""]);
    expect(JSON.parse(await download("json")).at(-1)).to.deep.equal({ Row: "=1+1", Seat: "@A1" });
    await service.rest("DELETE", `${path}/${formula.body.id}`);
  });

  it("shows the delimiter that it detects in a file, and imports with the one that the person chooses", async () => {
    await studio.button("Guests by hand", '//*[@class="data-list"]');
    await studio.button("Import", '//*[@role="tablist"]');
    await choose("two.csv", "Row;Seat,Note\nA;1,b\n");
    await page.waitForSelector('select[aria-label="Type of Row;Seat"]');
    const delimiter = ".data-import > label select";
    expect(await page.$eval(delimiter, (field) => field.selectedOptions[0]!.textContent)).to.equal("Detected: commas");
    await page.select(delimiter, ";");
    await page.waitForSelector('select[aria-label="Type of Seat,Note"]');
    await page.click('.data-import input[type="checkbox"]');
    await studio.button("Import", "//*[contains(@class,'data-import')]");
    await page.waitForSelector(
      ".data-import ::-p-text(1 entry was imported: 2 columns, cells separated by semicolons)",
    );
    expect(await stored("Guests by hand")).to.deep.equal([{ Row: "A", "Seat,Note": "1,b" }]);
    await studio.button("Seats", '//*[@class="data-list"]');
    await rows(6);
  });

  it("replaces the entries by a file and restores the earlier ones", async () => {
    await studio.button("Import", '//*[@role="tablist"]');
    await choose("new.csv", "Row,Seat\nZ,9\n");
    // While the form keeps the existing entries, it suggests the types of their columns. Both are texts already, so the button is absent.
    await page.waitForSelector(".data-import td");
    expect(await typesShown()).to.deep.equal(["text", "text"]);
    expect(await page.$(studio.withText("button", "Use suggested types"))).to.equal(null);
    await page.click('.data-import input[type="checkbox"]');
    await studio.button("Use suggested types");
    expect(await typesShown()).to.deep.equal(["text", "number"]);
    await studio.button("Import", "//*[contains(@class,'data-import')]");
    await page.waitForFunction(
      '/1 entry was imported: 2 columns, cells separated by commas/.test(document.querySelector(".data-import")?.textContent ?? "")',
    );
    expect(await stored("Seats")).to.deep.equal([{ Row: "Z", Seat: 9 }]);
    await studio.button("Versions", '//*[@role="tablist"]');
    await studio.button("Restore", "//*[contains(@class,'data-versions')]");
    await studio.button("Restore", "//dialog");
    await page.waitForFunction('document.querySelectorAll(".data-versions li").length === 2');
    expect(await stored("Seats")).to.have.length(3);
  });

  it("shows and sends only the file that was chosen last, also if an earlier one is read later", async () => {
    await studio.button("Import", '//*[@role="tablist"]');
    await page.evaluate(`{
      const read = Blob.prototype.text;
      Blob.prototype.text = async function () {
        Blob.prototype.text = read;
        await new Promise((resolve) => { window.endRead = resolve; });
        setTimeout(() => { window.isFirstRead = true; });
        return read.call(this);
      };
    }`);
    await choose("first.csv", "First\n1\n");
    await page.waitForFunction("window.endRead !== undefined");
    const isSendable = () =>
      page.$eval(".data-import button.primary", (button) => !(button as unknown as { disabled: boolean }).disabled);
    expect(await isSendable()).to.equal(false);
    await choose("second.csv", "Second\n2\n");
    await page.waitForSelector('select[aria-label="Type of Second"]');
    expect(await isSendable()).to.equal(true);
    await page.evaluate("window.endRead()");
    await page.waitForFunction("window.isFirstRead");
    expect(await page.$('select[aria-label="Type of First"]')).to.equal(null);
    expect(await page.$('select[aria-label="Type of Second"]')).not.to.equal(null);
  });

  it("explains in the service's words why rules are rejected, and keeps the valid ones", async () => {
    await studio.button("Rules", '//*[@role="tablist"]');
    await studio.showJson("accessRules");
    await studio.replace("#accessRules", '[{"type": ["look"], "allow": "all"}]');
    await studio.button("Save access rules");
    await page.waitForFunction(
      '/accessRules\\[0\\].type\\[0\\] must be/.test(document.querySelector("#accessRules-fault").textContent)',
    );
    await studio.replace("#accessRules", '[{"type": ["select"], "allow": "all"}]');
    await studio.button("Save access rules");
    await page.waitForSelector('[data-field="accessRules"] button:disabled');
    await page.waitForFunction('(document.querySelector("#accessRules-fault")?.textContent ?? "") === ""');
    const body = {};
    const read = await service.rest("POST", `/v1/apps/${service.appId}/data-sources/Seats/query`, { as: "live", body });
    expect(read.body.entries).to.have.length(3);
  });

  longTest(
    "edits access rules, hooks and indexes in forms, with the service's message beside a rejected item",
    async () => {
      const definition = async () =>
        (await service.rest("GET", `/v1/apps/${service.appId}/data-sources/Seats`)).body.dataSource;
      const before = await definition();
      await page.reload();
      await studio.button("Rules", '//*[@role="tablist"]');
      await editRules({ page, studio }, definition);
      await editHooksAndIndexes({ page, studio }, definition);
      const body = { accessRules: before.accessRules, hooks: [], indexes: [] };
      const restored = await service.rest("PUT", `/v1/apps/${service.appId}/data-sources/Seats`, { body });
      expect(restored.http, JSON.stringify(restored.body)).to.equal(200);
      await page.reload();
      await studio.button("Rules", '//*[@role="tablist"]');
    },
  );

  it("marks the data source of the app's users, and explains why it cannot without a hashed column", async () => {
    const mark = '[data-field="isUsers"] input';
    const stored = async () =>
      (await service.rest("GET", `/v1/apps/${service.appId}/data-sources/Seats`)).body.dataSource.isUsers;
    await page.click(mark);
    await page.waitForFunction(
      "/needs a hashed column/.test(document.querySelector('[data-field=\"isUsers\"] .fault').textContent)",
    );
    expect(await stored()).to.equal(false);
    await studio.showJson("hooks");
    await studio.replace("#hooks", '[{"type": "operations", "runOn": ["insert"], "fields": {"Code": ["hash"]}}]');
    await studio.button("Save hooks");
    await page.waitForSelector('[data-field="hooks"] button:disabled');
    await page.click(mark);
    await page.waitForSelector(`${mark}:checked`);
    expect(await stored()).to.equal(true);
  });

  it("tests unsaved rules as a user, and shows what that user would see", () => tryRules({ page, studio }, service));

  longTest("shows which index recent queries use, and creates one that would help", async () => {
    const path = `/v1/apps/${service.appId}/data-sources/Seats`;
    await service.rest("POST", `${path}/query`, { body: { where: { Seat: { $gt: 0 } } } });
    await page.reload();
    await studio.button("Rules", '//*[@role="tablist"]');
    await page.waitForSelector(".recent-queries tbody tr");
    const rowOf = `[...document.querySelectorAll(".recent-queries tbody tr")].find((row) => row.textContent.startsWith("Seat $gt"))`;
    expect(await page.evaluate(`${rowOf}.textContent`)).to.match(/^Seat \$gt1\d+\.\d msAdd an index on Seat$/);
    await studio.button("Add an index on Seat");
    await page.waitForFunction(`/msSeat$/.test(${rowOf}.textContent)`);
    expect((await service.rest("GET", path)).body.dataSource.indexes).to.deep.equal(["Seat"]);
    expect(await studio.textOf('[data-field="indexes"] .item-summary')).to.equal("Seat");
  });

  longTest("scrolls through a hundred thousand entries to the last, with few of them in the page", async () => {
    const body = ["N", ...Array.from({ length: 100_000 }, (_, at) => String(at))].join("\n");
    const path = `/v1/apps/${service.appId}/data-sources`;
    const { dataSource } = (await service.rest("POST", path, { body: { name: "Large" } })).body;
    const sent = await fetch(`${service.url}${path}/${dataSource.id}/import`, {
      ...{ method: "POST", body },
      headers: { "auth-token": service.tokens.editor, "content-type": "text/csv" },
    });
    expect(await sent.json()).to.deep.equal({ inserted: 100_000, columns: ["N"], delimiter: "," });
    await page.goto(`${service.url}/studio#/${service.appId}/data/${dataSource.id}`);
    await page.reload();
    await rows(5);
    expect(await studio.textOf(".entries-panel .hint")).to.equal("100,000 entries");
    await page.$eval(".grid-box", (box) => box.scrollTo(0, box.scrollHeight));
    await page.waitForFunction(SHOWS_LAST_ENTRY);
    expect(await page.$$eval(".grid-rows .grid-row", (all) => all.length)).to.be.lessThan(80);
    await page.$eval(".grid-box", (box) => box.scrollTo(0, 0));
    await page.waitForFunction(`!(${SHOWS_LAST_ENTRY})`);
    await studio.button("Add an entry");
    await page.waitForFunction(SHOWS_LAST_ENTRY);
  });

  const cellWith = (text: string) => page.waitForSelector(studio.withText("button", text, '//*[@class="grid-rows"]'));
  const readFocusedText = () => page.evaluate("document.activeElement.textContent");
  /** Waits for the save of an entry. Resolves when the page has received the response to a read that it sent after this save. */
  async function readAfterUpdate(): Promise<void> {
    let isUpdated = false;
    const reads = new Set<HTTPRequest>();
    const onRequest = (request: HTTPRequest) => {
      if (isUpdated && request.postData()?.includes("FindEntries")) reads.add(request);
    };
    page.on("request", onRequest);
    await page.waitForResponse((response) => {
      isUpdated ||= response.request().postData()?.includes("UpdateEntry") ?? false;
      return reads.has(response.request());
    });
    page.off("request", onRequest);
  }

  longTest("edits a cell far down: it stays in place, shows the new value, and has the focus", async () => {
    await (await cellWith("99999"))!.click();
    await studio.replace(".grid-rows input.cell", "99998.5");
    const read = readAfterUpdate();
    await page.keyboard.press("Enter");
    expect(await readFocusedText()).to.equal("99998.5");
    await read;
    await cellWith("99998.5");
    await cellWith("99998");
    expect(await readFocusedText()).to.equal("99998.5");
  });

  longTest("keeps unsaved text in a cell while a person scrolls away and back", async () => {
    await (await cellWith("99998.5"))!.click();
    await studio.replace(".grid-rows input.cell", "half");
    await page.$eval(".grid-box", (box) => box.scrollTo(0, 0));
    await cellWith("0");
    await page.$eval(".grid-box", (box) => box.scrollTo(0, box.scrollHeight));
    await cellWith("99998");
    expect(await page.$eval(".grid-rows input.cell", (cell) => (cell as never as { value: string }).value)).to.equal(
      "half",
    );
    await page.keyboard.press("Escape");
    await cellWith("99998.5");
    expect(await readFocusedText()).to.equal("99998.5");
  });

  it("shows entries that others add, change and delete, and keeps the cell that is edited", () =>
    followEntries({ page, studio }, service));

  it("does everything without an error in the page", () => {
    expect(watch.errors.filter((error) => !/status of 4/.test(error))).to.deep.equal([]);
  });
});
