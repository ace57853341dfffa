/** Tests that a document's window is hidden until a run has lasted longer than one display frame (16 ms). */
import { expect } from "chai";
import type { Connection } from "puppeteer";
import type { Chromium } from "../../../src/engine/browser/browser-source.js";
import { Page } from "../../../src/engine/browser/pages/page.js";
import { longTest } from "../../harness/samples.js";
import { runOf, startTestChromium } from "./support.js";

const { origin: ORIGIN } = runOf("");

/** Code that evaluates to true if the browser's last record of the page's visibility is `hidden`. */
const IS_HIDDEN_CODE = `performance.getEntriesByType("visibility-state").at(-1).name === "hidden"`;
/** Code that evaluates to an array: true if the browser has ever hidden the page; the time in ms at which it showed the page, or null. */
const SHOWN_CODE = `(() => {
  const all = performance.getEntriesByType("visibility-state");
  const shown = all.slice(all.findIndex(({ name }) => name === "hidden")).find(({ name }) => name === "visible");
  return [all.some(({ name }) => name === "hidden"), shown ? performance.timeOrigin + shown.startTime : null];
})()`;
/** Minimum time in milliseconds from the start of a run until its page is shown: a frame of 16 ms, minus 2 ms because two clocks differ. */
const SHOWN_AFTER_MS = 14;
const VISIBILITY_CODE = `[
  document.visibilityState, document.hidden, document.webkitVisibilityState, document.webkitHidden, document.hasFocus(),
  innerWidth, innerHeight, outerWidth, outerHeight, screenX, screenY, screen.width, screen.height, devicePixelRatio,
  visualViewport.width, document.documentElement.clientWidth, matchMedia("(min-width: 800px)").matches,
  new DOMParser().parseFromString("", "text/html").visibilityState,
]`;
const PIXEL = "data:image/gif;base64,R0lGODlhAQABAAAAACH5BAEKAAEALAAAAAABAAEAAAICTAEAOw==";

/** Code by title. Each code creates a promise that resolves only after the page has drawn a frame. */
const AWAIT_FRAMES: Record<string, string> = {
  requestAnimationFrame: "new Promise(requestAnimationFrame)",
  "requestAnimationFrame of a frame":
    "new Promise((r) => document.body.appendChild(document.createElement('iframe')).contentWindow.requestAnimationFrame(r))",
  "an IntersectionObserver": "new Promise((r) => new IntersectionObserver(r).observe(document.body))",
  "a ResizeObserver": "new Promise((r) => new ResizeObserver(r).observe(document.body))",
  "an animation": "document.body.animate([{ opacity: 0 }, { opacity: 1 }], 20).finished",
  "a transition": `new Promise((r) => {
    const { style } = document.body;
    style.transition = "opacity 20ms";
    getComputedStyle(document.body).opacity;
    style.opacity = 0;
    document.body.ontransitionend = r;
  })`,
  "a picture's decoding": `Object.assign(new Image(), { src: "${PIXEL}" }).decode()`,
  "a scroll event": `new Promise((r) => {
    document.body.style.height = "9999px";
    document.onscroll = r;
    scrollTo(0, 100);
  })`,
  "a view transition": `(async () => {
    while (${IS_HIDDEN_CODE}) await new Promise((r) => setTimeout(r, 10));
    await document.startViewTransition(() => {}).ready;
  })()`,
  "an animation frame of a worker": `new Promise((r) => {
    const source = "requestAnimationFrame(() => postMessage(1))";
    new Worker(URL.createObjectURL(new Blob([source]))).onmessage = r;
  })`,
};

describe("the window of a document", () => {
  let chromium: Chromium;
  let page: Page;
  before(async () => {
    chromium = await startTestChromium();
  });
  after(() => chromium.stop());
  afterEach(() => page.discard());

  /** Opens a page. Tries again if a busy machine takes too long. */
  async function open(connection = chromium.connection): Promise<void> {
    do {
      await page?.discard();
      page = new Page(connection, null, () => null);
      await page.open();
    } while (!(await page.setUp(ORIGIN, "document")));
  }

  async function result(body: string): Promise<unknown> {
    const outcome = await page.run(runOf(`async function execute() { ${body} }`));
    if (!outcome.ok) throw new Error(outcome.error.stack);
    return JSON.parse(String(outcome.data ?? "null"));
  }

  async function visibilityInPlainPage(): Promise<unknown> {
    const { connection } = chromium;
    const context = await connection.send("Target.createBrowserContext");
    const { targetId } = await connection.send("Target.createTarget", { url: "about:blank", ...context });
    const session = await connection.createSession({ targetId } as never);
    const expression = `(async () => {
      while (!document.hasFocus() || document.hidden) await new Promise(requestAnimationFrame);
      document.write("<!doctype html><p>");
      return ${VISIBILITY_CODE};
    })()`;
    const { result } = await session.send("Runtime.evaluate", { expression, awaitPromise: true, returnByValue: true });
    await connection.send("Target.disposeBrowserContext", context);
    return result.value;
  }

  /** Expects that the page was hidden at the start of a run, for at least a frame. Returns true if the page was shown later. */
  async function expectHiddenAtStart(code = ""): Promise<boolean> {
    const startedAt = Date.now();
    const [wasHidden, shownAt] = (await result(`${code} return ${SHOWN_CODE}`)) as [boolean, number | null];
    expect(wasHidden).to.equal(true);
    if (shownAt !== null) expect(shownAt - startedAt).to.be.at.least(SHOWN_AFTER_MS);
    return shownAt !== null;
  }

  it("is hidden from the start of a run until it has lasted a frame, and again after the run", async () => {
    await open();
    await expectHiddenAtStart();
    expect(await page.resetSandbox(10_000)).to.equal(true);
    expect(await expectHiddenAtStart("await new Promise(requestAnimationFrame);")).to.equal(true);
    expect(await page.resetSandbox(10_000)).to.equal(true);
    await expectHiddenAtStart();
  });

  it("looks visible to code, at once and later, also in the next run", async () => {
    const expected = await visibilityInPlainPage();
    await open();
    for (let run = 0; run < 3; run += 1) {
      const seen = await result(
        `const first = ${VISIBILITY_CODE}; await new Promise(requestAnimationFrame); return [first, ${VISIBILITY_CODE}]`,
      );
      expect(seen).to.deep.equal([expected, expected]);
      expect(await page.resetSandbox(10_000)).to.equal(true);
    }
  });

  longTest("gives an element its focus, and the event, before it is shown", async () => {
    await open();
    for (let run = 0; run < 2; run += 1) {
      const body = `const input = document.body.appendChild(document.createElement("input")); let heard = 0;
        input.onfocus = () => { heard += 1 }; input.focus(); const first = heard; await new Promise(requestAnimationFrame); return [first, heard]`;
      expect(await result(body)).to.deep.equal([1, 1]);
      expect(await page.resetSandbox(10_000)).to.equal(true);
    }
  });

  longTest(
    "sends no event when it is shown, to the document and its frames; the code's own events arrive",
    async () => {
      await open();
      const received = await result(`
      const heard = [];
      const hear = (window) => {
        for (const type of ["visibilitychange", "webkitvisibilitychange", "focus", "blur"]) {
          window.addEventListener(type, (event) => heard.push(event.type), true);
          window.document.addEventListener(type, (event) => heard.push(event.type));
          window.document["on" + type] = (event) => heard.push(event.type);
        }
      };
      hear(window);
      const frame = document.body.appendChild(document.createElement("iframe")).contentWindow;
      hear(frame);
      await new Promise(requestAnimationFrame);
      await new Promise((r) => setTimeout(r, 50));
      const before = heard.length;
      document.dispatchEvent(new Event("visibilitychange", { bubbles: true }));
      return [${IS_HIDDEN_CODE}, frame.document.visibilityState, before, heard];
    `);
      expect(received).to.deep.equal([false, "visible", 0, Array(3).fill("visibilitychange")]);
    },
  );

  for (const [title, code] of Object.entries(AWAIT_FRAMES)) {
    longTest(`has the animation frame for which ${title} waits`, async () => {
      await open();
      await result(`await ${code}`);
    });
  }

  longTest("has animation frames at the normal rate, however long it was hidden", async () => {
    await open();
    const body =
      "const begun = performance.now(); for (let n = 0; n < 70; n += 1) await new Promise(requestAnimationFrame); return performance.now() - begun";
    // A visible page draws up to 60 frames a second, so 70 frames take more than a second. A hidden page draws no frames.
    expect(await result(body)).to.be.at.least(1_000);
  });

  longTest("is always visible in a browser that hides none", async () => {
    const { connection } = chromium;
    const rejectingConnection = new Proxy(connection, {
      get(target, name) {
        if (name !== "send") {
          const value = Reflect.get(target, name);
          return typeof value === "function" ? value.bind(target) : value;
        }
        return (method: string, ...rest: never[]) =>
          method.startsWith("Browser.")
            ? Promise.reject(new Error("no window"))
            : target.send(method as never, ...rest);
      },
    }) as Connection;
    await open(rejectingConnection);
    const seen = await result(
      `const was = ${IS_HIDDEN_CODE}; await new Promise(requestAnimationFrame); return [was, document.hasFocus()]`,
    );
    expect(seen).to.deep.equal([false, true]);
    expect(await page.resetSandbox(10_000)).to.equal(true);
    expect(await result(`return ${IS_HIDDEN_CODE}`)).to.equal(false);
  });
});
