/** Executes a run that uses more memory than its limit, at the same time as a run of another app. */
import { expect } from "chai";
import type { Browsers } from "../../../src/engine/browser/browsers.js";
import type { EvaluationMode } from "../../../src/engine/browser/run.js";
import { failureOf, runOf } from "./support.js";

/** Expects that the run ends with a memory error, and that a simultaneous run of another app succeeds. */
export async function expectEndedByMemory(
  browsers: Browsers,
  code: string,
  mode: EvaluationMode = "document",
): Promise<void> {
  const neighbour = browsers.run(
    runOf(
      "const execute = async () => { for (let i = 0; i < 200; i += 1) await new Promise((r) => setTimeout(r, 5)); return 1 }",
      { isolationKey: "2:master" },
    ),
  );
  const failure = await failureOf(browsers, `const execute = async () => { ${code} }`, { timeoutMs: 50_000, mode });
  expect([failure.cause, failure.error.message]).to.deep.equal([
    "memory",
    "The action used too much memory: more than 512 MB, or more than 384 MB for JavaScript objects",
  ]);
  expect((await neighbour).ok).to.equal(true);
}
