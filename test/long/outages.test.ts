/** Generated outages of the database, of 1 to 60 s: OUTAGE_CASES in all, 200 unless set. OUTAGE_SEED repeats a series. */
import { expect } from "chai";
import fc from "fast-check";
import { EVERYTHING } from "../harness/fleet.js";
import type { Loss } from "../harness/gateway.js";
import { type Outage, type Outages, SIX, startOutages } from "../harness/outages.js";

const CASES = Number(process.env["OUTAGE_CASES"] ?? 200);
const SEED = Number(process.env["OUTAGE_SEED"] ?? Date.now() % 1_000_000);

const OUTAGE: fc.Arbitrary<Outage> = fc.record({
  loss: fc.constantFrom<Loss>("SIGINT", "SIGQUIT", "SIGKILL", "cut off", "failed over"),
  awayMs: fc.integer({ min: 1_000, max: 60_000 }),
  // Some runs end before the database is back, some after.
  underWay: fc.array(fc.integer({ min: 0, max: 75_000 }), { minLength: 1, maxLength: 8 }),
  after: fc.array(fc.integer({ min: 0, max: 2_000 }), { minLength: 1, maxLength: 8 }),
});

describe(`${CASES} generated outages of the database (OUTAGE_SEED=${SEED})`, function () {
  this.timeout(0);

  for (const [name, roles] of [
    ["one process", [EVERYTHING]],
    ["six processes", SIX],
  ] as const) {
    describe(`with ${name}`, () => {
      let outages: Outages;
      before(async () => {
        outages = await startOutages(roles);
      });
      after(() => outages.stop());

      it("end no run of a live process, repeat none and lose none", async () => {
        const series = fc.sample(OUTAGE, { seed: SEED, numRuns: Math.ceil(CASES / 2) });
        let runs = 0;
        for (const [at, outage] of series.entries()) {
          const verdict = await outages.experience(outage);
          runs += verdict.runs;
          const faultless = { runs: verdict.runs, doubled: [], missing: [], ended: [] };
          expect(verdict, `case ${at + 1}: ${JSON.stringify(outage)}`).to.deep.equal(faultless);
        }
        expect(outages.crashes()).to.deep.equal([]);
        process.stdout.write(`      ${series.length} outages, ${runs} runs\n`);
      });
    });
  }
});
