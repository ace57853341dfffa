/** Finds code samples whose results differ between a network isolate and a web worker, which has the browser's own APIs. */
import type { Browsers } from "../../../../src/engine/browser/browsers.js";
import { NETWORK_ISOLATE_NON_GLOBAL_CLASSES } from "../../../../src/engine/browser/globals.js";
import { wrapInFunction } from "../../../../src/engine/browser/pages/action-script.js";
import { resultOf } from "../support.js";
import { type Sample, sourceOf } from "./outcomes.js";

/** Title of a sample, its result in the worker, and its different result in the isolate. */
export type Difference = readonly [title: string, inWorker: string, inIsolate: string];

/** Returns code for a document. The code evaluates the source in a worker, in the same way as an isolate does, and returns the result. */
const workerDocumentCode = (source: string) => {
  const text = wrapInFunction({ name: "action.js", source });
  const worker = `for (const name of ${JSON.stringify(NETWORK_ISOLATE_NON_GLOBAL_CLASSES)}) delete self[name];
    (0, eval)(${JSON.stringify(text)})()().then((result) => postMessage({ result }), (error) => postMessage({ error: String(error) }))`;
  // The worker has no `onerror` listener, because an unhandled error belongs to the result of a sample.
  return `const execute = () => new Promise((resolve, reject) => {
    const worker = new Worker(URL.createObjectURL(new Blob([${JSON.stringify(worker)}])));
    worker.onmessage = ({ data }) => (data.error ? reject(new Error(data.error)) : resolve(data.result));
  })`;
};

/** Matches the method's name in error messages of the browser. The isolate's own versions of these functions do not name the method. */
const METHOD_IN_MESSAGE = /Failed to execute '(json|(set|clear)(Timeout|Interval))' on '\w+': /g;

export async function findDifferences(
  browsers: Browsers,
  samples: readonly Sample[],
  before = "",
): Promise<Difference[]> {
  const source = sourceOf(samples, before);
  const inWorker = (await resultOf(browsers, workerDocumentCode(source), { mode: "document" })) as string[];
  const isolateResults = (await resultOf(browsers, source, { mode: "network-isolate" })) as string[];
  return samples.flatMap(([title], at) =>
    inWorker[at]?.replaceAll(METHOD_IN_MESSAGE, "") === isolateResults[at]?.replaceAll(METHOD_IN_MESSAGE, "")
      ? []
      : [[title, inWorker[at]!, isolateResults[at]!] as const],
  );
}
