/** Checks that the same code has the same results in a worker, which has the real platform, and in a network isolate. */
import { BODY_STATES, STREAMS } from "./alike/bodies.js";
import { networkIsolateComparison } from "./alike/comparison.js";
import { CRYPTO, CRYPTO_BEFORE, CRYPTO_TAKERS } from "./alike/crypto.js";
import { REQUESTS, TIMES } from "./alike/requests.js";
import { SHAPES, SHAPES_BEFORE } from "./alike/shapes.js";
import { MATRIX, matrixOf } from "./alike/values.js";

/** This file runs one of each STEP samples. test/long/network-isolate.test.ts runs all of them. */
const STEP = 10;
const partOf = <T>(samples: readonly T[]): T[] => samples.filter((_, at) => at % STEP === 0);

describe("code in a network isolate", () => {
  const { expectAlike, hostUrl } = networkIsolateComparison();

  it("sees the same classes and functions, also with wrong use", () => expectAlike(SHAPES, SHAPES_BEFORE));
  it("converts every tenth sample of the values in the same way", () => expectAlike(partOf(MATRIX)));
  it("has WebCrypto, with each operation of each algorithm", () => expectAlike(CRYPTO, SHAPES_BEFORE + CRYPTO_BEFORE));
  it("has WebCrypto read every tenth sample of the values in the same way", () =>
    expectAlike(partOf(matrixOf(CRYPTO_TAKERS)), CRYPTO_BEFORE));
  it("reads every tenth sample of the bodies in the same way", () => expectAlike(partOf(BODY_STATES)));
  it("handles streams, headers, forms and files in the same way", () => expectAlike(STREAMS));
  it("sends the same requests to hosts, and gets the same responses", () =>
    expectAlike(REQUESTS, `const HOST = ${JSON.stringify(hostUrl())};`));
  it("has the same order of timers, and is not affected by errors in other code", () => expectAlike(TIMES));
});
