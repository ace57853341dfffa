/** What a figure of the bench is, and the sums that all of them need. Knows nothing of what is measured. */

/** One line of a figure: what the service does, and what the bare mechanism under it does in the same run. */
export interface Row {
  name: string;
  value: number;
  /** Of the value and of its floor: `ms`, `/s`. */
  unit: string;
  floor?: { name: string; value: number };
}

/** A file of this folder: it starts what it measures, stops it again, and answers its rows in the order to print. */
export interface Figure {
  title: string;
  run(): Promise<Row[]>;
}

/** The value below which `share` (0 to 1) of the samples lie. */
export function percentile(samples: readonly number[], share: number): number {
  const sorted = [...samples].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
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
