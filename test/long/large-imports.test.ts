/**
 * Tests commits and imports for which the database needs seconds. test/attacks/refused-bodies.test.ts tests the limits of smaller bodies.
 */
import { expect } from "chai";
import { startTestService, type TestService } from "../harness/service.js";

describe("large commits and imports", () => {
  let service: TestService;
  let base: string;
  before(async () => {
    service = await startTestService({ ROLES: "api", INTAKE_QUOTA_MB: "0" });
    base = `/v1/apps/${service.appId}/data-sources`;
    const rules = [{ type: ["insert"], allow: "all", enabled: true }];
    await service.rest("POST", base, { body: { name: "List", accessRules: rules } });
  });
  after(() => service.stop());

  const count = async () => {
    const { body } = await service.rest("POST", `${base}/List/query?by=name`, {
      body: { limit: 1, includePagination: true },
    });
    return body.pagination.total;
  };
  const entries = (many: number, size: number) =>
    Array.from({ length: many }, (_, n) => ({ data: { n, text: `"[{,é\\${n}`.padEnd(size, "x") } }));

  it("accept 100,000 entries in a body above 1 MB, all of them or none", async () => {
    const commit = { entries: entries(100_000, 60), append: true };
    const { http, body } = await service.rest("POST", `${base}/List/commit?by=name`, { body: commit });
    expect([http, body]).to.deep.equal([200, { inserted: 100_000, updated: 0, deleted: 0 }]);
    expect(await count()).to.equal(100_000);
    const wrong = { entries: [...entries(50_000, 60), { data: 5 }] };
    const refused = await service.rest("POST", `${base}/List/commit?by=name`, { body: wrong });
    expect(refused.http).to.equal(400);
    expect(await count()).to.equal(100_000);
  }).timeout(120_000);

  it("accept a CSV file of 70 MB", async () => {
    const csv = `text\n${`${"x".repeat(1_000)}\n`.repeat(70_000)}`;
    const headers = { "content-type": "text/csv" };
    const { http, body } = await service.rest("POST", `${base}/List/import?by=name`, { body: csv, headers });
    expect([http, body.inserted]).to.deep.equal([200, 70_000]);
  }).timeout(120_000);
});
