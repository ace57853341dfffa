/** Checks that code has the same results in a network isolate and in a web worker, which has the browser's own APIs. */

import { longTest, sampleOf } from "../../harness/samples.js";
import { BODY_STATES, STREAM_SAMPLES } from "./alike/bodies.js";
import { networkIsolateComparison } from "./alike/comparison.js";
import { CRYPTO_BEFORE, CRYPTO_CALLS_OF_VALUE, CRYPTO_SAMPLES } from "./alike/crypto.js";
import { REQUEST_SAMPLES, TIMES } from "./alike/requests.js";
import { SHAPES, SHAPES_BEFORE } from "./alike/shapes.js";
import { createSamples, VALUE_SAMPLES } from "./alike/values.js";

/** `partOf` selects every 30th sample of a large group. test/long/network-isolate.test.ts runs all samples. */
const SAMPLE_STEP = 30;
const partOf = <T>(samples: readonly T[]): T[] => samples.filter((_, at) => at % SAMPLE_STEP === 0);

describe("code in a network isolate, compared with code in a worker,", () => {
  const { expectAlike, hostUrl } = networkIsolateComparison();

  longTest("sees the same classes and functions, also with wrong use", () => expectAlike(SHAPES, SHAPES_BEFORE));
  it("converts a sample of the values in the same way", () => expectAlike(partOf(VALUE_SAMPLES)));
  it("has WebCrypto with the same operations and results", () =>
    expectAlike(sampleOf(CRYPTO_SAMPLES, 0, 30), SHAPES_BEFORE + CRYPTO_BEFORE));
  longTest("reads a sample of the values in calls of WebCrypto in the same way", () =>
    expectAlike(partOf(createSamples(CRYPTO_CALLS_OF_VALUE)), CRYPTO_BEFORE),
  );
  it("reads a sample of the bodies in the same way", () => expectAlike(partOf(BODY_STATES)));
  longTest("handles streams, headers, forms and files in the same way", () => expectAlike(STREAM_SAMPLES));
  it("sends the same requests to hosts, and gets the same responses", () =>
    expectAlike(sampleOf(REQUEST_SAMPLES, 0, 3), `const HOST = ${JSON.stringify(hostUrl())};`));
  it("has the same order of timers, and is not affected by errors in other code", () => expectAlike(TIMES));
});
