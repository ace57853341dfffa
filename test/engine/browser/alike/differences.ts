/** Returns code samples with different results in a web worker, which has the browser's own APIs, and in a network isolate. */
import type { Browsers } from "../../../../src/engine/browser/browsers.js";
import { NETWORK_ISOLATE_NON_GLOBAL_CLASSES } from "../../../../src/engine/browser/globals.js";
import { wrapInFunction } from "../../../../src/engine/browser/pages/action-script.js";
import { resultOf } from "../support.js";
import { type Sample, sourceOf } from "./outcomes.js";

/** Title of a sample that differs, with its result in the worker and in the isolate. */
export type Difference = readonly [title: string, inWorker: string, inIsolate: string];

/** Returns the code of a document that starts a worker, evaluates the code there as an isolate does, and returns its result. */
const workerDocumentCode = (source: string) => {
  const text = wrapInFunction({ name: "action.js", source });
  const worker = `for (const name of ${JSON.stringify(NETWORK_ISOLATE_NON_GLOBAL_CLASSES)}) delete self[name];
    (0, eval)(${JSON.stringify(text)})()().then((result) => postMessage({ result }), (error) => postMessage({ error: String(error) }))`;
  // Errors that a sample does not handle are part of its result.
  return `const execute = () => new Promise((resolve, reject) => {
    const worker = new Worker(URL.createObjectURL(new Blob([${JSON.stringify(worker)}])));
    worker.onmessage = ({ data }) => (data.error ? reject(new Error(data.error)) : resolve(data.result));
  })`;
};

/** Matches error messages of functions that the isolate implements itself, and whose messages do not name the method. */
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
