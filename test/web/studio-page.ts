/** Actions of a person in Studio: buttons and links by their text, fields by their selectors, the keyboard. */
import type { Page, SerializedAXNode } from "puppeteer";

const withText = (tag: string, text: string, inside = "") =>
  `::-p-xpath(${inside}//${tag}[normalize-space(.)="${text}"])`;

export type StudioPage = ReturnType<typeof studioPage>;

export function studioPage(page: Page) {
  async function press(key: "s" | "a" | "k" | "m" | "Enter"): Promise<void> {
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

  /** Clicks it as soon as it is enabled. */
  async function button(name: string, inside?: string): Promise<void> {
    const found = await page.waitForSelector(withText("*[self::button[not(@disabled)] or self::a]", name, inside));
    await found!.click();
  }

  return {
    withText,
    press,
    replace,
    button,
    textOf: async (selector: string) => (await page.waitForSelector(selector))!.evaluate((e) => e.textContent),

    /** Pastes the code, because the editor indents and completes typed text. */
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
      // The editor shows the end of a long text, where the cursor is.
      const end = JSON.stringify(code.trimEnd().split("\n").slice(-100).join("\n"));
      await page.waitForFunction(`(() => {
        const topOf = (line) => Number.parseFloat(line.style.top);
        const lines = [...document.querySelectorAll(".code-editor .view-line")].sort((a, b) => topOf(a) - topOf(b));
        const shown = lines.map((line) => line.textContent.replaceAll("\\u00a0", " ").trimEnd()).join("\\n");
        return shown.trim() !== "" && ${end}.endsWith(shown.trimEnd());
      })()`);
      // The editor has the text; the page has it once it shows it.
      await page.waitForFunction('document.querySelector(".workspace-head [role=status]").textContent !== "saved"');
    },

    /** By the keyboard shortcut, as soon as there is something to save. */
    async save(): Promise<void> {
      await page.waitForSelector(".workspace-head .primary:enabled");
      await press("s");
    },

    /** The page itself shows it; a list of versions contains the same word. */
    async saved(): Promise<void> {
      await page.waitForFunction('document.querySelector(".workspace-head [role=status]")?.textContent === "saved"');
    },

    /** By the keyboard shortcut, as soon as a run can start. */
    async run(): Promise<void> {
      await page.waitForSelector(".payload .primary:enabled");
      await press("Enter");
    },

    /** Rows of a table with their cells, as in the accessibility tree. */
    async rowsOf(name: string): Promise<{ role: string; name: string }[][]> {
      const table = await page.waitForSelector(`::-p-aria([name="${name}"][role="table"])`);
      const tree = await page.accessibility.snapshot({ root: table!, interestingOnly: false });
      const rows: { role: string; name: string }[][] = [];
      const walk = ({ role, children = [] }: SerializedAXNode) => {
        if (role === "row") rows.push(children.map((cell) => ({ role: cell.role, name: (cell.name ?? "").trim() })));
        else for (const child of children) walk(child);
      };
      walk(tree!);
      return rows;
    },

    /** Shows a part of a data source's definition as JSON instead of as a form. */
    async showJson(field: string): Promise<void> {
      await (await page.waitForSelector(`[data-field="${field}"] .segments label:last-child`))!.click();
    },

    /** Opens one of the paths in the URL, like a link. */
    async open(place: string): Promise<void> {
      await page.evaluate(`location.hash = ${JSON.stringify(`#/${place}`)}`);
    },

    /** By the account menu, at the bottom of the sidebar. */
    async signOut(): Promise<void> {
      await (await page.waitForSelector(".account-button"))!.click();
      await (await page.waitForSelector(withText("*[@role='menuitem']", "Sign out")))!.click();
    },

    /** A link of the sidebar; on a narrow window the sidebar is a drawer. */
    async follow(name: string): Promise<void> {
      const opener = await page.$('button[aria-label="Open the navigation"]');
      if (opener) {
        await opener.click();
        await page.waitForSelector(".sidebar.drawer");
      }
      await (await page.waitForSelector(withText("a", name, '//nav[@aria-label="Views"]')))!.click();
      if (opener) await page.waitForSelector(".sidebar.drawer", { hidden: true });
    },

    /** Opens the list of actions if the URL names no page. */
    async signIn(token: string): Promise<void> {
      await page.waitForSelector('form[aria-busy="false"]');
      if (!(await page.$('input[name="token"]'))) await button("Use a token");
      await replace('input[name="token"]', token);
      await button("Sign in");
      await page.waitForSelector(".top-bar");
      await page.evaluate('if (location.hash === "") location.hash = "#/actions"');
    },
  };
}
