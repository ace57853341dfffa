/** Finds faults in code while an author writes it, by the checks that a save makes. */

import { BODY_MAX_BYTES } from "../../limits.js";
import { refuseField } from "../../rules/fields.js";
import type { CodeReadings } from "./code-readings.js";

/** Fault in code, and its position, counted from 1. Without a position it applies to the whole code. */
export interface CodeProblem {
  message: string;
  line: number;
  column: number;
  /** Package that is missing in the dependencies and would fix the fault; otherwise null. */
  dependency: string | null;
}

const PLACED_FAULT = /^code, line (\d+), column (\d+): (.*)$/s;

function problemOf(fault: string, dependency: string | null): CodeProblem {
  const [, line, column, message] = PLACED_FAULT.exec(fault) ?? [];
  return { message: message ?? fault, line: Number(line ?? 1), column: Number(column ?? 1), dependency };
}

export type CodeProblems = ReturnType<typeof createCodeProblems>;

export function createCodeProblems({ codeReadings }: { codeReadings: CodeReadings }) {
  /** Returns the first syntax fault, or every package that is used but missing in the dependencies. @throws REQUEST_INVALID */
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
