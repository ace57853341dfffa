/** Finds fields whose typed text is replaced by a late response: holds all responses of a page, types, and then delivers the responses. */
import type { Page } from "puppeteer";
import { COUNT_FETCHES, reopen, settle } from "./studio-crawl.js";

/** Code for the page: adds functions that hold responses, and functions that type into fields. */
const PREPARE_PAGE = `if (!globalThis.holdResponses) {
  const { fetch } = globalThis;
  let held = null;
  globalThis.holdResponses = () => { held ??= Promise.withResolvers(); };
  globalThis.releaseResponses = () => { held?.resolve(); held = null; };
  globalThis.fetch = async (...given) => {
    const response = await fetch(...given);
    await held?.promise;
    return response;
  };
  const FIELDS = "input:not([type=checkbox], [type=radio], [type=file]), textarea, form select";
  const nameOf = (field) => field.getAttribute("aria-label") ?? field.labels?.[0]?.textContent ?? field.name;
  /** Returns a map of the visible fields. Each key is a name that stays the same when React replaces the element. */
  const fieldsNow = () => {
    const fields = new Map();
    for (const field of document.querySelectorAll("#content :is(" + FIELDS + ")")) {
      if (!field.checkVisibility() || field.closest(".code-editor, .code-compare")) continue;
      const name = nameOf(field).trim();
      const number = [...fields.keys()].filter((key) => key.startsWith(name + " #")).length;
      fields.set(name + " #" + number, field);
    }
    return fields;
  };
  const textFor = (field, number) => {
    if (field.tagName === "SELECT") return [...field.options].at(field.value === [...field.options].at(-1)?.value ? 0 : -1)?.value;
    if (field.type === "number") return String(number + 5);
    if (field.type === "date") return "2030-01-" + String((number % 28) + 1).padStart(2, "0");
    if (field.type === "email") return "late" + number + "@example.com";
    if (/^https?:/.test(field.placeholder)) return "https://late" + number + ".example";
    if (field.value.startsWith("{") || field.placeholder.startsWith("{")) return '{"late": ' + number + "}";
    return "late" + number;
  };
  let typedCount = 0;
  /** If isSelect is true, chooses an option in each enabled select. Otherwise types into all other fields. Returns the values by name. */
  globalThis.typeIntoFields = async (isSelect) => {
    const typed = {};
    for (const [name, field] of fieldsNow()) {
      if (field.matches(":disabled, [readonly]") || (field.tagName === "SELECT") !== isSelect) continue;
      typedCount += 1;
      const text = textFor(field, typedCount);
      if (text === undefined) continue;
      Object.getOwnPropertyDescriptor(Object.getPrototypeOf(field), "value").set.call(field, text);
      field.dispatchEvent(new Event(field.tagName === "SELECT" ? "change" : "input", { bubbles: true }));
      typed[name] = text;
      // Lets React render the text before the code types the next text.
      await new Promise((rendered) => setTimeout(rendered));
    }
    return typed;
  };
  globalThis.keepShownTexts = (typed) => {
    const fields = fieldsNow();
    return Object.fromEntries(Object.entries(typed).filter(([name, text]) => fields.get(name)?.value === text));
  };
  /** Returns a sentence for each field that no longer has the typed text. */
  globalThis.findLostTexts = (typed) => {
    const fields = fieldsNow();
    return Object.entries(typed).filter(([name, text]) => fields.get(name)?.value !== text)
      .map(([name, text]) => name + ": typed " + text + ", shown " + (fields.get(name)?.value ?? "no field"));
  };
  const buttonsNow = () =>
    [...document.querySelectorAll("#content :is(button[type=submit], button.primary):enabled")].filter((button) => button.checkVisibility());
  globalThis.saveButtonNames = () => buttonsNow().map(({ textContent }) => textContent);
  globalThis.pressSaveButton = (name) => {
    const button = buttonsNow().find(({ textContent }) => textContent === name);
    button?.click();
    return button !== undefined;
  };
}`;

type FieldTexts = Record<string, string>;

const drawn = (page: Page) =>
  page.evaluate("new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))");

/**
 * Types into all fields, and returns the texts. Omits a text that the typing into another field has replaced: a cron expression and its
 * builder, for example, change each other.
 */
async function typeIntoFields(page: Page): Promise<FieldTexts> {
  const typed: FieldTexts = {};
  // Chooses in selects first, because a choice can add fields to the form.
  for (const isSelect of [true, false]) {
    Object.assign(typed, await page.evaluate(`typeIntoFields(${isSelect})`));
    await drawn(page);
  }
  return page.evaluate(`keepShownTexts(${JSON.stringify(typed)})`) as Promise<FieldTexts>;
}

/** Delivers all responses. Returns a sentence for each typed text that the page then no longer shows. */
async function release(page: Page, typed: FieldTexts): Promise<string[]> {
  await page.evaluate("releaseResponses()");
  await settle(page);
  return page.evaluate(`findLostTexts(${JSON.stringify(typed)})`) as Promise<string[]>;
}

/** Opens a page of Studio while all responses are held. Resolves when the code of this page is loaded. */
async function openHeld(page: Page, place: string): Promise<void> {
  await reopen(page, "#/apps");
  await page.evaluate("holdResponses()");
  await page.evaluate(`location.hash = ${JSON.stringify(place)}`);
  const isOpen = place === "#/apps" || '!document.title.startsWith("Apps ")';
  await page.waitForFunction(`${isOpen} && !document.querySelector("#content > p.welcome")`);
  await drawn(page);
}

async function preparePage(page: Page): Promise<void> {
  await page.evaluate(PREPARE_PAGE);
  await page.evaluate(`if (globalThis.fetching === undefined) ${COUNT_FETCHES}`);
}

/**
 * Types while the responses to the first reads are held, and again while those to the second reads are held.
 * @param place fragment of the page's URL
 * @returns a sentence for each typed text that a response has replaced
 */
export async function findTextsLostByReads(page: Page, place: string): Promise<string[]> {
  await preparePage(page);
  await openHeld(page, place);
  const first = await release(page, await typeIntoFields(page));
  await page.evaluate("holdResponses()");
  await page.evaluate('dispatchEvent(new Event("focus"))');
  await drawn(page);
  const second = await release(page, await typeIntoFields(page));
  return [...first.map((lost) => `first read: ${lost}`), ...second.map((lost) => `second read: ${lost}`)];
}

/** Types, clicks this save button, and types again while responses are held. Returns a sentence for each text that a response replaced. */
async function findTextsLostBySave(page: Page, place: string, button: string): Promise<string[]> {
  await reopen(page, place);
  await typeIntoFields(page);
  await page.evaluate("holdResponses()");
  const isPressed = await page.evaluate(`pressSaveButton(${JSON.stringify(button)})`);
  await drawn(page);
  const lost = await release(page, isPressed ? await typeIntoFields(page) : {});
  return lost.map((text) => `${button}: ${text}`);
}

/** Tests a page of Studio with late responses to reads and saves. Returns a sentence for each typed text that a response has replaced. */
export async function findLostTexts(page: Page, place: string): Promise<string[]> {
  const lost = await findTextsLostByReads(page, place);
  const buttons = new Set((await page.evaluate("saveButtonNames()")) as string[]);
  for (const button of buttons) lost.push(...(await findTextsLostBySave(page, place, button)));
  return lost.map((text) => `${place} › ${text}`);
}
