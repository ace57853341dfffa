/** Checks that a page does not overflow horizontally at two widths. Saves screenshots if ACCOUNT_PICTURES names a folder. */
import { mkdirSync } from "node:fs";
import { expect } from "chai";
import type { Page } from "puppeteer";

export const PICTURES_FOLDER = process.env["ACCOUNT_PICTURES"];

const VIEWPORTS = [
  { width: 390, height: 844 },
  { width: 1280, height: 800 },
] as const;

const NEXT_FRAME = "new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))";

/** Checks the page at widths of 390 and 1280 pixels. The page is 1280 pixels wide afterwards. */
export async function checkWidths(page: Page, name: string): Promise<void> {
  for (const size of VIEWPORTS) {
    await page.setViewport(size);
    await page.evaluate(NEXT_FRAME);
    const overflowPixels = await page.evaluate(
      "document.documentElement.scrollWidth - document.documentElement.clientWidth",
    );
    if (PICTURES_FOLDER) {
      mkdirSync(PICTURES_FOLDER, { recursive: true });
      await page.screenshot({ path: `${PICTURES_FOLDER}/${name}-${size.width}.png` });
    }
    expect(overflowPixels, `pixels of "${name}" beyond the side at a width of ${size.width}`).to.equal(0);
  }
}
