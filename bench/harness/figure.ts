/** Types of the benchmark's figures, and the calculations that they share. */

/** One row of a figure: the service's value, and the baseline (`floor`) that was measured in the same benchmark. */
export interface FigureRow {
  name: string;
  value: number;
  /** Unit of the value and of the baseline: `ms` or `/s`. */
  unit: string;
  floor?: { name: string; value: number };
  /** Size at which the row was measured, such as 1,000 callers. Rows with the same `line` form one line of a drawing. */
  size?: { line: string; of: string; value: number };
  /** Position of the value in a table. */
  cell?: { line: string; column: string };
}

/**
 * One figure. `run` starts the measured systems, measures, stops the systems, and returns the rows in the order of printing.
 * Each measurement is repeated in `rounds` rounds.
 */
export interface Figure {
  title: string;
  run(rounds: number): Promise<FigureRow[]>;
}

/** Returns the sample below which the given share (0 to 1) of all samples lies. */
export function computePercentile(samples: readonly number[], share: number): number {
  const sorted = [...samples].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

export const computeMedian = (samples: readonly number[]): number => computePercentile(samples, 0.5);

/**
 * Executes each measurement once per round, and returns the median of each. Because the measurements alternate, a change of the machine's
 * speed affects all of them.
 */
export async function measureAlternating<Name extends string>(
  rounds: number,
  measurements: Record<Name, () => Promise<number>>,
): Promise<Record<Name, number>> {
  const samples = new Map<string, number[]>();
  for (let round = 0; round < rounds; round += 1) {
    for (const [name, measure] of Object.entries<() => Promise<number>>(measurements)) {
      samples.set(name, [...(samples.get(name) ?? []), await measure()]);
    }
  }
  const medians = [...samples].map(([name, values]) => [name, computeMedian(values)]);
  return Object.fromEntries(medians) as Record<Name, number>;
}

/** Calls a function `count` times, one after the other. Returns the duration of each call in milliseconds. */
export async function timeCalls(count: number, call: (index: number) => Promise<unknown>): Promise<number[]> {
  const samples: number[] = [];
  for (let index = 0; index < count; index += 1) {
    const startedAt = performance.now();
    await call(index);
    samples.push(performance.now() - startedAt);
  }
  return samples;
}

/** Returns rows with the median and the 95th percentile of the samples and of the baseline. */
export function createLatencyRows(
  name: string,
  samples: readonly number[],
  floorName: string,
  floor: readonly number[],
): FigureRow[] {
  return [0.5, 0.95].map((share) => ({
    name: `${name}, p${share * 100}`,
    value: computePercentile(samples, share),
    unit: "ms",
    floor: { name: floorName, value: computePercentile(floor, share) },
  }));
}
