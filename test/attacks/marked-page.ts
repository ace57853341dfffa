/**
 * Page in which one run writes marks (unique texts) to objects, and the next run searches for these marks. Used by test/attacks and
 * test/long.
 */
import type { Chromium } from "../../src/engine/browser/browser-source.js";
import { Page } from "../../src/engine/browser/pages/page.js";
import type { EvaluationMode } from "../../src/engine/browser/run.js";
import { runOf, startTestChromium } from "../engine/browser/support.js";
import { createStateMarker } from "./browser-marks-in-page.js";

const MARK = "leftmark7331";

type State = Record<string, string>;

export class MarkedPage {
  private page!: Page;
  private unmarkedStates: State[] = [];
  private volatile = new Set<string>();

  private constructor(
    private readonly chromium: Chromium,
    private readonly mode: EvaluationMode,
  ) {}

  /** Opens a page, and reads its state four times before any run leaves a mark. */
  static async open(mode: EvaluationMode): Promise<MarkedPage> {
    const marked = new MarkedPage(await startTestChromium(), mode);
    await marked.replace();
    for (let count = 0; count < 4; count += 1) {
      marked.unmarkedStates.push((await marked.evaluate("await tool.read()")) as State);
      await marked.renew();
      await marked.evaluate("1");
      await marked.renew();
    }
    const paths = new Set(marked.unmarkedStates.flatMap((state) => Object.keys(state)));
    const values = (path: string) => new Set(marked.unmarkedStates.map((state) => state[path]));
    marked.volatile = new Set([...paths].filter((path) => values(path).size > 1));
    return marked;
  }

  stop(): Promise<void> {
    return this.chromium.stop();
  }

  async objects(): Promise<string[]> {
    const paths = (await this.evaluate("tool.paths()")) as string[];
    await this.renew();
    return paths;
  }

  /** Returns the members of an object that can be marked, as `path#member`. */
  async members(path: string): Promise<string[]> {
    const members = (await this.evaluate(`tool.members(${JSON.stringify(path)})`)) as string[];
    await this.renew();
    return members;
  }

  /** Marks objects or members in one run. Returns the marks and changes that the next run sees, or null if the page was replaced. */
  async findMarksLeftBy(paths: readonly string[]): Promise<string[] | null> {
    await this.evaluate(`tool.leave(${JSON.stringify(paths)})`);
    if (!(await this.renew())) return null;
    const state = (await this.evaluate("await tool.read()")) as State;
    await this.renew();
    const [unmarkedStates] = this.unmarkedStates;
    return Object.entries(state)
      .filter(
        ([at, value]) =>
          value.includes(MARK) || at.includes(MARK) || (!this.volatile.has(at) && value !== unmarkedStates![at]),
      )
      .map(([at, value]) => `${at} is ${value}, not ${unmarkedStates![at]}`);
  }

  /** Returns the value of the expression in a separate run, or null if this run fails. */
  private async evaluate(expression: string): Promise<unknown> {
    const tool = `const tool = (${createStateMarker})(globalThis, "${MARK}");`;
    const source = `const execute = async () => { ${tool} return ${expression} }`;
    const outcome = await this.page.run(runOf(source, { mode: this.mode }));
    return outcome.ok ? JSON.parse(String(outcome.data ?? "null")) : null;
  }

  /** Prepares the page for the next run. Returns false if another page has replaced this page. */
  private async renew(): Promise<boolean> {
    if (await this.page.resetSandbox()) return true;
    await this.page.discard();
    await this.replace();
    return false;
  }

  private async replace(): Promise<void> {
    // On a busy machine, a page may fail to open in time. The loop then opens another one.
    for (;;) {
      const page = new Page(this.chromium.connection, null, () => null);
      await page.open().catch(() => {});
      if (await page.setUp(runOf("").origin, this.mode)) {
        this.page = page;
        return;
      }
      await page.discard();
    }
  }
}
