/** Tests the script that sets `window.ENV`, by executing it as a browser would. */
import { runInNewContext } from "node:vm";
import { expect } from "chai";
import fc from "fast-check";
import { buildWindowEnvScript } from "../../src/rules/env-script.js";

// biome-ignore lint/suspicious/noExplicitAny: the script sets a value of any type
function run(appSettings: Record<string, unknown>): any {
  const session = { appId: 1, user: null, environment: "production" } as const;
  const app = { appId: 1, apiUrl: "https://x.example", environment: "live", clientTimeoutMs: 30_000, session } as const;
  const script = buildWindowEnvScript({ ...app, appSettings });
  expect(script).not.to.match(/[<>\u2028\u2029]/);
  const window: Record<string, unknown> = {};
  runInNewContext(script, { window });
  return window["ENV"];
}

describe("the script env.js", () => {
  it("returns any settings unchanged", () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string({ unit: "binary" }), fc.jsonValue()), (settings) => {
        expect(JSON.stringify(run(settings).appSettings)).to.equal(JSON.stringify(settings));
      }),
    );
  });

  it("is safe with the end of a script element, comments and line separators in values and keys", () => {
    const nasty = "</script><!--<script>\u2028\u2029'\"\\`${x}\ud800";
    expect(run({ [nasty]: nasty }).appSettings[nasty]).to.equal(nasty);
  });

  it("keeps __proto__ in a value as a property and changes no prototype", () => {
    const { feature } = run({ feature: JSON.parse('{"__proto__": {"polluted": true}}') }).appSettings;
    expect(Object.keys(feature)).to.deep.equal(["__proto__"]);
    expect(feature.polluted).to.equal(undefined);
  });
});
