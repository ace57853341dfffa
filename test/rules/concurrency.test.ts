/** Tests the concurrency limit as a pure function: which run starts, is skipped, waits, or is cancelled. */
import { expect } from "chai";
import fc from "fast-check";
import type { ConcurrencyPolicy } from "../../src/data/action-types.js";
import { type ContendingRun, decideRunAdmission } from "../../src/rules/concurrency.js";

/** Policies by letter. In the test cases, each letter is a run, and an upper-case letter is a run that was admitted before. */
const POLICIES: Record<string, ConcurrencyPolicy> = { q: "queue", s: "skip", c: "cancel" };
const runsOf = (text: string): ContendingRun[] =>
  [...text].map((letter, at) => ({
    runId: at + 1,
    policy: POLICIES[letter.toLowerCase()]!,
    admitted: letter === letter.toUpperCase(),
  }));

describe("the limit of an action's runs", () => {
  for (const [limit, runs, admit, skip, cancel] of [
    [1, "q", [1], [], []],
    [1, "Qq", [], [], []],
    [1, "Qs", [], [2], []],
    [2, "Qs", [2], [], []],
    [2, "Qqq", [2], [], []],
    [3, "Qqqq", [2, 3], [], []],
    [1, "Cc", [], [], [[1, 2]]],
    [2, "Cc", [2], [], []],
    [2, "CCc", [], [], [[1, 3]]],
    [
      2,
      "CCcc",
      [],
      [],
      [
        [1, 4],
        [2, 4],
      ],
    ],
    [2, "QQc", [], [], []],
    [
      2,
      "QQcc",
      [],
      [],
      [
        [1, 4],
        [2, 4],
      ],
    ],
    [1, "qc", [2], [], [[1, 2]]],
    [3, "CCCc", [], [], [[1, 4]]],
  ] as [number, string, number[], number[], [number, number][]][]) {
    it(`of ${limit} for ${runs}: admits ${admit.join() || "none"}, cancels ${cancel.length}`, () => {
      const displaced = cancel.map(([runId, by]) => ({ runId, replacedBy: by }));
      expect(decideRunAdmission(limit, runsOf(runs))).to.deep.equal({ admit, skip, cancel: displaced });
    });
  }

  it("admits no more runs than its number, whatever waits", () => {
    const letters = fc.string({ unit: fc.constantFrom("q", "s", "c"), maxLength: 12 });
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 4 }), letters, (limit, waiting) => {
        const verdict = decideRunAdmission(limit, runsOf(waiting));
        expect(verdict.admit.length).to.be.at.most(limit);
        expect(verdict.cancel.map(({ runId }) => runId)).to.not.include.members([waiting.length]);
      }),
    );
  });
});
