/**
 * Generates outages of the database of 1 to 60 s. OUTAGE_CASES sets their number (200 by default). An outage consists mostly of waiting, so
 * several fleets share the cases: OUTAGE_FLEETS sets their number (4 by default). Each fleet has its own database. OUTAGE_SEED repeats a
 * series.
 */
import { expect } from "chai";
import fc from "fast-check";
import { ALL_ROLES } from "../harness/fleet.js";
import type { DatabaseLoss } from "../harness/gateway.js";
import { type DatabaseOutage, type OutageFleet, startOutages, TWO_OF_EACH_ROLE } from "../harness/outages.js";

const CASES = Number(process.env["OUTAGE_CASES"] ?? 200);
const FLEET_COUNT = Number(process.env["OUTAGE_FLEETS"] ?? 4);
const SEED = Number(process.env["OUTAGE_SEED"] ?? Date.now() % 1_000_000);

const CASES_PER_REPORT = 10;

const GENERATED_OUTAGE: fc.Arbitrary<DatabaseOutage> = fc.record({
  loss: fc.constantFrom<DatabaseLoss>("SIGINT", "SIGQUIT", "SIGKILL", "cut off", "failed over"),
  awayMs: fc.integer({ min: 1_000, max: 60_000 }),
  // Some runs end during the outage, others after it.
  runDurationsMs: fc.array(fc.integer({ min: 0, max: 75_000 }), { minLength: 1, maxLength: 8 }),
  after: fc.array(fc.integer({ min: 0, max: 2_000 }), { minLength: 1, maxLength: 8 }),
});

describe(`${CASES} generated outages of the database (OUTAGE_SEED=${SEED})`, function () {
  this.timeout(0);

  for (const [name, roles] of [
    ["one process", [ALL_ROLES]],
    ["six processes", TWO_OF_EACH_ROLE],
  ] as const) {
    describe(`with ${name}`, () => {
      const series = fc.sample(GENERATED_OUTAGE, { seed: SEED, numRuns: Math.ceil(CASES / 2) });
      const fleets: OutageFleet[] = [];
      before(async () => {
        while (fleets.length < Math.min(FLEET_COUNT, series.length)) fleets.push(await startOutages(roles));
      });
      after(() => Promise.all(fleets.map((outages) => outages.stop())));

      it("end no run of a live process, repeat none and lose none", async () => {
        const faults: unknown[] = [];
        const remaining = [...series.entries()];
        let [ended, runs] = [0, 0];
        const runRemainingOutages = async (outages: OutageFleet) => {
          while (faults.length === 0 && remaining.length > 0) {
            const [at, outage] = remaining.shift()!;
            const verdict = await outages.runOutage(outage);
            runs += verdict.runs;
            ended += 1;
            if (ended % CASES_PER_REPORT === 0 || ended === series.length)
              process.stdout.write(`      ${ended} outages, ${runs} runs\n`);
            const { doubled, missing } = verdict;
            if (doubled.length + missing.length + verdict.ended.length > 0)
              faults.push({ case: at + 1, outage, ...verdict });
          }
        };
        await Promise.all(fleets.map(runRemainingOutages));
        expect(faults).to.deep.equal([]);
        expect(fleets.flatMap((outages) => outages.crashes())).to.deep.equal([]);
      });
    });
  }
});
