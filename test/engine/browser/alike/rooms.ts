/** Runs the same samples in both rooms in which there is `fetch`, and says where they come to something else. */
import type { Browsers } from "../../../../src/engine/browser/browsers.js";
import { resultOf } from "../support.js";
import { type Sample, sourceOf } from "./outcomes.js";

/** What a sample comes to in a worker, and what in a realm. */
export type Difference = readonly [title: string, worker: string, realm: string];

export async function differences(browsers: Browsers, samples: readonly Sample[], before = ""): Promise<Difference[]> {
  const source = sourceOf(samples, before);
  const inWorker = (await resultOf(browsers, source, { realm: "network" })) as string[];
  const inRealm = (await resultOf(browsers, source, { realm: "fetch" })) as string[];
  return samples.flatMap(([title], at) =>
    inWorker[at] === inRealm[at] ? [] : [[title, inWorker[at]!, inRealm[at]!] as const],
  );
}
