/** Chooses columns in Studio's table of runs, and checks the column headings. */
import type { Page } from "puppeteer";
import type { StudioPage } from "./studio-page.js";

const WIDE_HEADS = ["Run", "State", "Started", "Action", "Version", "Trigger", "Duration", "Result or error"];
const MEDIUM_HEADS = WIDE_HEADS.filter((head) => head !== "Run" && head !== "Trigger");
const withQueued = (heads: string[]) => heads.toSpliced(heads.indexOf("Duration"), 0, "Queued");

async function waitForHeads(page: Page, heads: string[]): Promise<void> {
  const shown = '[...document.querySelectorAll(".run-heads > span")].map((one) => one.textContent)';
  await page.waitForFunction(`JSON.stringify(${shown}) === ${JSON.stringify(JSON.stringify(heads))}`);
}

async function toggleColumns(page: Page, studio: StudioPage, columns: string[]): Promise<void> {
  await studio.button("Columns");
  for (const column of columns)
    await (await page.waitForSelector(studio.withText("*[@role='menuitemcheckbox']", column)))!.click();
  await page.keyboard.press("Escape");
}

/** Reloads the page with this stored choice of columns; null is no choice. */
async function reloadWith(page: Page, stored: object | null): Promise<void> {
  const text = JSON.stringify(JSON.stringify(stored));
  await page.evaluate(`localStorage.setItem("studio.runs.hidden-columns", ${text})`);
  await page.reload();
  await page.waitForSelector(".run-heads");
}

export async function chooseColumns(page: Page, studio: StudioPage): Promise<void> {
  await toggleColumns(page, studio, ["Trigger", "Queued"]);
  const chosen = withQueued(WIDE_HEADS).filter((head) => head !== "Trigger");
  await waitForHeads(page, chosen);
  await page.reload();
  await waitForHeads(page, chosen);
  await reloadWith(page, null);
}

export async function chooseColumnsInMediumWindow(page: Page, studio: StudioPage): Promise<void> {
  await page.setViewport({ width: 768, height: 800 });
  await waitForHeads(page, MEDIUM_HEADS);
  await toggleColumns(page, studio, ["Queued"]);
  await waitForHeads(page, withQueued(MEDIUM_HEADS));
  await page.setViewport({ width: 1280, height: 800 });
  await waitForHeads(page, withQueued(WIDE_HEADS));
  // Earlier releases stored the choice as a list of the hidden columns.
  await reloadWith(page, ["trigger"]);
  await waitForHeads(
    page,
    withQueued(WIDE_HEADS).filter((head) => head !== "Trigger"),
  );
  await reloadWith(page, null);
}
