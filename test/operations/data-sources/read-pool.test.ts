/** Tests expensive queries: each ends in time with a status, and other callers get a connection during these queries. */
import { expect } from "chai";
import { ActionError } from "../../../src/errors.js";
import { ReadPool } from "../../../src/operations/data-sources/read-pool.js";
import { answered, type Fixture, startFixture } from "./fixture.js";

const SLOW = "SELECT pg_sleep(60)";
/** Time limit of a query in milliseconds. No query of these tests reaches this limit, even on a slow machine. */
const LONG_MS = 60_000;

describe("connections for reads", () => {
  let fixture: Fixture;

  before(async () => {
    // The time limit is longer than the service's 5 s, so that expensive queries reach their other limits even on a slow machine.
    fixture = await startFixture({ timeoutMs: LONG_MS });
  });
  after(() => fixture.stop());

  const refusal = async (work: Promise<unknown>): Promise<ActionError> => {
    const error: unknown = await work.then(
      () => null,
      (reason: unknown) => reason,
    );
    expect(error).to.be.instanceOf(ActionError);
    return error as ActionError;
  };

  it("end a query that takes too long, with advice", async () => {
    const pool = new ReadPool(fixture.database.url, 1_000);
    const { status, message } = await refusal(pool.read(1, SLOW, []));
    expect(status).to.equal("REQUEST_INVALID");
    expect(message).to.match(
      /^the query took longer than 5 s; select fewer entries in "where", or add an index on its columns$/,
    );
    expect(await pool.read(1, "SELECT 1 AS one", [])).to.deep.equal([{ one: 1 }]);
    await pool.end();
  });

  it("serve another app while one has many slow queries", async () => {
    const pool = new ReadPool(fixture.database.url, LONG_MS);
    const holder = fixture.db.createQueryRunner();
    await holder.query("SELECT pg_advisory_lock(1)");
    const ended: string[] = [];
    const slow = Array.from({ length: 12 }, () =>
      pool.read(1, "SELECT pg_advisory_xact_lock_shared(1)", []).finally(() => ended.push("slow")),
    );
    await pool.read(2, "SELECT 1", []);
    expect(ended).to.deep.equal([]);
    await holder.query("SELECT pg_advisory_unlock(1)");
    await holder.release();
    await Promise.all(slow);
    await pool.end();
  });

  it("serve a third app while two have many slow queries", async () => {
    const pool = new ReadPool(fixture.database.url, LONG_MS);
    const holder = fixture.db.createQueryRunner();
    await holder.query("SELECT pg_advisory_lock(2)");
    const ended: string[] = [];
    const slow = [1, 2].flatMap((appId) =>
      Array.from({ length: 12 }, () =>
        pool.read(appId, "SELECT pg_advisory_xact_lock_shared(2)", []).finally(() => ended.push("slow")),
      ),
    );
    await pool.read(3, "SELECT 1", []);
    expect(ended).to.deep.equal([]);
    await holder.query("SELECT pg_advisory_unlock(2)");
    await holder.release();
    await Promise.all(slow);
    await pool.end();
  });

  it("reject queries of an app that has two hundred waiting, and of no other app", async () => {
    const reads = Array.from({ length: 210 }, () =>
      fixture.pool.read(1, "SELECT 1", []).catch((error: unknown) => error),
    );
    await fixture.pool.read(2, "SELECT 1", []);
    const refused = (await Promise.all(reads)).filter((answer) => answer instanceof ActionError);
    expect(refused.length).to.be.within(1, 10);
    expect(refused[0]).to.include({ status: "OVERLOADED" });
  });

  it("limit what a query sorts, groups and collects", async () => {
    const wide = "x".repeat(60_000);
    const key = await fixture.fill(
      "Wide",
      Array.from({ length: 150 }, (_, n) => ({ n, wide, k: 1 })),
    );
    const gathered = fixture.entryReader.find(
      key,
      { aggregate: [{ $group: { _id: null, all: { $push: "$wide" } } }] },
      fixture.readAccess(),
    );
    expect((await refusal(gathered)).message).to.equal(
      "the aggregate collects more than 8 MB in $push or in one result; select fewer entries or columns",
    );
    const page = answered(await fixture.entryReader.find(key, {}, fixture.readAccess()));
    expect(page.entries).to.have.length(
      Math.floor((8 * 1024 * 1024) / Buffer.byteLength(JSON.stringify(page.entries[5].data))),
    );
    const first = await fixture.entryReader.find(key, { cursor: true }, fixture.readAccess());
    const second = await fixture.entryReader.find(key, { cursor: first.cursor!.next }, fixture.readAccess());
    expect(first.entries.length + second.entries.length).to.equal(150);
    const join = { All: { dataSourceName: "Wide", on: { k: "k" } } };
    expect(
      (await refusal(fixture.entryReader.find(key, { join, attributes: [], limit: 2 }, fixture.readAccess()))).message,
    ).to.equal(
      "the joined entries of join.All exceed 8 MB on this page; request fewer entries, or set a smaller join.All.limit",
    );
  });

  it("plan ten stages of fifty names each, whose expressions would be endless if they were inserted into each other", async () => {
    const key = await fixture.fill("Staged", [{ f1: 1 }]);
    const names = Array.from({ length: 50 }, (_, n) => `f${n}`);
    const stage = { $project: Object.fromEntries(names.map((name) => [name, "$f1"])) };
    const grouped = {
      $group: { _id: null, ...Object.fromEntries(names.map((name) => [name, { $push: `$${name}` }])) },
    };
    const aggregate = [...Array.from({ length: 8 }, () => stage), grouped, stage];
    const { entries } = answered(await fixture.entryReader.find(key, { aggregate }, fixture.readAccess()));
    expect(entries[0].f49).to.deep.equal([1]);
    let nested: unknown = "$f1";
    for (let level = 0; level < 30; level += 1) nested = { $convertToNumber: nested };
    const work = fixture.entryReader.find(key, { aggregate: [{ $project: { x: nested } }] }, fixture.readAccess());
    expect((await refusal(work)).message).to.include('must be "$column" or a value (got an object)');
  });

  it("reject a query that would overload the planner, in its where or in all its parts together", async () => {
    const path = (n: number) => Array.from({ length: 10 }, (_, at) => `s${at}_${n}`).join(".");
    const where = (count: number) => ({ $or: Array.from({ length: count }, (_, n) => ({ [path(n)]: { $gt: n } })) });
    const key = await fixture.fill("Paths", [{}]);
    const refused = async (query: object) =>
      (await refusal(fixture.entryReader.find(key, query, fixture.readAccess()))).message;
    expect(await refused({ where: where(100) })).to.equal(
      "where is too large; use fewer conditions, and fewer and shorter paths",
    );
    const join = { dataSourceName: "Paths", on: { a: "b" }, required: true, where: where(12) };
    expect(await refused({ join: { A: join, B: join, C: join } })).to.equal(
      "the SQL statement of the query can have at most 100000 characters (got 157978); use fewer columns and conditions in the query",
    );
  });

  it("finish with expressions that take other engines forever", async () => {
    const key = await fixture.fill("Texts", [
      { a: "a".repeat(40) },
      { a: `${"a".repeat(5_000)}!` },
      { a: "x".repeat(100_000) },
    ]);
    for (const $regex of ["(a+)+$", "^(a|a)*$", "(a*)*b", "^(?:.*a){20}$", "(x+x+)+y", "^(([a-z])+.)+[A-Z]([a-z])+$"]) {
      const answer: unknown = await fixture.entryReader
        .find(key, { where: { a: { $regex } } }, fixture.readAccess())
        .catch((error: unknown) => error);
      if (answer instanceof Error) expect((answer as ActionError).status, $regex).to.equal("REQUEST_INVALID");
      else expect(answered(answer).entries, $regex).to.be.an("array");
    }
    for (const $regex of ["a{256}", "((a{100}){100}){100}", "(?:(?:a?){30}){40}", "a".repeat(201)]) {
      expect(
        (await refusal(fixture.entryReader.find(key, { where: { a: { $regex } } }, fixture.readAccess()))).status,
      ).to.equal("REQUEST_INVALID");
    }
  });
});
