/** Scans 6 MB for 100 KB of secrets in each expensive case. Checks the result, the duration, and that other work does not wait. */
import { monitorEventLoopDelay } from "node:perf_hooks";
import { expect } from "chai";
import { createSecretScannerCache } from "../../src/engine/secret-scan.js";
import { findSecretsInSettingValue } from "../../src/rules/secrets.js";
import { SECRETS, textsOf } from "../attacks/scan-worst-cases.js";
import { expectSameVerdicts } from "../attacks/secret-texts.js";

const RESULT_BYTES = 6 * 1024 * 1024;
const TIME_MAX_MS = 200;
const PAUSE_MAX_MS = 50;
const GENERATED_SAMPLES = 20_000;

describe("the scan of large results", function () {
  this.timeout(0);
  const scannerCache = createSecretScannerCache();
  const texts = textsOf(RESULT_BYTES);

  for (const [kind, setting] of Object.entries(SECRETS)) {
    it(`takes under ${TIME_MAX_MS} ms with ${kind}, and no pause of ${PAUSE_MAX_MS} ms`, async () => {
      const scan = scannerCache.getScanner("app", kind, findSecretsInSettingValue("_x", setting));
      await scan.findInJson("[]");
      for (const [name, text] of Object.entries(texts)) {
        const delay = monitorEventLoopDelay({ resolution: 1 });
        delay.enable();
        const startedAt = performance.now();
        await scan.find([{ text }]);
        const durationMs = performance.now() - startedAt;
        delay.disable();
        expect(durationMs, `${name}: ${Math.round(durationMs)} ms`).to.be.below(TIME_MAX_MS);
        expect(delay.max / 1e6, `${name}: longest pause`).to.be.below(PAUSE_MAX_MS);
      }
    });
  }

  it(`agrees with its reference on ${GENERATED_SAMPLES} generated texts`, () => expectSameVerdicts(GENERATED_SAMPLES));
});
