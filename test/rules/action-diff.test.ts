import { expect } from "chai";
import { applyPatch } from "diff";
import fc from "fast-check";
import { createUnifiedDiff, diffActions, listChangedScripts } from "../../src/rules/action-diff.js";
import type { ActionInput } from "../../src/rules/action-input.js";
import { caseCount } from "../harness/samples.js";

const LABELS = { before: "production", after: "master" };

const action: ActionInput = {
  name: "nightly",
  code: "async function execute(context) {}",
  description: null,
  active: false,
  environment: "server",
  triggers: [],
  dependencies: [],
  frequency: null,
  timezone: null,
  integrationOrigins: [],
  access: "everyone",
};

describe("the difference of two actions", () => {
  it("is empty for equal actions", () => {
    expect(diffActions({ before: action, after: structuredClone(action), labels: LABELS })).to.deep.equal({
      changes: [],
      code: null,
    });
  });

  it("has each field that differs, with the old and the new value", () => {
    const after: ActionInput = { ...action, active: true, triggers: [{ trigger: "manual" }], frequency: "0 9 * * *" };
    expect(diffActions({ before: action, after, labels: LABELS })).to.deep.equal({
      changes: [
        { field: "active", before: false, after: true },
        { field: "triggers", before: [], after: [{ trigger: "manual" }] },
        { field: "frequency", before: null, after: "0 9 * * *" },
      ],
      code: null,
    });
  });

  it("has the scripts of packages that differ while the dependencies are the same", () => {
    const withScript = (integrity: string) => ({
      ...action,
      dependencies: ["dayjs"],
      assets: [{ name: "dayjs", version: "1.11.13", integrity }],
    });
    const [before, after] = [withScript("sha256-a"), withScript("sha256-b")];
    expect(diffActions({ before, after: withScript("sha256-a"), labels: LABELS }).changes).to.deep.equal([]);
    expect(diffActions({ before, after, labels: LABELS }).changes).to.deep.equal([
      { field: "assets", before: before.assets, after: after.assets },
    ]);
  });

  it("names the scripts that differ: changed, added and removed ones", () => {
    const script = (name: string, version: string, integrity = `sha256-${version}`) => ({ name, version, integrity });
    const change = (before: object[], after: object[]) => listChangedScripts([{ field: "assets", before, after }]);
    const [dayjs1, dayjs2] = [script("dayjs", "1"), script("dayjs", "2")];
    const [same, rebuilt] = [script("lodash", "4"), script("lodash", "4", "sha256-other")];
    expect(change([dayjs1, same], [same, dayjs2])).to.deep.equal([{ name: "dayjs", before: dayjs1, after: dayjs2 }]);
    expect(change([same], [rebuilt])).to.deep.equal([{ name: "lodash", before: same, after: rebuilt }]);
    expect(change([dayjs1], [same])).to.deep.equal([
      { name: "dayjs", before: dayjs1, after: null },
      { name: "lodash", before: null, after: same },
    ]);
    expect(change([dayjs1, same], [same, dayjs1])).to.deep.equal([]);
    expect(listChangedScripts([])).to.deep.equal([]);
  });

  it("has a unified diff that leads from one text to the other, for any texts", () => {
    const line = fc.constantFrom(
      "",
      "a",
      "b",
      "}",
      "  x",
      "\r",
      "\\ No newline at end of file",
      "-- c",
      "++ d",
      "@@ -1 +1 @@",
    );
    const text = fc.array(line, { maxLength: 12 }).map((lines) => lines.join("\n"));
    const property = fc.property(text, text, (before, after) => {
      const patch = createUnifiedDiff(before, after, LABELS);
      if (before === after) expect(patch).to.equal(null);
      else expect(applyPatch(before, patch!, { autoConvertLineEndings: false })).to.equal(after);
    });
    fc.assert(property, { numRuns: caseCount(500) });
  });

  it("replaces the whole text if it has little in common with the other, in limited time", () => {
    const lines = (mark: string, end: string) => Array.from({ length: 60_000 }, (_, at) => mark + at).join("\n") + end;
    for (const [endBefore, endAfter] of [
      ["\n", ""],
      ["", "\n"],
    ] as const) {
      const [before, after] = [lines("a", endBefore), lines("b", endAfter)];
      const patch = createUnifiedDiff(before, after, LABELS)!;
      expect(patch).to.include("@@ -1,60000 +1,60000 @@");
      expect(applyPatch(before, patch)).to.equal(after);
    }
  });
});
