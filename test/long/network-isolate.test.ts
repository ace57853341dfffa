/** Compares results in a network isolate with those in a worker, for all samples of values and bodies. `npm test` compares some samples. */
import { BODY_STATES } from "../engine/browser/alike/bodies.js";
import { networkIsolateComparison } from "../engine/browser/alike/comparison.js";
import { CRYPTO_BEFORE, CRYPTO_CALLS_OF_VALUE } from "../engine/browser/alike/crypto.js";
import { createSamples, VALUE_SAMPLES } from "../engine/browser/alike/values.js";

describe("a network isolate, for all samples,", () => {
  const { expectAlike } = networkIsolateComparison();

  it("converts values of every kind as a worker does, wherever they are passed", () => expectAlike(VALUE_SAMPLES));
  it("reads values of every kind in calls of WebCrypto as a worker does", () =>
    expectAlike(createSamples(CRYPTO_CALLS_OF_VALUE), CRYPTO_BEFORE));
  it("reads bodies of every kind as a worker does, in every state", () => expectAlike(BODY_STATES));
});
