/** Types of figures, and common calculations. */

/** One row of a figure: the service's value, and its baseline from the same run. */
export interface Row {
  name: string;
  value: number;
  /** Unit of the value and its baseline: `ms`, `/s`. */
  unit: string;
  floor?: { name: string; value: number };
  /** For rows that differ only in this size; `line` names the rows that belong together. */
  size?: { line: string; of: string; value: number };
  /** For a row that is one cell of a table. */
  cell?: { line: string; column: string };
}

/** Starts what it measures, stops it, and returns its rows in the order of printing: medians of `rounds`, if there are rounds. */
export interface Figure {
  title: string;
  run(rounds: number): Promise<Row[]>;
}

/** The value below which this share (0 to 1) of the samples is. */
export function percentile(samples: readonly number[], share: number): number {
  const sorted = [...samples].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

export const median = (samples: readonly number[]): number => percentile(samples, 0.5);

/**
 * The median of each measurement over alternating `rounds`: the speed of the machine varies, and other load affects all of them equally.
 */
export async function inTurns<Name extends string>(
  rounds: number,
  measurements: Record<Name, () => Promise<number>>,
): Promise<Record<Name, number>> {
  const samples = new Map<string, number[]>();
  for (let round = 0; round < rounds; round += 1) {
    for (const [name, measure] of Object.entries<() => Promise<number>>(measurements)) {
      samples.set(name, [...(samples.get(name) ?? []), await measure()]);
    }
  }
  const medians = [...samples].map(([name, values]) => [name, median(values)]);
  return Object.fromEntries(medians) as Record<Name, number>;
}

/** Milliseconds of `count` calls, one after the other. */
export async function timeEach(count: number, call: (index: number) => Promise<unknown>): Promise<number[]> {
  const samples: number[] = [];
  for (let index = 0; index < count; index += 1) {
    const begun = performance.now();
    await call(index);
    samples.push(performance.now() - begun);
  }
  return samples;
}

/** p50 and p95 of calls and of their baseline. */
export function latencyRows(
  name: string,
  samples: readonly number[],
  floorName: string,
  floor: readonly number[],
): Row[] {
  return [0.5, 0.95].map((share) => ({
    name: `${name}, p${share * 100}`,
    value: percentile(samples, share),
    unit: "ms",
    floor: { name: floorName, value: percentile(floor, share) },
  }));
}
