/** What a figure of the bench is, and the sums that all of them need. */

/** One line of a figure: what the service does, and what the bare mechanism under it does in the same run. */
export interface Row {
  name: string;
  value: number;
  /** Of the value and of its floor: `ms`, `/s`. */
  unit: string;
  floor?: { name: string; value: number };
  /** Of a row that stands beside others of its figure, which differ in this alone; `line` names those that belong together. */
  size?: { line: string; of: string; value: number };
  /** Of a row that is one cell of a table. */
  cell?: { line: string; column: string };
}

/** It starts what it measures, stops it again, and answers its rows in the order to print: medians of `rounds`, where there are rounds. */
export interface Figure {
  title: string;
  run(rounds: number): Promise<Row[]>;
}

/** The value below which `share` (0 to 1) of the samples lie. */
export function percentile(samples: readonly number[], share: number): number {
  const sorted = [...samples].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

export const median = (samples: readonly number[]): number => percentile(samples, 0.5);

/**
 * The median of each measurement, taken `rounds` times in turns: the machine is not the same from one second to the next, and whatever
 * else it does weighs on all of them.
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

/** Milliseconds of each of `count` calls, one after the other. */
export async function timeEach(count: number, call: (index: number) => Promise<unknown>): Promise<number[]> {
  const samples: number[] = [];
  for (let index = 0; index < count; index += 1) {
    const begun = performance.now();
    await call(index);
    samples.push(performance.now() - begun);
  }
  return samples;
}

/** p50 and p95 of calls beside those of their floor. */
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
