/** Tests requests to other services that a run's library sends through the service: options, responses, and the end of the run. */
import { setTimeout as delay } from "node:timers/promises";
import { expect } from "chai";
import type { Browsers } from "../../../src/engine/browser/browsers.js";
import type { EvaluationMode, SendOutgoingRequest } from "../../../src/engine/browser/run.js";
import { until } from "../../harness/until.js";
import { resultOf, sharedBrowsers } from "./support.js";

const LONG_TEXT = "ä€😀".repeat(150_000);
const MODES: EvaluationMode[] = ["network-isolate", "document"];

for (const mode of MODES) {
  describe(`requests to other services in the sandbox ${mode}`, () => {
    let browsers: Browsers;

    before(async () => {
      browsers = sharedBrowsers({ idlePagesMax: 1 });
      await browsers.start();
    });
    after(() => browsers.stop());

    const run = (body: string, outgoing?: SendOutgoingRequest, payload = {}) =>
      resultOf(browsers, `async function execute({ payload }) { const way = globalThis.__svcService; ${body} }`, {
        mode,
        network: false,
        payload: JSON.stringify(payload),
        settings: '{"_a":1}',
        ...(outgoing && { outgoing }),
      });

    it("get the options unchanged, and return headers and text of any length", async () => {
      const seen: string[] = [];
      const outgoing: SendOutgoingRequest = async (options) => {
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
      const open: (() => void)[] = [];
      const ended: Promise<unknown>[] = [];
      const outgoing: SendOutgoingRequest = (_options, signal) => {
        const { promise, resolve } = Promise.withResolvers<unknown>();
        ended.push(promise);
        signal.addEventListener("abort", resolve);
        return new Promise((answer) => open.push(() => answer({ head: "[200,{}]", text: "" })));
      };
      const finished = run(
        "const all = Array.from({ length: 20 }, () => way.request('{}')); return (await Promise.all(all)).length;",
        outgoing,
      );
      for (const expected of [8, 8, 4]) {
        await until(() => open.length >= expected);
        // If the run could send a ninth request at once, it would arrive in these 50 ms.
        await delay(50);
        expect(open.length).to.equal(expected);
        for (const answer of open.splice(0)) answer();
      }
      expect(await finished).to.equal(20);
      ended.length = 0;
      await run("for (let i = 0; i < 20; i += 1) way.request('{}'); await null; return 1;", outgoing);
      await Promise.all(ended);
    });

    it("do not exist for a run that may not send any", async () => {
      expect(await run("return way === undefined;")).to.equal(true);
    });
  });
}
