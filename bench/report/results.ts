/** The file with the stored figures. */
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import type { Row } from "../harness/figure.js";

export interface Measured {
  title: string;
  /** ISO 8601, of the day. */
  day: string;
  node: string;
  cores: number;
  rounds: number;
  /** Load average of the machine before the figure was measured. */
  load?: number;
  rows: Row[];
}

/** Default file for figures. */
export const RESULTS = "bench/results.json";

/** By name of the figure. */
export type Results = Record<string, Measured>;

export function readResults(file: string): Results {
  return existsSync(file) ? (JSON.parse(readFileSync(file, "utf8")) as Results) : {};
}

/** Adds to the current content of the file, atomically. */
export function keepResult(file: string, figure: string, measured: Measured): void {
  const draft = `${file}.draft`;
  writeFileSync(draft, `${JSON.stringify({ ...readResults(file), [figure]: measured }, null, 2)}\n`);
  renameSync(draft, file);
}
