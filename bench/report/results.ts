/** Reads and writes the file with the stored results of the benchmark. */
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import type { FigureRow } from "../harness/figure.js";

export interface StoredFigure {
  title: string;
  /** Date of the measurement in ISO 8601. */
  day: string;
  node: string;
  cores: number;
  rounds: number;
  /** Load average of the machine before the measurement. */
  load?: number;
  rows: FigureRow[];
}

export const DEFAULT_RESULTS_FILE = "bench/results.json";

/** Results by the name of the figure. */
export type StoredFigures = Record<string, StoredFigure>;

export function readResults(file: string): StoredFigures {
  return existsSync(file) ? (JSON.parse(readFileSync(file, "utf8")) as StoredFigures) : {};
}

/** Adds a figure's result to the file, atomically. */
export function storeResult(file: string, figure: string, measured: StoredFigure): void {
  const temporaryFile = `${file}.draft`;
  writeFileSync(temporaryFile, `${JSON.stringify({ ...readResults(file), [figure]: measured }, null, 2)}\n`);
  renameSync(temporaryFile, file);
}
