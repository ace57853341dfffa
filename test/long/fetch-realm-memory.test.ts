/** Tests runs with fetch that share a thread and fill the memory of this thread. test/attacks/fetch-realm.test.ts tests their isolation. */
import { expect } from "chai";
import type { ConsoleLine, EvaluationMode } from "../../src/engine/browser/run.js";
import { useFetchRealm } from "../attacks/fetch-realm.js";
import { failureOf, resultOf } from "../engine/browser/support.js";

/** Code that allocates more than half of a page's memory limit, so that two runs together exceed it. */
const FILL_MEMORY = "for (let at = 0; at < 34; at += 1) kept.push(make('x'.repeat(1e7) + at));";

describe("consecutive runs on a thread with fetch that fill memory", () => {
  const { browsers, here, execute, service, SERVICE_CALL_CODE, next, lost, arrived } = useFetchRealm();

  for (const [title, make] of [
    ["responses that no code reads", "(text) => new Response(text)"],
    ["requests that no code sends", "(text) => new Request(url, { method: 'POST', body: text })"],
    ["blobs", "(text) => new Blob([text])"],
    ["keys", "() => crypto.subtle.generateKey({ name: 'HMAC', hash: 'SHA-256', length: 8e7 }, true, ['sign'])"],
  ] as const) {
    it(`have their full memory, whatever the previous run has left in ${title}`, async () => {
      const source = execute(
        `${FILL_MEMORY.replace("34", title === "blobs" ? "8" : "34")} return kept.length`,
        `globalThis.kept = []; const make = ${make}`,
      );
      for (let count = 0; count < 3; count += 1) expect(await resultOf(browsers(), source, here)).to.be.above(0);
      expect(lost).to.deep.equal([]);
    });
  }

  // Without the flags in chromium-flags.ts, Chromium aborts if an incremental garbage collection ends while a ShadowRealm's code runs.
  it("fail as usual if they fill the memory, and the next run is not affected", async () => {
    for (const fill of [
      "new Array(1e5).fill(1.5)",
      "new Uint8Array(1e7).fill(1)",
      "new Response('x'.repeat(1e7) + kept.length)",
    ]) {
      const failure = await failureOf(browsers(), execute(`for (;;) kept.push(${fill})`, "const kept = []"), here);
      expect(failure.cause, fill).to.equal("memory");
      expect(await next(), fill).to.equal("answered");
    }
  });

  it("are repeated in a document if their page crashes before they had an effect, and never after an effect", async () => {
    const fill = "for (;;) kept.push(new Array(1e5).fill(1.5))";
    for (const trace of ["console.log('once')", "await fetch(url + '/once')", SERVICE_CALL_CODE]) {
      const consoleTexts: string[] = [];
      arrived.length = 0;
      const onConsole = ({ text }: ConsoleLine) => void consoleTexts.push(text);
      const pause = "await new Promise((resolve) => { setTimeout(resolve, 50) })";
      const source = execute(`${trace}; ${pause}; ${fill}`, "const kept = []");
      await failureOf(browsers(), source, { ...here, onConsole, service });
      expect([...consoleTexts, ...arrived], trace).to.deep.equal([trace.includes("log") ? "once" : "/once"]);
    }
    const modesWithEffect: EvaluationMode[] = [];
    const asking = execute(
      "await fetch(url + '/again'); for (;;) kept.push(new Array(1e5).fill(1.5))",
      "const kept = []",
    );
    for (let run = 0; run < 2; run += 1) {
      const onMode = (mode: EvaluationMode) => void modesWithEffect.push(mode);
      await failureOf(browsers(), asking, { ...here, mode: undefined, onMode });
    }
    expect(modesWithEffect, "the next run of the same code has a document").to.deep.equal([
      "network-isolate",
      "document",
    ]);
    // The loop is long enough for several full garbage collections.
    const long = execute(
      "const row = []; for (let at = 0; at < 3e6; at += 1) Object.defineProperty(row, at, { value: {} }); return row.length",
    );
    expect(await resultOf(browsers(), long, here)).to.equal(3e6);
    const modes: EvaluationMode[] = [];
    const onMode = (mode: EvaluationMode) => void modes.push(mode);
    await failureOf(browsers(), execute(fill, "const kept = []"), { ...here, onMode });
    expect(modes, "modes of the attempts").to.deep.equal(["network-isolate", "document"]);
  });
});
