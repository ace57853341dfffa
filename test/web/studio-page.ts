/** Performs the steps of a person in Studio: clicks buttons and links by their text, fills fields by selector, and presses keys. */
import type { Page, SerializedAXNode } from "puppeteer";
import { runsAll } from "../harness/samples.js";

const withText = (tag: string, text: string, inside = "") =>
  `::-p-xpath(${inside}//${tag}[normalize-space(.)="${text}"])`;

/** Script for a page: replaces the worker of the TypeScript compiler by one that does nothing. */
const WITHOUT_COMPILER = `globalThis.Worker = new Proxy(Worker, {
  construct(target, [url, options]) {
    if (options?.name !== "javascript") return new target(url, options);
    return Object.assign(new EventTarget(), { postMessage() {}, terminate() {} });
  },
});`;

/**
 * Prevents this page from loading the TypeScript compiler, for tests that do not check types. Each load takes about two seconds of
 * processor time. In the long tests, pages load the compiler.
 */
export async function leaveOutCompiler(page: Page): Promise<void> {
  if (!runsAll()) await page.evaluateOnNewDocument(WITHOUT_COMPILER);
}

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

    /** Replaces the code in the editor. Pastes the text, because the editor would indent and complete typed code. */
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
      // Compares only the end of the code, because the editor renders only the visible lines, which are the last ones.
      const end = JSON.stringify(code.trimEnd().split("\n").slice(-100).join("\n"));
      await page.waitForFunction(`(() => {
        const topOf = (line) => Number.parseFloat(line.style.top);
        const lines = [...document.querySelectorAll(".code-editor .view-line")].sort((a, b) => topOf(a) - topOf(b));
        const shown = lines.map((line) => line.textContent.replaceAll("\\u00a0", " ").trimEnd()).join("\\n");
        return shown.trim() !== "" && ${end}.endsWith(shown.trimEnd());
      })()`);
      // The editor shows the text before the page has it. Until then, the status of the page is "saved".
      await page.waitForFunction('document.querySelector(".workspace-head [role=status]").textContent !== "saved"');
    },

    /** Waits for unsaved changes, and saves them by the keyboard shortcut. */
    async save(): Promise<void> {
      await page.waitForSelector(".workspace-head .primary:enabled");
      await press("s");
    },

    async saved(): Promise<void> {
      await page.waitForFunction('document.querySelector(".workspace-head [role=status]")?.textContent === "saved"');
    },

    async run(): Promise<void> {
      await page.waitForSelector(".payload .primary:enabled");
      await press("Enter");
    },

    /** Returns the cells of each row of a table, from the accessibility tree. */
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

    async showJson(field: string): Promise<void> {
      await (await page.waitForSelector(`[data-field="${field}"] .segments label:last-child`))!.click();
    },

    /** Opens this path of Studio by the fragment of the URL, as a link does. */
    async open(place: string): Promise<void> {
      await page.evaluate(`location.hash = ${JSON.stringify(`#/${place}`)}`);
    },

    async signOut(): Promise<void> {
      await (await page.waitForSelector(".account-button"))!.click();
      await (await page.waitForSelector(withText("*[@role='menuitem']", "Sign out")))!.click();
    },

    /** Clicks a link of the sidebar. In a narrow window, opens the sidebar first. */
    async follow(name: string): Promise<void> {
      const opener = await page.$('button[aria-label="Open the navigation"]');
      if (opener) {
        await opener.click();
        await page.waitForSelector(".sidebar.drawer");
      }
      await (await page.waitForSelector(withText("a", name, '//nav[@aria-label="Views"]')))!.click();
      if (opener) await page.waitForSelector(".sidebar.drawer", { hidden: true });
    },

    /** Signs in with a token. Opens the list of actions if the URL names no page. */
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
