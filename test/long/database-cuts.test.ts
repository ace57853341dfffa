import { expect } from "chai";
import { cutDatabaseConnections } from "../harness/database-cuts.js";
import { expectServiceUnharmed } from "../harness/database-cuts-verdict.js";

describe("a service whose connections to the database are cut at random bytes", () => {
  it("survives, answers each request with its result, a failed run or 503, and logs every run once", async () => {
    const outcome = await cutDatabaseConnections(200);
    expect(outcome.cuts).to.be.at.least(200);
    expectServiceUnharmed(outcome);
  });
}).timeout(180_000);
