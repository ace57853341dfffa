/** Runs the same samples in a document and in a network isolate, and returns those with different results. */
import type { Browsers } from "../../../../src/engine/browser/browsers.js";
import { resultOf } from "../support.js";
import { type Sample, sourceOf } from "./outcomes.js";

/** The result of a sample in each mode. */
export type Difference = readonly [title: string, inDocument: string, inIsolate: string];

export async function differences(browsers: Browsers, samples: readonly Sample[], before = ""): Promise<Difference[]> {
  const source = sourceOf(samples, before);
  const inDocument = (await resultOf(browsers, source, { mode: "document" })) as string[];
  const inIsolate = (await resultOf(browsers, source, { mode: "network-isolate" })) as string[];
  return samples.flatMap(([title], at) =>
    inDocument[at] === inIsolate[at] ? [] : [[title, inDocument[at]!, inIsolate[at]!] as const],
  );
}
