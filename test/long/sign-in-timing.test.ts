/**
 * Measures the duration of failed sign-ins: an unknown account, an account without a passphrase and a wrong passphrase take equally long.
 */
import { expect } from "chai";
import { createSignedInPerson } from "../harness/people.js";
import { startTestService, type TestService } from "../harness/service.js";

const TRIES_PER_KIND = 200;
/** Quantile of the normal distribution for a confidence of 95 %. */
const Z = 1.96;

const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;
const variance = (values: readonly number[]): number => {
  const middle = mean(values);
  return values.reduce((sum, value) => sum + (value - middle) ** 2, 0) / (values.length - 1);
};

/** Returns the 95 % confidence interval of the difference of two means. */
function confidenceInterval(a: readonly number[], b: readonly number[]): [low: number, high: number] {
  const difference = mean(a) - mean(b);
  const reach = Z * Math.sqrt(variance(a) / a.length + variance(b) / b.length);
  return [difference - reach, difference + reach];
}

describe("the time of a failed sign-in", () => {
  let service: TestService;
  before(async () => {
    service = await startTestService({ ROLES: "api", TRUST_PROXY: "1" });
  });
  after(() => service.stop());

  it("does not reveal an unknown account, or one without a passphrase", async () => {
    const { email } = await createSignedInPerson(service);
    let address = 0;
    async function timed(account: string): Promise<number> {
      address += 1;
      // Each sign-in has an address of its own, so that the service delays none.
      const headers = { "x-forwarded-for": `10.${address >> 16}.${(address >> 8) & 255}.${address & 255}` };
      const startedAt = performance.now();
      const body = { email: account, passphrase: "not the passphrase of anyone" };
      const { http } = await service.rest("POST", "/v1/auth/sign-in", { as: null, headers, body });
      expect(http).to.equal(401);
      return performance.now() - startedAt;
    }
    const kinds = { wrong: email, unknown: "unknown-account@example.com", withoutPassphrase: "editor@example.com" };
    const times: Record<keyof typeof kinds, number[]> = { wrong: [], unknown: [], withoutPassphrase: [] };
    const names = Object.keys(kinds) as (keyof typeof kinds)[];
    for (const name of names) for (let at = 0; at < 20; at += 1) await timed(kinds[name]);
    // The test alternates between the kinds, so that a slow moment of the machine affects all of them.
    for (let at = 0; at < TRIES_PER_KIND; at += 1) {
      for (let step = 0; step < names.length; step += 1) {
        const name = names[(at + step) % names.length]!;
        times[name].push(await timed(kinds[name]));
      }
    }
    for (const name of ["unknown", "withoutPassphrase"] as const) {
      const [low, high] = confidenceInterval(times.wrong, times[name]);
      const figures = `${name}: ${mean(times[name]).toFixed(2)} ms, wrong: ${mean(times.wrong).toFixed(2)} ms`;
      expect(low <= 0 && high >= 0, `${figures}, difference from ${low.toFixed(2)} to ${high.toFixed(2)} ms`).to.equal(
        true,
      );
      console.log(`      ${figures}, difference from ${low.toFixed(2)} to ${high.toFixed(2)} ms`);
    }
  });
});
