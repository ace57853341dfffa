/** Checks that no query makes the database use much memory. The test reads the peak memory of the database's processes in /proc. */
import { readFileSync } from "node:fs";
import { expect } from "chai";
import { rows } from "../../src/data/database.js";
import { ActionError } from "../../src/errors.js";
import type { DataSourceKey } from "../../src/operations/data-sources/entry-rows.js";
import { sampleOf } from "../harness/samples.js";
import { type Fixture, startFixture } from "../operations/data-sources/fixture.js";

const MB = 1024 * 1024;
const CONNECTION_MEMORY_MAX_BYTES = 350 * MB;

const names = Array.from({ length: 50 }, (_, n) => `f${n}`);
const mapNames = <T>(value: (name: string, n: number) => T) =>
  Object.fromEntries(names.map((name, n) => [name, value(name, n)]));
const deepPath = (n: number) => Array.from({ length: 10 }, (_, at) => `s${at}_${n}`).join(".");
const whole = { $project: mapNames(() => "$big") };
const grouped = { $group: { _id: mapNames(() => "$f1") } };

const QUERIES: Record<string, object> = {
  "stages that multiply a value": {
    aggregate: [whole, grouped, { $project: mapNames(() => "$_id") }, { $group: { _id: mapNames(() => "$f1") } }],
  },
  "ten stages of fifty names": {
    aggregate: Array.from({ length: 10 }, () => ({ $project: mapNames((name) => `$${name}`) })),
  },
  "a million small values gathered": {
    aggregate: [{ $group: { _id: null, ...mapNames(() => ({ $push: { $literal: 1 } })) } }],
  },
  "large values gathered": { aggregate: [{ $group: { _id: null, all: { $push: "$big" } } }] },
  "the first of many groups": { aggregate: [{ $group: { _id: "$n", ...mapNames(() => ({ $first: "$big" })) } }] },
  "documents sorted": { aggregate: [whole, { $sort: { f0: 1, f1: -1 } }, { $limit: 5 }] },
  "an order of large values": {
    order: [
      ["big", "DESC"],
      ["n", "ASC"],
      ["big.a", "ASC"],
    ],
  },
  "a hundred paths of ten names": {
    where: { $or: Array.from({ length: 100 }, (_, n) => ({ [deepPath(n)]: { $gt: n } })) },
  },
  "forty paths of five names": {
    where: { $or: Array.from({ length: 40 }, (_, n) => ({ [deepPath(n).split(".").slice(5).join(".")]: { $gt: n } })) },
  },
  "a list of ten thousand": { where: { n: { $in: Array.from({ length: 10_000 }, (_, n) => n) } } },
  "a join of all with all": { join: { J: { dataSourceName: "Large", on: { k: "k" }, limit: 1_000 } } },
  "five required joins": {
    join: Object.fromEntries(
      names.slice(0, 5).map((name) => [name, { dataSourceName: "Large", on: { k: "k" }, required: true }]),
    ),
  },
  "a hundred regular expressions": {
    where: {
      $or: Array.from({ length: 100 }, (_, n) => ({
        text: { $regex: `(?:[a-z${n}é]{1,30}[^${n}]?){1,25}$`, $options: "i" },
      })),
    },
  },
  "counts within counts": {
    where: { $or: Array.from({ length: 40 }, (_, n) => ({ text: { $regex: `(?:(?:a|${n}|[b-y]){0,31}x?){0,15}z` } })) },
  },
};

describe("the memory of the database", () => {
  let fixture: Fixture;
  let key: DataSourceKey;

  before(async () => {
    fixture = await startFixture({ timeoutMs: 1_000 });
    const big = (n: number) => ({ a: `${n}`.padEnd(900_000, "lorem ipsum ") });
    key = await fixture.fill(
      "Large",
      Array.from({ length: 12 }, (_, n) => ({ n, k: 1, text: "abcdefghij".repeat(20), big: big(n) })),
    );
    await fixture.db.query(
      `INSERT INTO data_source_entry (app_id, data_source_id, data) SELECT 1, $1, format('{"n":%s,"k":1,"text":"abc abc abc %s"}', n, n)::json
         FROM generate_series(1, 4000) n`,
      [key.id],
    );
  });
  after(() => fixture.stop());

  /** Returns the peak memory in bytes of the database process that has used the most. Counts only connections that read entries. */
  async function readPeakMemory(): Promise<number> {
    const found = await rows<{ pid: number }>(
      fixture.db,
      "SELECT pid FROM pg_stat_activity WHERE application_name = 'svc-app-actions entries' AND datname = current_database()",
    );
    const peaks = found.map(({ pid }) => /VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))![1]);
    return Math.max(0, ...peaks.map((peak) => Number(peak) * 1024));
  }

  for (const [name, query] of sampleOf(Object.entries(QUERIES), 1, 3)) {
    it(`is not filled by ${name}`, async () => {
      const answer: unknown = await fixture.entryReader
        .find(key, query, fixture.readAccess())
        .catch((error: unknown) => error);
      if (answer instanceof Error) {
        expect(answer).to.be.instanceOf(ActionError);
        expect((answer as ActionError).status).to.equal("REQUEST_INVALID");
      }
      const peak = await readPeakMemory();
      if (process.env["SHOW"])
        console.log(`${Math.round(peak / MB)} MB`, answer instanceof Error ? answer.message : "answered");
      expect(peak).to.be.within(1, CONNECTION_MEMORY_MAX_BYTES);
    });
  }
});
