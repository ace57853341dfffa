/** Test steps for data sources in Studio: change and try access rules, change hooks and indexes, and edit an entry during other changes. */
import { expect } from "chai";
import type { Page } from "puppeteer";
import type { TestService } from "../harness/service.js";
import type { StudioPage } from "./studio-page.js";

interface StudioSession {
  page: Page;
  studio: StudioPage;
}

// biome-ignore lint/suspicious/noExplicitAny: a definition has no static type here
type ReadDefinition = () => Promise<any>;

export async function editRules({ page, studio }: StudioSession, definition: ReadDefinition): Promise<void> {
  const rules = '[data-field="accessRules"]';
  await page.waitForSelector(`${rules} .item-card`);
  expect(await studio.textOf(`${rules} .item-summary`)).to.equal("Everyone can read");
  await page.select('select[aria-label="Add a rule"]', "Signed-in users read and write their own entries");
  await studio.replace(`${rules} [aria-label="Rule 2"] input[aria-label="Value 1"]`, "");
  await studio.button("Save access rules");
  const fault = `${rules} [aria-label="Rule 2"] > .fault:not(:empty)`;
  expect(await studio.textOf(fault)).to.match(/^accessRules\[1\]\.require\[0\]\./);
  await studio.replace(`${rules} [aria-label="Rule 2"] input[aria-label="Value 1"]`, "{{user.Row}}");
  await page.waitForSelector(fault, { hidden: true });
  // A value that does not have the chosen type is not saved.
  const ruleField = (name: string) => `${rules} [aria-label="Rule 2"] [aria-label="${name}"]`;
  await studio.button("Add a condition", '//*[@aria-label="Rule 2"]');
  await studio.replace(ruleField("Column 2"), "Seat");
  await page.select(ruleField("Type of value 2"), "number");
  await studio.replace(ruleField("Value 2"), "three");
  const notANumberText = 'Value 2 must be a number (got "three"). Your change is not saved until you correct it.';
  await page.waitForSelector(`::-p-xpath(//*[@role='alert'][.='${notANumberText}'])`);
  // The button is disabled, because the draft does not contain the invalid condition.
  await page.waitForSelector(`${rules} > .row > button.primary:disabled`);
  await studio.replace(ruleField("Value 2"), "3");
  await studio.button("Add a condition", '//*[@aria-label="Rule 2"]');
  await page.select(ruleField("Type of value 3"), "boolean");
  await page.select(ruleField("Comparison 3"), "notequals");
  await studio.button("Add a condition", '//*[@aria-label="Rule 2"]');
  await page.select(ruleField("Comparison 4"), "contains");
  await studio.replace(ruleField("Value 4"), "4");
  expect(await page.$(ruleField("Type of value 4"))).to.equal(null);
  expect(await page.$(ruleField("Remove condition 4"))).not.to.equal(null);
  await studio.button("Save access rules");
  await page.waitForSelector(`${rules} > .row > button.primary:disabled`);
  const type = ["select", "insert", "update", "delete"];
  const require = [
    { Row: { equals: "{{user.Row}}" } },
    { Seat: { equals: 3 } },
    { Row: { notequals: true } },
    { Row: { contains: "4" } },
  ];
  const ownRule = { type, allow: "loggedIn", require };
  expect((await definition()).accessRules).to.deep.equal([{ type: ["select"], allow: "all" }, ownRule]);
  await studio.showJson("accessRules");
  const text = await page.$eval("#accessRules", (field) => (field as unknown as { value: string }).value);
  expect(JSON.parse(text)).to.deep.equal([{ type: ["select"], allow: "all" }, ownRule]);
}

export async function editHooksAndIndexes({ page, studio }: StudioSession, definition: ReadDefinition): Promise<void> {
  await page.select('select[aria-label="Add a hook"]', "operations");
  // Adds a second row for the same column, which must not replace the first row.
  const hooksField = (path: string) => `::-p-xpath(//*[@data-field="hooks"]//${path})`;
  await studio.button("Add a column");
  await studio.replace(hooksField("input[@aria-label='Column 2']"), "Row");
  const duplicateText = 'Two rows are for "Row". Your change is not saved until they differ.';
  await page.waitForSelector(`::-p-xpath(//*[@role='alert'][.='${duplicateText}'])`);
  await (await page.waitForSelector(
    hooksField("div[.//input[@aria-label='Column 2']]//label[contains(., 'Trim spaces')]/input"),
  ))!.click();
  await page.waitForSelector(`::-p-xpath(//*[@role='alert'][.='${duplicateText}'])`, { hidden: true });
  await studio.button("Save hooks");
  await page.waitForSelector('[data-field="hooks"] > .row > button.primary:disabled');
  await studio.button("Add an index", '//*[@data-field="indexes"]');
  await studio.button("Save indexes");
  await page.waitForSelector('[data-field="indexes"] > .row > button.primary:disabled');
  const { hooks, indexes } = await definition();
  expect(hooks).to.deep.equal([{ type: "operations", runOn: ["insert", "update"], fields: { Row: ["trim"] } }]);
  expect(indexes).to.deep.equal(["Row"]);
}

/**
 * Tries an unsaved rule as a user from a new data source, and discards the rule. The data source Seats must have three entries whose Row is
 * "theirs".
 */
export async function tryRules({ page, studio }: StudioSession, service: TestService): Promise<void> {
  const body = { name: "Guests", entries: [{ Email: "ada@example.org", Row: "theirs" }] };
  const made = (await service.rest("POST", `/v1/apps/${service.appId}/data-sources`, { body })).body.dataSource;
  const rule = {
    type: ["select"],
    allow: "loggedIn",
    exclude: ["Seat"],
    require: [{ Row: { equals: "{{user.Row}}" } }],
  };
  await page.reload();
  await studio.button("Rules", '//*[@role="tablist"]');
  await studio.showJson("accessRules");
  await studio.replace("#accessRules", JSON.stringify([rule]));
  await studio.button("Try these rules");
  await page.waitForSelector('.trial-verbs tr[data-verb="select"]');
  expect(await studio.textOf('.trial-verbs tr[data-verb="select"]')).to.contain("refused");
  await page.waitForSelector(`.access-trial option[value="${made.id}"]`);
  await page.select('select[aria-label="Users are entries of"]', String(made.id));
  const choice = 'select[aria-label="The user"]';
  const user = await page.waitForSelector(`${choice} option[value]:not([value=""])`);
  await page.select(choice, await user!.evaluate((element) => element.getAttribute("value")!));
  await studio.button("Try these rules");
  await page.waitForSelector(".trial-entries tbody tr");
  expect(await studio.textOf('.trial-verbs tr[data-verb="select"]')).to.match(
    /allowedby rule 1columns: Row; must name Row/,
  );
  expect(await studio.textOf('.trial-verbs tr[data-verb="insert"]')).to.match(/refusedno rule matches/);
  const shown = await page.$$eval(".trial-entries tbody tr", (all) =>
    all.map((row) => row.lastElementChild!.textContent),
  );
  expect(shown).to.deep.equal(Array(3).fill('"theirs"'));
  expect(
    (await service.rest("GET", `/v1/apps/${service.appId}/data-sources/Seats`)).body.dataSource.accessRules,
  ).to.deep.equal([{ type: ["select"], allow: "all" }]);
  await studio.button("Entries", '//*[@role="tablist"]');
  await studio.button("Discard changes", "//dialog");
}

/** Changes entries of a new data source while a person edits one of its cells. */
export async function followEntries({ page, studio }: StudioSession, service: TestService): Promise<void> {
  const write = async (method: "POST" | "PUT" | "DELETE", path: string, body?: object) => {
    const answer = await service.rest(method, `/v1/apps/${service.appId}/data-sources${path}`, body && { body });
    expect(answer.http, JSON.stringify(answer.body)).to.be.lessThan(300);
    return answer.body;
  };
  const shows = (text: string) => page.waitForFunction(`document.body.innerText.includes(${JSON.stringify(text)})`);
  const readTyped = () => page.$eval("input.cell", (field) => (field as unknown as { value: string }).value);
  const { dataSource } = await write("POST", "", { name: "orders" });
  const entries = `/${dataSource.id}/entries`;
  const entry = await write("POST", entries, { city: "Bern", seats: 12, note: "first" });
  await studio.open(`${service.appId}/data/${dataSource.id}`);
  await shows("Bern");
  const alignments =
    await page.evaluate(`[...document.querySelectorAll(":is(.grid-head, .grid-rows .grid-row) button.cell")]
    .map((button) => button.textContent + " " + getComputedStyle(button).textAlign)`);
  expect(alignments).to.include.members(["city left", "Bern left", "seats right", "12 right"]);
  const added = await write("POST", entries, { city: "Oslo", country: "Norway" });
  await shows("Norway");
  await (await page.waitForSelector(
    '::-p-xpath(//button[contains(@class, "cell") and normalize-space(.)="Bern"])',
  ))!.click();
  await page.waitForSelector("input.cell");
  await page.keyboard.type("Berlin");
  const typed = await readTyped();
  await write("PUT", `${entries}/${entry.id}`, { city: "Basel" });
  await write("DELETE", `${entries}/${added.id}`);
  await shows(`city of entry ${entry.id} changed elsewhere`);
  await page.waitForFunction(`!document.body.innerText.includes("Oslo")`);
  expect(await readTyped()).to.equal(typed);
  await page.keyboard.press("Escape");
  await shows("Basel");
}

/** Returns the visible entries, without the first and the last cell of each row. Bars separate the values of an entry. */
export const readCells = (page: Page): Promise<string[]> =>
  page.$$eval(".grid-rows .grid-row", (all) =>
    all.map((row) =>
      [...row.children]
        .map((cell) => cell.textContent)
        .slice(1, -1)
        .join("|"),
    ),
  );
