/** Tests that the entries of all data sources of an app never exceed DATA_SOURCE_QUOTA_MB, also with concurrent requests. */
import { expect } from "chai";
import { rows } from "../../src/data/database.js";
import { countLockWaits } from "../harness/lock-waits.js";
import { type Answer, startTestService, type TestService } from "../harness/service.js";
import { until } from "../harness/until.js";

const QUOTA_BYTES = 2 ** 20;
const TOO_LARGE =
  /^the entries of one app can use at most 1048576 bytes \(got \d+ with this change\); remove entries first$/;

describe("the quota of an app's entries", () => {
  let service: TestService;
  let appId: number;
  let base: string;
  before(async () => {
    service = await startTestService({ ROLES: "api", DATA_SOURCE_QUOTA_MB: "1" });
  });
  after(() => service.stop());
  beforeEach(async () => {
    appId = (await service.rest("POST", "/v1/admin/apps", { as: "admin", body: { name: "full" } })).body.app.id;
    base = `/v1/apps/${appId}/data-sources`;
  });

  const entryOf = (bytes: number) => ({ a: "x".repeat(bytes - '{"a":""}'.length) });
  const request = (method: string, path: string, body?: object) =>
    service.rest(method, base + path, { as: "admin", ...(body && { body }) });
  const make = (name: string, entries: object[] = []) => request("POST", "", { name, entries });
  const insert = (name: string, bytes: number) =>
    request("POST", `/${name}/commit`, { entries: [{ data: entryOf(bytes) }] });
  const storedBytes = async (): Promise<number> => {
    const sql = "SELECT coalesce(sum(bytes), 0)::float8 AS bytes FROM data_source_entry WHERE app_id = $1";
    return (await rows<{ bytes: number }>(service.db, sql, [appId]))[0]!.bytes;
  };
  const expectTooLarge = ({ http, body }: Answer) => {
    expect([http, body.status], JSON.stringify(body)).to.deep.equal([400, "REQUEST_INVALID"]);
    expect(body.error).to.match(TOO_LARGE);
  };

  /** Fills the app up to the quota, except for `free` bytes. */
  async function fillQuota(free: number): Promise<void> {
    const half = (QUOTA_BYTES - free) / 2;
    expect((await make("Filler", [entryOf(half), entryOf(half)])).http).to.equal(201);
    expect(await storedBytes()).to.equal(QUOTA_BYTES - free);
  }

  for (const [title, added, free] of [
    ["large changes", 600_000, QUOTA_BYTES],
    ["small changes near the quota", 800, 1_000],
  ] as const) {
    it(`holds for two concurrent ${title} of two data sources`, async () => {
      if (free < QUOTA_BYTES) await fillQuota(free);
      await make("First");
      const { id } = (await make("Second")).body.dataSource;
      const sent = await service.db.transaction(async (manager) => {
        await manager.query("SELECT FROM data_source_tally WHERE data_source_id = $1 FOR UPDATE", [id]);
        const second = insert("Second", added);
        await until(async () => (await countLockWaits(manager)) === 1);
        expect((await insert("First", added)).http).to.equal(200);
        return { second };
      });
      expectTooLarge(await sent.second);
      expect(await storedBytes()).to.equal(QUOTA_BYTES - free + added);
    });
  }

  it("lets changes near the quota wait for each other, so that only those that fit succeed", async () => {
    await fillQuota(2_000);
    for (const name of ["First", "Second", "Third"]) await make(name);
    const sent = await service.db.transaction(async (manager) => {
      await manager.query("SELECT pg_advisory_xact_lock(hashtextextended('svc_entry_quota:' || $1::bigint, 0))", [
        appId,
      ]);
      let answerCount = 0;
      const answers = ["First", "Second", "Third"].map((name) =>
        insert(name, 800).finally(() => {
          answerCount += 1;
        }),
      );
      await until(async () => (await countLockWaits(manager)) + answerCount === answers.length);
      return { answers, answerCount };
    });
    const results = await Promise.all(sent.answers);
    expect(sent.answerCount).to.equal(0);
    expect(results.map(({ http }) => http).sort()).to.deep.equal([200, 200, 400]);
    expectTooLarge(results.find(({ http }) => http === 400)!);
  });

  it("holds for a data source that is created with entries", async () => {
    expect((await make("First", [entryOf(600_000)])).http).to.equal(201);
    expectTooLarge(await make("Second", [entryOf(600_000)]));
    expect((await request("GET", "/Second")).http).to.equal(404);
    expect((await make("Second", [entryOf(400_000)])).http).to.equal(201);
  });

  it("accepts changes that make the entries smaller, also above the quota", async () => {
    await fillQuota(2_000);
    await service.db.query("UPDATE data_source_tally SET bytes = bytes + 3000 WHERE app_id = $1", [appId]);
    expectTooLarge(await insert("Filler", 100));
    const { entries } = (await request("POST", "/Filler/query", {})).body;
    const { http } = await request("POST", "/Filler/commit", { delete: [entries[0].id] });
    expect(http).to.equal(200);
    expect((await insert("Filler", 100)).http).to.equal(200);
  });
});
