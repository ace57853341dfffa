import { expect } from "chai";
import { Client } from "pg";
import { type FreshDatabase, freshDatabase } from "./postgres.js";

describe("the test databases", () => {
  let first: FreshDatabase;
  let second: FreshDatabase;

  before(async () => {
    [first, second] = await Promise.all([freshDatabase(), freshDatabase()]);
  });

  after(async () => {
    await second.drop();
  });

  it("are migrated", async () => {
    const client = new Client({ connectionString: second.url });
    await client.connect();
    const found = await client.query("SELECT to_regclass('migration')::text AS name").finally(() => client.end());
    expect(found.rows).to.deep.equal([{ name: "migration" }]);
  });

  it("are separate: a table of one is not in the other", async () => {
    const clients = [first, second].map(({ url }) => new Client({ connectionString: url }));
    await Promise.all(clients.map((client) => client.connect()));
    await clients[0]!.query("CREATE TABLE only_here (id int)");
    const found = await clients[1]!.query("SELECT to_regclass('only_here') AS name");
    await Promise.all(clients.map((client) => client.end()));
    expect(found.rows[0].name).to.equal(null);
  });

  it("report an open connection when they are removed", async () => {
    const forgotten = new Client({ connectionString: first.url, application_name: "forgotten" });
    forgotten.on("error", () => {});
    await forgotten.connect();
    const refusal = await first.drop().then(
      () => "dropped",
      (error: Error) => error.message,
    );
    await forgotten.end().catch(() => {});
    expect(refusal).to.match(/^1 connections .* forgotten: /);
  });
});
