/** Proves again that the regular expressions in PROVEN_FILE run in linear time. `npm test` trusts this file. */
import { readFileSync } from "node:fs";
import { expect } from "chai";
import { findExpressionFault, PROVEN_FILE, type ProvenExpressions, RECHECK_VERSION } from "../harness/recheck.js";

describe("regular expressions that are listed as proven", () => {
  const { version, linear } = JSON.parse(readFileSync(PROVEN_FILE, "utf8")) as ProvenExpressions;

  it("were proven with this version of the checker", () => {
    expect(version).to.equal(RECHECK_VERSION);
  });

  it("take time in proportion to the text", () => {
    const faults = linear.flatMap((text) => {
      const end = text.lastIndexOf("/");
      return findExpressionFault({ source: text.slice(1, end), flags: text.slice(end + 1) }) === null ? [] : [text];
    });
    expect(faults).to.deep.equal([]);
  }).timeout(600_000);
});
