/** Holds the responses to a page's queries, so that a test decides when the page receives each of them. */
import type { Page } from "puppeteer";

export interface HeldReads {
  /** Resolves when the responses to at least this many queries are held. */
  waitForCount(count: number): Promise<void>;
  /** Delivers the response to the query with this index. Resolves when the page has rendered it. */
  end(index: number): Promise<void>;
  /** Delivers all responses, and holds no further ones. */
  endAll(): Promise<void>;
}

/** Holds the responses to the GraphQL query with this name. The mutation named `failing` fails without being sent. */
export async function holdReads(page: Page, query: string, failing = ""): Promise<HeldReads> {
  await page.evaluate(`{
    const send = window.fetch;
    window.heldReads = [];
    window.fetch = async (address, init) => {
      const { body = "" } = init ?? {};
      if (${JSON.stringify(failing)} && body.includes("mutation ${failing}")) throw new TypeError("no connection");
      const answer = await send(address, init);
      if (window.fetch === send || !body.includes("query ${query}(")) return answer;
      await new Promise((end) => heldReads.push(end));
      return answer;
    };
    window.endReads = () => {
      window.fetch = send;
      for (const end of heldReads) end();
    };
  }`);
  return {
    async waitForCount(count) {
      await page.waitForFunction(`heldReads.length >= ${count}`);
    },
    async end(index) {
      await page.evaluate(`heldReads[${index}]()`);
      await page.evaluate("new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))");
    },
    async endAll() {
      await page.evaluate("endReads()");
    },
  };
}
