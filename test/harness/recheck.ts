/** Proves with the checker `recheck` that a regular expression takes linear time, and reads the list of earlier proofs. */
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";

/**
 * File that lists the regular expressions with a proof, because proving all of them takes a minute. test/long/proven-expressions.test.ts
 * proves all of them again.
 */
export const PROVEN_FILE = fileURLToPath(new URL("../../../test/proven-expressions.json", import.meta.url));
/** Version of the checker. If it changes, all expressions must be proven again. */
export const { version: RECHECK_VERSION } = createRequire(import.meta.url)("recheck/package.json") as {
  version: string;
};

// Selects the checker's JavaScript backend, because the other backends leave processes behind. Must be set before the import.
process.env["RECHECK_BACKEND"] = "pure";
const { checkSync } = await import("recheck");
/** Options that make the result independent of the machine's load: no time limits, and no measured attack. */
const TIMELESS_OPTIONS = {
  ...{ timeout: null, attackTimeout: null, incubationTimeout: null, mutationTimeout: null, seedingTimeout: null },
  recallTimeout: -1,
};

export interface ProvenExpressions {
  version: string;
  /** Proven expressions, as in the source, with slashes and flags. */
  linear: string[];
}

export interface ExpressionSource {
  source: string;
  flags: string;
}

/** Returns null if the checker proves that the expression takes linear time. Otherwise, returns its complexity or an error. */
export function findExpressionFault({ source, flags }: ExpressionSource): string | null {
  const verdict = checkSync(source, flags, TIMELESS_OPTIONS);
  if (verdict.status === "safe") return null;
  return verdict.status === "vulnerable" ? verdict.complexity.summary : `not proven: ${verdict.error.kind}`;
}
