import type { Page } from "puppeteer";
import type { TestService } from "../harness/service.js";
import type { StudioPage } from "./studio-page.js";

const FOCUSED_INPUT = ".palette[open] input:focus";

/** Checks the arrow keys, the selection for screen readers, Enter, and the message if nothing matches. */
export async function checkPaletteKeys(page: Page, studio: StudioPage): Promise<void> {
  await studio.press("k");
  await page.waitForSelector(FOCUSED_INPUT);
  const waitForSelected = (isExpected: string) =>
    page.waitForFunction(`(() => {
      const options = [...document.querySelectorAll(".palette [role=option]")];
      const selected = options.filter((option) => option.ariaSelected === "true");
      const active = document.querySelector(".palette [role=combobox]").getAttribute("aria-activedescendant");
      const isSelected = (option) => selected.length === 1 && selected[0] === option && option.id === active;
      return ${isExpected};
    })()`);
  await waitForSelected("isSelected(options[0])");
  await page.keyboard.press("ArrowUp");
  await waitForSelected("options.length > 1 && isSelected(options.at(-1))");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  await waitForSelected("isSelected(options[1])");
  await page.keyboard.sendCharacter("go to");
  await waitForSelected("isSelected(options[0])");
  // Simulates the key Enter that completes a word in an input method (for Japanese, for example). The palette must stay open.
  await page.evaluate(`document.activeElement.dispatchEvent(
    new KeyboardEvent("keydown", { key: "Enter", isComposing: true, bubbles: true, cancelable: true }),
  ); new Promise((done) => requestAnimationFrame(() => setTimeout(done)))`);
  await page.waitForSelector(FOCUSED_INPUT);
  await page.keyboard.sendCharacter(" nowhere");
  await page.waitForFunction(
    'document.querySelector(".palette [role=status]").textContent === "Nothing matches." && !document.querySelector("[role=option]")',
  );
  await page.keyboard.press("Enter");
  await page.waitForSelector(FOCUSED_INPUT);
  await page.keyboard.press("Escape");
  await page.waitForSelector("dialog", { hidden: true });
}

/** Checks that the palette finds a data source, a setting, a person, a run and a section of the docs. */
export async function checkPaletteSearch(service: TestService, page: Page, studio: StudioPage): Promise<void> {
  const send = (path: string, body: object) => service.rest("POST", `/v1/apps/${service.appId}/${path}`, { body });
  const { dataSource } = (await send("data-sources", { name: "Ledger" })).body;
  await send("settings", { ledgerColour: "green" });
  const person = { firstName: "Ledger", lastName: "Keeper", email: "keeper@example.com" };
  const { user } = (await service.rest("POST", "/v1/admin/users", { as: "admin", body: person })).body;
  await send("editors", { userId: user.id });
  const option = (name: string) =>
    page.waitForFunction(
      `[...document.querySelectorAll(".palette [role=option] .grow")].some((one) => one.textContent === ${JSON.stringify(name)})`,
    );
  await studio.press("k");
  await page.waitForSelector(FOCUSED_INPUT);
  await page.keyboard.sendCharacter("ledger");
  await Promise.all([
    option("Table Ledger"),
    option("Setting ledgerColour"),
    option("Person Ledger Keeper keeper@example.com"),
  ]);
  await studio.replace(".palette input", "12");
  await option("Open run 12");
  await studio.replace(".palette input", "time zones of schedules");
  await page.waitForFunction('/^Docs: /.test(document.querySelector(".palette [role=option] .grow")?.textContent)');
  await page.keyboard.press("Enter");
  await page.waitForSelector(".docs-panel .docs-text p");
  await page.click('[aria-label="Close the docs"]');
  await page.waitForSelector(".docs-panel", { hidden: true });
  await service.rest("DELETE", `/v1/apps/${service.appId}/data-sources/${dataSource.id}`);
}
