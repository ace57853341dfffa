/** Finds the controls on a screen of Studio, one of each kind, and uses them by the keyboard to open further screens. */
import type { Page } from "puppeteer";

/** Maximum number of controls that the crawler uses from a URL to a screen. */
const STEPS_MAX = 3;
const OPTIONS_PER_CONTROL_MAX = 8;
/** Page that the crawler opens before each URL, so that Studio opens the URL's page again even if it is already open. */
const QUIET_PAGE = "#/apps";

/**
 * Code that stores the controls of the page, or of its open dialog, in the map `controls`. If each row of a list has the same control, the
 * map contains it once, because all of them have the same key. Skips the dangerous buttons of dialogs, "Sign out" and file inputs.
 */
const CONTROLS_CODE = `
  const root = [...document.querySelectorAll("dialog[open]")].at(-1) ?? document.body;
  const wordsOf = (element) => (element.getAttribute("aria-label") ?? element.labels?.[0]?.textContent ?? element.textContent)
    .trim().replace(/\\d+/g, "#").slice(0, 60);
  const kind = (element) => {
    const row = element.closest("li, tr, [role='row']");
    if (!row || element.role === "tab") return element.tagName + " " + wordsOf(element);
    const at = [...row.querySelectorAll("button, summary, input, select, textarea")].indexOf(element);
    return (row.parentElement.className || row.parentElement.tagName) + " > " + element.className + " " + at;
  };
  const controls = new Map();
  for (const element of root.querySelectorAll("button, summary, select, input, textarea")) {
    if (element.disabled || !element.checkVisibility() || element.closest(".code-editor, .code-compare")) continue;
    if (element.type === "file" || element.matches("dialog .danger") || /^Sign out$/.test(wordsOf(element))) continue;
    const key = kind(element);
    if (element.tagName !== "SELECT") controls.set(key, [element]);
    else for (const { value, label } of [...element.options].slice(0, ${OPTIONS_PER_CONTROL_MAX}))
      controls.set(key + " = " + label.replace(/\\d+/g, "#").slice(0, 40), [element, value]);
  }
`;

/** Groups in which Tab reaches one control, and the arrow keys reach the others. */
const ARROW_KEY_GROUPS = ["tablist", "menu", "menubar", "listbox", "grid", "radiogroup", "toolbar"]
  .map((role) => `[role=${role}]`)
  .join();

/**
 * Returns code that types into a control, selects an option, or only focuses the control. The code evaluates to "changed", to the key that
 * must be pressed next, or to the reason of a failure ("absent" or "unreachable").
 */
const focusCode = (key: string) => `(() => {
  ${CONTROLS_CODE}
  const [element, value] = controls.get(${JSON.stringify(key)}) ?? [];
  if (!element) return "absent";
  const isReachable = element.tabIndex >= 0 || element.closest("${ARROW_KEY_GROUPS}")?.querySelector('[tabindex="0"]');
  const isTyped = value === undefined && element.matches("textarea, input:not([type=checkbox], [type=radio])");
  element.focus();
  if (!isReachable || document.activeElement !== element) return "unreachable";
  if (value === undefined && !isTyped) return element.tagName === "INPUT" ? "Space" : "Enter";
  const typed = { number: "7", date: "2030-01-01", email: "ada@example.com" }[element.type] ?? "x";
  Object.getOwnPropertyDescriptor(Object.getPrototypeOf(element), "value").set.call(element, isTyped ? typed : value);
  element.dispatchEvent(new Event(isTyped ? "input" : "change", { bubbles: true }));
  return "changed";
})()`;

/** Uses a control by the keyboard. Returns false if the control does not exist. @throws if the keyboard cannot reach the control */
async function operateControl(page: Page, key: string): Promise<boolean> {
  const focus = () =>
    page.evaluate(focusCode(key)) as Promise<"absent" | "changed" | "unreachable" | "Space" | "Enter">;
  let result = await focus();
  if (result === "unreachable") {
    // An open menu would keep the focus, so Escape closes it.
    await page.keyboard.press("Escape");
    result = await focus();
  }
  if (result === "unreachable") throw new Error(`${await readPlace(page)}: the keyboard cannot reach "${key}"`);
  if (result === "Space" || result === "Enter") await page.keyboard.press(result);
  return result !== "absent";
}

const keysOn = (page: Page) =>
  page.evaluate(`(() => { ${CONTROLS_CODE} return [...controls.keys()]; })()`) as Promise<string[]>;

const readPlace = (page: Page) => page.evaluate("location.hash") as Promise<string>;

/** Replaces the numbers in a URL. URLs that differ only in numbers show the same kind of screen. */
export const kindOfPlace = (href: string): string =>
  // The parameters of a run's page are filters of the list. The page itself is the same for all of them.
  href.replace(/\d+/g, "#").replace(/(\/runs\/#)\?.*$/, "$1");

export const linksOn = (page: Page) =>
  page.evaluate(
    `[...document.querySelectorAll('a[href^="#/"]')].filter((link) => link.checkVisibility()).map((link) => link.getAttribute("href"))`,
  ) as Promise<string[]>;

/** Script that counts the pending requests of a page. Counts only requests that begin after the script has run. */
export const COUNT_FETCHES = `{
  const { fetch } = globalThis;
  globalThis.fetching = 0;
  globalThis.fetch = async (...given) => {
    fetching += 1;
    return fetch(...given).finally(() => { fetching -= 1; });
  };
}`;

/** Waits until no request is pending and the last response is rendered. */
export async function settle(page: Page): Promise<void> {
  const isDone = `fetching === 0 && !/^(Loading…)?$/.test(document.querySelector("#content").textContent)`;
  for (let turn = 0; turn < 2; turn += 1) {
    await page.waitForFunction(isDone);
    await page.evaluate("new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))");
  }
}

async function closeDialogs(page: Page): Promise<void> {
  while (await page.$("dialog[open]")) {
    await page.keyboard.press("Escape");
    await page.waitForFunction('!document.querySelector("dialog[open]")', { timeout: 2_000 }).catch(() => undefined);
  }
}

/** Closes the documentation panel, which stays open when the page changes. */
async function closeDocs(page: Page): Promise<void> {
  await page.evaluate(`document.querySelector('[aria-label="Close the docs"]')?.click()`);
  await page.waitForSelector(".docs-panel", { hidden: true });
}

/** Opens a URL from another page. Discards unsaved changes, and closes dialogs and the documentation. */
export async function reopen(page: Page, place: string): Promise<void> {
  await closeDialogs(page);
  await closeDocs(page);
  await page.evaluate(`location.hash = ${JSON.stringify(QUIET_PAGE)}`);
  await page.waitForFunction(`(() => {
    const answers = [...document.querySelectorAll("dialog[open] button")];
    answers.find(({ textContent }) => textContent === "Discard changes")?.click();
    return document.title.startsWith("Apps");
  })()`);
  await page.evaluate(`location.hash = ${JSON.stringify(place)}`);
  await settle(page);
}

/**
 * Opens the screens that the controls of a URL lead to.
 * @param tried keys of the controls that the crawler has used on URLs of this kind
 * @param look called on each screen, with the keys of the controls that led to it
 * @returns URLs of the screens, and the URLs that they link to
 */
export async function crawl(
  page: Page,
  place: string,
  tried: Set<string>,
  look: (steps: string[]) => Promise<void>,
): Promise<Set<string>> {
  const places = new Set<string>();
  const recordScreen = async (steps: string[]) => {
    await settle(page);
    await look(steps);
    for (const href of [await readPlace(page), ...(await linksOn(page))]) places.add(href);
  };
  /** Uses the controls `newKeys`, which appeared after the last of `steps`, and then the controls that appear after each of them. */
  const explore = async (steps: string[], newKeys: string[]): Promise<void> => {
    const here = await keysOn(page);
    let isHere = true;
    for (const key of newKeys) {
      if (tried.has(key)) continue;
      tried.add(key);
      if (!isHere) {
        await reopen(page, place);
        for (const step of steps) {
          await operateControl(page, step);
          await settle(page);
        }
      }
      // An earlier step may have removed this control. The screen is then unchanged.
      isHere = !(await operateControl(page, key));
      if (isHere) continue;
      await recordScreen([...steps, key]);
      const now = await keysOn(page);
      const isSamePlace = (await readPlace(page)) === place;
      const opened = now.filter((key) => !here.includes(key));
      isHere = isSamePlace && now.join() === here.join();
      if (isSamePlace && opened.length > 0 && steps.length + 1 < STEPS_MAX) await explore([...steps, key], opened);
    }
  };
  await reopen(page, place);
  await recordScreen([]);
  await explore([], await keysOn(page));
  return places;
}
