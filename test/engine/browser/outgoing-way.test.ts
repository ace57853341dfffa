/** Tests requests that a run's library sends to other services, in each sandbox that supports them: input, output, and end. */
import { expect } from "chai";
import type { Browsers } from "../../../src/engine/browser/browsers.js";
import type { SandboxMode, SendOutgoing } from "../../../src/engine/browser/run.js";
import { resultOf, testBrowsers } from "./support.js";

const LONG_TEXT = "ä€😀".repeat(150_000);
const MODES: SandboxMode[] = ["network-isolate", "document"];

for (const mode of MODES) {
  describe(`requests to other services in the sandbox ${mode}`, () => {
    let browsers: Browsers;

    before(async () => {
      browsers = testBrowsers({ idlePagesMax: 1 });
      await browsers.start();
    });
    after(() => browsers.stop());

    const run = (body: string, outgoing?: SendOutgoing, payload = {}) =>
      resultOf(browsers, `async function execute({ payload }) { const way = globalThis.__svcService; ${body} }`, {
        mode,
        network: false,
        payload: JSON.stringify(payload),
        settings: '{"_a":1}',
        ...(outgoing && { outgoing }),
      });

    it("get the options unchanged, and return headers and text of any length", async () => {
      const seen: string[] = [];
      const outgoing: SendOutgoing = async (options) => {
        seen.push(options);
        return { head: JSON.stringify([200, { a: "b" }, options]), text: LONG_TEXT };
      };
      const result = await run(
        'const a = await way.request(\'{"x":"ü"}\'); return [a.head, (await a.text()) === payload.long, way.settings, way.base];',
        outgoing,
        { long: LONG_TEXT },
      );
      expect(result).to.deep.equal([[200, { a: "b" }, '{"x":"ü"}'], true, '{"_a":1}', "-"]);
      expect(seen).to.deep.equal(['{"x":"ü"}']);
    });

    it("are sent eight at once, and end with their run", async () => {
      let open = 0;
      let most = 0;
      const ended: Promise<unknown>[] = [];
      const outgoing: SendOutgoing = (_options, signal) => {
        open += 1;
        most = Math.max(most, open);
        const { promise, resolve } = Promise.withResolvers<unknown>();
        ended.push(promise);
        signal.addEventListener("abort", resolve);
        return new Promise((answer) =>
          setTimeout(() => {
            open -= 1;
            answer({ head: "[200,{}]", text: "" });
          }, 20),
        );
      };
      expect(
        await run(
          "const all = Array.from({ length: 20 }, () => way.request('{}')); return (await Promise.all(all)).length;",
          outgoing,
        ),
      ).to.equal(20);
      expect(most).to.equal(8);
      ended.length = 0;
      await run("for (let i = 0; i < 20; i += 1) way.request('{}'); await null; return 1;", outgoing);
      await Promise.all(ended);
    });

    it("do not exist for a run that may not send any", async () => {
      expect(await run("return way === undefined;")).to.equal(true);
    });
  });
}
