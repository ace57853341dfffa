/** Studio as a person handles it: buttons by their words, fields by their selectors, the keyboard. */
import type { Page } from "puppeteer";

const withText = (tag: string, text: string, inside = "") =>
  `::-p-xpath(${inside}//${tag}[normalize-space(.)="${text}"])`;

export type StudioPage = ReturnType<typeof studioPage>;

export function studioPage(page: Page) {
  async function press(key: "s" | "a" | "Enter"): Promise<void> {
    await page.keyboard.down("Control");
    await page.keyboard.press(key);
    await page.keyboard.up("Control");
  }

  async function replace(selector: string, text: string): Promise<void> {
    await page.waitForSelector(selector);
    await page.focus(selector);
    await press("a");
    await page.keyboard.press("Delete");
    await page.keyboard.sendCharacter(text);
  }

  async function button(name: string, inside?: string): Promise<void> {
    const found = await page.waitForSelector(withText("button", name, inside));
    await found!.click();
  }

  return {
    withText,
    press,
    replace,
    button,
    textOf: async (selector: string) => (await page.waitForSelector(selector))!.evaluate((e) => e.textContent),

    /** Pasted, for what is typed is indented and closed by the editor. */
    async write(code: string): Promise<void> {
      await replace(".code-editor textarea", " ");
      await press("a");
      await page.evaluate(
        `{
          const clipboardData = new DataTransfer();
          clipboardData.setData("text/plain", ${JSON.stringify(code)});
          const paste = new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true });
          document.activeElement.dispatchEvent(paste);
        }`,
      );
      const all = code.split("\n").filter((line) => line.trim() !== "");
      // A long text is shown at its end, where the cursor is.
      const ends = JSON.stringify([all[0], all.at(-1)]);
      const lines = 'document.querySelector(".code-editor .view-lines").textContent.replaceAll("\\u00a0", " ")';
      await page.waitForFunction(`((shown) => ${ends}.some((line) => shown.includes(line)))(${lines})`);
    },

    async signIn(token: string): Promise<void> {
      await page.waitForSelector('form[aria-busy="false"]');
      await replace('input[name="token"]', token);
      await button("Sign in");
      await page.waitForSelector(".top-bar");
    },
  };
}
