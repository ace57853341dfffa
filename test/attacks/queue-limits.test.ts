import { expect } from "chai";
import fc from "fast-check";
import { QUEUED_RUNS_PER_APP_RESERVED } from "../../src/limits.js";
import { computeAppQueueLimit } from "../../src/operations/records/queue-limits.js";
import { startTestService, type TestService } from "../harness/service.js";

const BOUNDS = { maxRuns: 10_000, maxRunsPerApp: 1_000, maxPayloadBytes: 2 ** 30 };

describe("the queue", () => {
  it("has a minimum for every app, whatever others put into it, and counts in little memory", () => {
    fc.assert(
      fc.property(fc.array(fc.nat(40), { minLength: 1, maxLength: 400 }), (order) => {
        const queued = new Map<number, number>();
        let all = 0;
        for (const app of order) {
          for (let count = queued.get(app) ?? 0; count < computeAppQueueLimit(all, BOUNDS); count += 1) {
            queued.set(app, count + 1);
            all += 1;
          }
        }
        expect(Math.max(...queued.values())).to.be.at.most(BOUNDS.maxRunsPerApp);
        expect(all).to.be.at.most(BOUNDS.maxRuns + QUEUED_RUNS_PER_APP_RESERVED * queued.size);
        expect(computeAppQueueLimit(all, BOUNDS)).to.be.at.least(QUEUED_RUNS_PER_APP_RESERVED);
      }),
    );
  });

  describe("that ten apps have filled", () => {
    let service: TestService;
    let full: number;
    let neighbour: number;
    before(async () => {
      service = await startTestService({
        ROLES: "api",
        QUEUE_MAX: String(BOUNDS.maxRuns),
        QUEUE_MAX_PER_APP: String(BOUNDS.maxRunsPerApp),
      });
      const create = async (name: string): Promise<number> =>
        (await service.rest("POST", "/v1/admin/apps", { as: "admin", body: { name } })).body.app.id;
      const apps: number[] = [];
      for (let app = 0; app < 10; app += 1) apps.push(await create(`Hostile ${app}`));
      full = apps[0]!;
      neighbour = await create("Neighbour");
      for (const app of [full, neighbour]) {
        const fields = {
          name: "quick",
          code: "async function execute() {}",
          active: true,
          triggers: [{ trigger: "manual" }],
        };
        const path = `/v3/apps/${app}/actions`;
        expect((await service.rest("POST", path, { as: "admin", body: fields })).http).to.equal(201);
      }
      await service.db.query(
        `INSERT INTO run (app_id, action_id, copy, trigger, payload, state)
         SELECT unnest($1::bigint[]), 1, 'master', 'manual', '{}', 'queued' FROM generate_series(1, ${BOUNDS.maxRunsPerApp})`,
        [apps],
      );
    });
    after(() => service.stop());

    const run = async (app: number) =>
      (await service.rest("POST", `/v3/apps/${app}/actions/quick/run`, { as: "admin" })).http;

    it("rejects a run of theirs, and accepts one of another app", async () => {
      expect(await run(full)).to.equal(503);
      for (let call = 0; call < QUEUED_RUNS_PER_APP_RESERVED; call += 1) expect(await run(neighbour)).to.equal(202);
      expect(await run(neighbour)).to.equal(503);
    });

    it("rejects a call of a missing or inactive action for that reason, not because it is full", async () => {
      const fields = { name: "off", code: "async function execute() {}", triggers: [{ trigger: "manual" }] };
      const path = `/v3/apps/${full}/actions`;
      expect((await service.rest("POST", path, { as: "admin", body: fields })).http).to.equal(201);
      const refused = async (name: string) =>
        (await service.rest("POST", `${path}/${name}/run`, { as: "admin" })).body.status;
      expect([await refused("missing"), await refused("off"), await refused("quick")]).to.deep.equal([
        "ACTION_NOT_FOUND",
        "ACTION_INACTIVE",
        "OVERLOADED",
      ]);
    });
  });
});
