/** Compares a network isolate with a worker over all values and bodies. `npm test` runs one sample in ten. */
import { BODY_STATES } from "../engine/browser/alike/bodies.js";
import { networkIsolateComparison } from "../engine/browser/alike/comparison.js";
import { CRYPTO_BEFORE, CRYPTO_TAKERS } from "../engine/browser/alike/crypto.js";
import { MATRIX, matrixOf } from "../engine/browser/alike/values.js";

describe("all samples in a network isolate", () => {
  const { expectAlike } = networkIsolateComparison();

  it("have values of every kind converted in the same way, wherever they are passed", () => expectAlike(MATRIX));
  it("have WebCrypto read values of every kind in the same way", () =>
    expectAlike(matrixOf(CRYPTO_TAKERS), CRYPTO_BEFORE));
  it("have bodies of every kind read in the same way, in every state", () => expectAlike(BODY_STATES));
});
