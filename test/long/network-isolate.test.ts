/** Compares a network isolate with a worker for all values and bodies. `npm test` runs some of these samples. */
import { BODY_STATES } from "../engine/browser/alike/bodies.js";
import { networkIsolateComparison } from "../engine/browser/alike/comparison.js";
import { CRYPTO_BEFORE, CRYPTO_CALLS_OF_VALUE } from "../engine/browser/alike/crypto.js";
import { matrixOf, VALUE_SAMPLES } from "../engine/browser/alike/values.js";

describe("all samples in a network isolate", () => {
  const { expectAlike } = networkIsolateComparison();

  it("have values of every kind converted in the same way, wherever they are passed", () => expectAlike(VALUE_SAMPLES));
  it("have WebCrypto read values of every kind in the same way", () =>
    expectAlike(matrixOf(CRYPTO_CALLS_OF_VALUE), CRYPTO_BEFORE));
  it("have bodies of every kind read in the same way, in every state", () => expectAlike(BODY_STATES));
});
