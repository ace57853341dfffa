/** That our SQL answers as sift and mingo do on documents and queries that nobody wrote. The long test asks many more. */
import { expect } from "chai";
import { Client } from "pg";
import { type FreshDatabase, freshDatabase } from "../../harness/postgres.js";
import { compareAggregates, compareWheres } from "./comparison.js";

describe("the query language beside its oracles", () => {
  let database: FreshDatabase;
  let client: Client;

  before(async () => {
    database = await freshDatabase();
    client = new Client({ connectionString: database.url });
    await client.connect();
  });
  after(async () => {
    await client.end();
    await database.drop();
  });

  it("finds what sift finds", async () => {
    const { wrong, queries } = await compareWheres(client, 500, 14);
    expect(queries).to.equal(500);
    expect(wrong).to.deep.equal([]);
  });

  it("aggregates as mingo does", async () => {
    const { wrong } = await compareAggregates(client, 200, 14);
    expect(wrong).to.deep.equal([]);
  });
});
