/** Finds problems in code while an author edits the code. Makes the same checks of the code as saving the action. */

import { BODY_MAX_BYTES } from "../../limits.js";
import { refuseField } from "../../rules/fields.js";
import type { CodeChecker } from "./code-checker.js";

/** A problem in code and its position. Lines and columns are counted from 1. A problem of the whole code has line 1 and column 1. */
export interface CodeProblem {
  message: string;
  line: number;
  column: number;
  /** Package that the code uses but `dependencies` does not list; null for other problems. */
  dependency: string | null;
}

const FAULT_POSITION_PATTERN = /^code, line (\d+), column (\d+): (.*)$/s;

function toCodeProblem(fault: string, dependency: string | null): CodeProblem {
  const [, line, column, message] = FAULT_POSITION_PATTERN.exec(fault) ?? [];
  return { message: message ?? fault, line: Number(line ?? 1), column: Number(column ?? 1), dependency };
}

/**
 * Returns the first error in the code. If the code has no error, returns a problem for each package that the code uses but `dependencies`
 * does not list.
 * @throws REQUEST_INVALID
 */
export type CodeProblemFinder = (
  appId: number,
  code: unknown,
  dependencies: readonly unknown[],
) => Promise<CodeProblem[]>;

export function createCodeProblemFinder({ codeChecker }: { codeChecker: CodeChecker }): CodeProblemFinder {
  return async (appId, code, dependencies) => {
    if (typeof code !== "string" || Buffer.byteLength(code) > BODY_MAX_BYTES) {
      refuseField("code", `a text of at most ${BODY_MAX_BYTES} bytes`, code);
    }
    const { parseResult, compileError } = await codeChecker.check(appId, code);
    if (parseResult.fault !== null) return [toCodeProblem(parseResult.fault, null)];
    if (compileError !== null) return [toCodeProblem(compileError.message, null)];
    return parseResult.uses
      .filter(({ name }) => !dependencies.includes(name))
      .map(({ name, fault }) => toCodeProblem(fault, name));
  };
}
