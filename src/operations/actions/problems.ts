/** Finds problems in code while an author edits it. The checks are the same as when the action is saved. */

import { BODY_MAX_BYTES } from "../../limits.js";
import { refuseField } from "../../rules/fields.js";
import type { CodeReadings } from "./code-readings.js";

/**
 * A problem in code, with its position. Lines and columns count from 1. A problem of the whole code has the position 1,
 * 1.
 */
export interface CodeProblem {
  message: string;
  line: number;
  column: number;
  /** Name of the package that the code uses but that is missing in the dependencies; null for other problems. */
  dependency: string | null;
}

const PLACED_FAULT = /^code, line (\d+), column (\d+): (.*)$/s;

function problemOf(fault: string, dependency: string | null): CodeProblem {
  const [, line, column, message] = PLACED_FAULT.exec(fault) ?? [];
  return { message: message ?? fault, line: Number(line ?? 1), column: Number(column ?? 1), dependency };
}

export type CodeProblems = ReturnType<typeof createCodeProblems>;

export function createCodeProblems({ codeReadings }: { codeReadings: CodeReadings }) {
  /**
   * Returns the first syntax error. Without one, returns a problem for each package that the code uses but that is
   * missing in the dependencies. @throws REQUEST_INVALID
   */
  return async (appId: number, code: unknown, dependencies: readonly unknown[]): Promise<CodeProblem[]> => {
    if (typeof code !== "string" || Buffer.byteLength(code) > BODY_MAX_BYTES) {
      refuseField("code", `a text of at most ${BODY_MAX_BYTES} bytes`, code);
    }
    const { reading, compileFault } = await codeReadings.read(appId, code);
    if (reading.fault !== null) return [problemOf(reading.fault, null)];
    if (compileFault !== null) return [problemOf(compileFault.message, null)];
    return reading.uses
      .filter(({ name }) => !dependencies.includes(name))
      .map(({ name, fault }) => problemOf(fault, name));
  };
}
