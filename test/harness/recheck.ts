/** Proves that a regular expression takes linear time, and reads the list of earlier proofs. */
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";

/** Expressions with an earlier proof: proving all takes a minute. test/long/proven-expressions.test.ts proves the list itself. */
export const PROVEN_FILE = fileURLToPath(new URL("../../../test/proven-expressions.json", import.meta.url));
/** Version of the checker: another version proves all expressions again. */
export const { version: VERSION } = createRequire(import.meta.url)("recheck/package.json") as { version: string };

// The checker's other backends leave processes behind. It reads this variable when its module is loaded.
process.env["RECHECK_BACKEND"] = "pure";
const { checkSync } = await import("recheck");
/** The result must not depend on the load of the machine: no time limits, and no measured attack. */
const TIMELESS_OPTIONS = {
  ...{ timeout: null, attackTimeout: null, incubationTimeout: null, mutationTimeout: null, seedingTimeout: null },
  recallTimeout: -1,
};

export interface ProvenExpressions {
  version: string;
  /** As they are written in the source, with slashes and flags. */
  linear: string[];
}

export interface ExpressionSource {
  source: string;
  flags: string;
}

/** null if the expression is proven linear, else the checker's verdict. */
export function faultOfExpression({ source, flags }: ExpressionSource): string | null {
  const verdict = checkSync(source, flags, TIMELESS_OPTIONS);
  if (verdict.status === "safe") return null;
  return verdict.status === "vulnerable" ? verdict.complexity.summary : `not proven: ${verdict.error.kind}`;
}
