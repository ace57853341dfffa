/**
 * Measures reads and writes in turn in two data sources: one with a million entries, and one with a thousand. In the larger one, also measures
 * counts, and queries over HTTP.
 */

import autocannon from "autocannon";
import { expect } from "chai";
import fastify from "fastify";
import { Pool } from "pg";
import { rows } from "../../src/data/database.js";
import {
  DATA_SOURCE_COLUMNS_SQL,
  DataSourceRows,
  type StoredDataSource,
} from "../../src/operations/data-sources/data-source-rows.js";
import { EntryChangeTransactions } from "../../src/operations/data-sources/entry-changes.js";
import { EntryReader } from "../../src/operations/data-sources/entry-reads.js";
import { EntryRightsResolver } from "../../src/operations/data-sources/entry-rights.js";
import type { DataSourceKey } from "../../src/operations/data-sources/entry-rows.js";
import { EntryWrites } from "../../src/operations/data-sources/entry-writes.js";
import { HookMessageBuilder } from "../../src/operations/data-sources/hook-messages.js";
import { LogEventStore } from "../../src/operations/records/log-events.js";
import { QueueLimits } from "../../src/operations/records/queue-limits.js";
import { ReceivedDataLimiter } from "../../src/operations/records/received-data-limiter.js";
import { UNRESTRICTED_ENTRY_SCOPE } from "../../src/rules/entry-query/options.js";
import { serializeJson } from "../../src/rules/json-text.js";
import { type Fixture, startFixture } from "../operations/data-sources/fixture.js";

const MANY_ENTRIES = 1_000_000;
const FEW_ENTRIES = 1_000;
const ROUNDS = 1_500;

const p95 = (times: readonly number[]): number => [...times].sort((a, b) => a - b)[Math.floor(times.length * 0.95)]!;

async function measureMs(work: () => Promise<unknown>): Promise<number> {
  const from = performance.now();
  await work();
  return performance.now() - from;
}

/** Calls both functions alternately. Returns the p95 of both in milliseconds, and their ratio. */
async function measureInTurns(
  rounds: number,
  callFirst: (n: number) => Promise<unknown>,
  callSecond: (n: number) => Promise<unknown>,
) {
  const times: [number[], number[]] = [[], []];
  for (let n = 0; n < rounds + 50; n += 1) {
    const [first, second] = [await measureMs(() => callFirst(n)), await measureMs(() => callSecond(n))];
    // The first calls only warm up the service.
    if (n < 50) continue;
    times[0].push(first);
    times[1].push(second);
  }
  return { firstMs: p95(times[0]), secondMs: p95(times[1]), ratio: p95(times[0]) / p95(times[1]) };
}

describe("a data source with a million entries, compared with one with a thousand", function () {
  this.timeout(0);
  let fixture: Fixture;
  let many: DataSourceKey;
  let few: DataSourceKey;
  const firstIds = new Map<number, number>();

  async function fillTo(key: DataSourceKey, count: number, from = 0): Promise<void> {
    await fixture.db.query(
      `INSERT INTO data_source_entry (app_id, data_source_id, data)
       SELECT 1, $1, format('{"Name":"User %s","Email":"u%s@example.com","Age":%s,"City":"City %s","Notes":"%s","Address":{"zip":"%s"}}',
         n, n, n % 90, n % 500, repeat(md5(n::text), 4), n % 10000)::json FROM generate_series($3::int, $3::int + $2::int - 1) n`,
      [key.id, count, from],
    );
    const [row] = await fixture.db.query("SELECT min(id) AS id FROM data_source_entry WHERE data_source_id = $1", [
      key.id,
    ]);
    firstIds.set(key.id, row.id);
  }
  const idIn = (key: Pick<DataSourceKey, "id">, count: number, n: number) =>
    firstIds.get(key.id)! + ((n * 7_919) % count);
  const find = (key: DataSourceKey, query: object) => fixture.entryReader.find(key, query, fixture.readAccess());

  before(async () => {
    fixture = await startFixture();
    await fixture.db.query("SET statement_timeout = 0");
    few = await fixture.fill("Few", []);
    many = await fixture.fill("Many", []);
    await fillTo(few, FEW_ENTRIES);
    for (let done = 0; done < MANY_ENTRIES; done += MANY_ENTRIES / 10) await fillTo(many, MANY_ENTRIES / 10, done);
    const [row] = await fixture.db.query("SELECT min(id) AS id FROM data_source_entry WHERE data_source_id = $1", [
      many.id,
    ]);
    firstIds.set(many.id, row.id);
    await fixture.indexes.apply(few, ["Email"]);
    await fixture.indexes.apply(many, ["Email"]);
    await fixture.db.query("VACUUM ANALYZE data_source_entry");
  });
  after(() => fixture.stop());

  it("finds an entry by its ID in at most one and a half times the time", async () => {
    const byId = (key: DataSourceKey, count: number) => (n: number) =>
      fixture.entryReader.findById(key, idIn(key, count, n), fixture.readAccess());
    const figures = await measureInTurns(ROUNDS, byId(many, MANY_ENTRIES), byId(few, FEW_ENTRIES));
    console.log("      findById", figures);
    expect(figures.ratio).to.be.below(1.5);
  });

  it("inserts and updates an entry in at most one and a half times the time, with events, counts and audit log", async () => {
    const sourceOf = async (key: DataSourceKey) => {
      const sql = `SELECT ${DATA_SOURCE_COLUMNS_SQL} FROM data_source WHERE id = $1`;
      return (await rows<StoredDataSource>(fixture.db, sql, [key.id]))[0]!;
    };
    const receivedDataLimiter = new ReceivedDataLimiter({
      quotaBytes: 0,
      diskSpace: { level: () => "enough" } as never,
    });
    const notifications = { listen: () => undefined, onGap: () => undefined, isHealthy: () => true } as never;
    const changes = new EntryChangeTransactions({
      db: fixture.db,
      logEvents: new LogEventStore({
        db: fixture.db,
        queueLimits: new QueueLimits(fixture.db, {
          maxRuns: 1_000_000,
          maxRunsPerApp: 100_000,
          maxPayloadBytes: 2 ** 32,
        }),
        receivedDataLimiter,
      }),
      sources: new DataSourceRows({ db: fixture.db, notifications }),
      messenger: new HookMessageBuilder({ hookMessageStore: {} as never, receivedDataLimiter }),
      quotaBytes: 0,
    });
    const writes = new EntryWrites({ changes, receivedDataLimiter });
    const rights = await new EntryRightsResolver({ appUsers: {} as never }).resolve({ caller: null, isTrusted: true });
    const [large, small] = [await sourceOf(many), await sourceOf(few)];
    const insert = (source: StoredDataSource) => (n: number) =>
      writes.insert(rights, source, { Name: `New ${n}`, Email: `new${n}@example.com`, Age: n % 90 });
    const inserts = await measureInTurns(ROUNDS, insert(large), insert(small));
    console.log("      insert", inserts);
    const update = (source: StoredDataSource, count: number) => (n: number) =>
      writes.update(rights, source, { id: idIn(source, count, n) }, { Age: n % 90 });
    const updates = await measureInTurns(ROUNDS, update(large, MANY_ENTRIES), update(small, FEW_ENTRIES));
    console.log("      update", updates);
    expect(inserts.ratio).to.be.below(1.5);
    expect(updates.ratio).to.be.below(1.5);
  });

  it("finds an entry by an indexed column in at most one and a half times the time", async () => {
    const findByEmail = (key: DataSourceKey, count: number) => (n: number) =>
      find(key, { where: { Email: `u${(n * 7_919) % count}@example.com` }, limit: 1 });
    const figures = await measureInTurns(ROUNDS, findByEmail(many, MANY_ENTRIES), findByEmail(few, FEW_ENTRIES));
    console.log("      find by an indexed column", figures);
    expect(figures.ratio).to.be.below(1.5);
  });

  it("reads a page by cursor at its end in at most one and a half times the time of one at its start", async () => {
    const last = await find(many, { order: [["order", "DESC"]], limit: 1, offset: 200, cursor: null });
    const end = (last.entries[0] as { order: number; id: number }).order;
    const start = await find(many, { limit: 100, cursor: true });
    const content = JSON.parse(Buffer.from(start.cursor!.next!, "base64url").toString());
    const late = Buffer.from(JSON.stringify({ ...content, k: [String(end), "1"] })).toString("base64url");
    const page = (cursor: string | true) => () => find(many, { limit: 100, cursor });
    const figures = await measureInTurns(300, page(late), page(start.cursor!.next!));
    console.log("      a page by cursor, end and start", figures);
    expect((await find(many, { limit: 100, cursor: late })).entries).to.have.length(100);
    expect(figures.ratio).to.be.below(1.5);
  });

  it("counts entries in less than 50 ms, or estimates their number in less than 200 ms", async () => {
    const cases: [where: object | null, truth: number][] = [
      [null, MANY_ENTRIES],
      [{ Email: "u5@example.com" }, 1],
      [{ Age: 5 }, Math.ceil(MANY_ENTRIES / 90)],
      [{ City: "City 7" }, MANY_ENTRIES / 500],
      [{ Name: { $iLike: "user 99" } }, 11_110],
      [{ Age: { $lt: 45 } }, MANY_ENTRIES / 2],
    ];
    for (const [where, expectedCount] of cases) {
      const times: number[] = [];
      let counted = { total: 0 } as { total: number; about?: true };
      for (let n = 0; n < 20; n += 1)
        times.push(
          await measureMs(
            async () => (counted = await fixture.entryReader.count(many, where, UNRESTRICTED_ENTRY_SCOPE)),
          ),
        );
      console.log("      count", JSON.stringify(where), counted, `p95 ${p95(times).toFixed(1)} ms`);
      if (!counted.about) expect(p95(times)).to.be.below(50);
      if (!counted.about) expect(counted.total).to.equal(expectedCount);
      else if (expectedCount >= MANY_ENTRIES / 10) expect(counted.total / expectedCount).to.be.within(0.5, 2);
      expect(p95(times)).to.be.below(200);
    }
  });

  it("answers queries for ten entries over HTTP at half the rate of a bare handler with the same SQL, or faster", async () => {
    const pool = new Pool({ connectionString: fixture.database.url, max: 6 });
    const app = fastify();
    const query = { where: { Age: { $gte: 0 } }, limit: 10 };
    let recorded: { sql: string; values: readonly unknown[] } | undefined;
    const recordingReader = new EntryReader({
      read: (appId, sql, values) => {
        recorded = { sql, values };
        return fixture.pool.read(appId, sql, values);
      },
    });
    await recordingReader.find(many, query, fixture.readAccess());
    app.get("/bare", async (_, reply) => {
      const { rows } = await pool.query(recorded!.sql, [...recorded!.values]);
      return reply
        .type("application/json")
        .send(JSON.stringify({ entries: rows.map((row) => ({ ...row, data: JSON.parse(row.data) })) }));
    });
    app.get("/ours", async (_, reply) => reply.type("application/json").send(serializeJson(await find(many, query))));
    const address = await app.listen({ port: 0, host: "127.0.0.1" });
    const rates: Record<string, number> = { "/bare": 0, "/ours": 0 };
    try {
      for (let round = 0; round < 3; round += 1) {
        for (const path of ["/bare", "/ours"]) {
          const result = await autocannon({ url: address + path, connections: 3, duration: 4 });
          rates[path] = Math.max(rates[path]!, result.requests.average);
        }
      }
    } finally {
      await app.close();
      await pool.end();
    }
    console.log("      find of 10", rates, (rates["/ours"]! / rates["/bare"]!).toFixed(2));
    expect(rates["/ours"]! / rates["/bare"]!).to.be.at.least(0.5);
  });
});
