/** Tests an outage of the database that lasts longer than the lease of every process. test/long/outages.test.ts generates other outages. */
import { expect } from "chai";
import { ALL_ROLES } from "../harness/fleet.js";
import { type OutageFleet, startOutages } from "../harness/outages.js";

/** Duration of the outage in milliseconds, longer than a lease of 12 s. */
const AWAY_MS = 16_000;

describe("an outage of the database that lasts longer than a lease", () => {
  for (const [name, roles] of [
    ["one process", [ALL_ROLES]],
    ["two processes", [ALL_ROLES, ALL_ROLES]],
  ] as const) {
    describe(`with ${name}`, () => {
      let outages: OutageFleet;
      before(async () => {
        outages = await startOutages(roles);
      });
      after(() => outages.stop());

      it("ends no run of a live process, and repeats none", async () => {
        const verdict = await outages.runOutage({
          loss: "SIGINT",
          awayMs: AWAY_MS,
          runDurationsMs: [1_000, 8_000, 14_000, 18_000, 25_000],
          after: [0, 100, 200, 300, 400, 500, 600, 700],
        });
        expect(verdict).to.deep.equal({ runs: 13, doubled: [], missing: [], ended: [] });
        expect(outages.crashes()).to.deep.equal([]);
      });
    });
  }
});
