/** Checks that a page does not overflow horizontally, at two widths. Stores screenshots if ACCOUNT_PICTURES names a folder. */
import { mkdirSync } from "node:fs";
import { expect } from "chai";
import type { Page } from "puppeteer";

/** Folder for the screenshots; undefined if none are stored. */
export const PICTURES = process.env["ACCOUNT_PICTURES"];

const SIZES = [
  { width: 390, height: 844 },
  { width: 1280, height: 800 },
] as const;

const DRAWN = "new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))";

/** Checks the page at widths of 390 and 1280 pixels. The page is 1280 pixels wide afterwards. */
export async function look(page: Page, name: string): Promise<void> {
  for (const size of SIZES) {
    await page.setViewport(size);
    await page.evaluate(DRAWN);
    const beyond = await page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth");
    if (PICTURES) {
      mkdirSync(PICTURES, { recursive: true });
      await page.screenshot({ path: `${PICTURES}/${name}-${size.width}.png` });
    }
    expect(beyond, `pixels of "${name}" beyond the side at a width of ${size.width}`).to.equal(0);
  }
}
