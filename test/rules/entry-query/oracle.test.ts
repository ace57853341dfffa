/** Checks that the service's SQL returns the same as sift and mingo for generated documents and queries. The long test runs many more. */
import { expect } from "chai";
import type { Client } from "pg";
import { type ConnectedClient, connectedClient } from "../../harness/connected-database.js";
import { compareAggregates, compareWheres } from "./comparison.js";

describe("the query language beside its references", () => {
  let database: ConnectedClient;
  let client: Client;

  before(async () => {
    database = await connectedClient();
    ({ client } = database);
  });
  after(() => database.stop());

  it("finds the same as sift", async () => {
    const { wrong, queries } = await compareWheres(client, 500, 14);
    expect(queries).to.equal(500);
    expect(wrong).to.deep.equal([]);
  });

  it("aggregates the same as mingo", async () => {
    const { wrong } = await compareAggregates(client, 200, 14);
    expect(wrong).to.deep.equal([]);
  });
});
