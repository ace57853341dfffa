/** Tests that concurrent requests cannot exceed the limits of an app: each request counts what the others have stored. */
import { expect } from "chai";
import { ACTIONS_PER_APP_MAX_BYTES, DATA_SOURCES_PER_APP } from "../../src/limits.js";
import { publishApp } from "../actions/support.js";
import { countLockWaits } from "../harness/lock-waits.js";
import type { Answer, TestService } from "../harness/service.js";
import { useSharedService } from "../harness/shared-service.js";
import { until } from "../harness/until.js";

const CODE = "async function execute() {}";
const LARGE_BYTES = 100_000;
const LARGE_CODE = `${CODE}//${"x".repeat(LARGE_BYTES)}`;
/** Bytes that are left in the app: enough for one more large action. */
const BYTES_LEFT = 150_000;

describe("limits of an app with concurrent requests", () => {
  let service: TestService;
  let path: string;

  before(async () => {
    service = await useSharedService("api");
    await publishApp(service);
    path = `/v3/apps/${service.appId}/actions`;
  });
  after(() => service.stop());

  /** Sends requests that all check the limit before one commits: a lock makes each wait at its last write, the audit entry. */
  async function send(...requests: (() => Promise<Answer>)[]): Promise<number[]> {
    const { sent } = await service.db.transaction(async (manager) => {
      await manager.query("LOCK TABLE audit_entry IN SHARE MODE");
      const sent = requests.map((request) => request());
      await until(async () => (await countLockWaits(manager)) >= requests.length);
      return { sent };
    });
    return (await Promise.all(sent)).map(({ http }) => http).sort((a, b) => a - b);
  }

  it("one more data source is created, and no second one", async () => {
    await service.db.query(
      `INSERT INTO data_source (app_id, organization_id, name)
       SELECT id, organization_id, 'source-' || n FROM app, generate_series(1, $2::int) n WHERE id = $1`,
      [service.appId, DATA_SOURCES_PER_APP - 1],
    );
    const create = (name: string) => () =>
      service.rest("POST", `/v1/apps/${service.appId}/data-sources`, { body: { name, columns: [] } });
    expect(await send(create("a"), create("b"))).to.deep.equal([201, 400]);
  });

  describe("on the bytes of its actions", () => {
    const create = (name: string, code: string) => service.rest("POST", path, { body: { name, code } });
    const created = async (name: string, code = CODE) => (await create(name, code)).body.action.id as number;
    const createLarge = () => create("competing", LARGE_CODE);

    before(() =>
      service.db.query(
        `INSERT INTO action (app_id, name, code, environment, action_version)
         SELECT $1, 'filler-' || n, repeat('x', 16000000), 'server', 'v2' FROM generate_series(1, 16) n`,
        [service.appId],
      ),
    );

    beforeEach(() =>
      service.db.query("DELETE FROM action WHERE app_id = $1 AND name IN ('competing', 'imported', 'rest')", [
        service.appId,
      ]),
    );

    /** Adds a legacy action that leaves only BYTES_LEFT bytes in the app. */
    const fill = () =>
      service.db.query(
        `INSERT INTO action (app_id, name, code, environment, action_version)
         SELECT $1, 'rest', repeat('x', $2::int - sum(octet_length(code) + 1000)::int - 1000), 'server', 'v2'
           FROM action WHERE app_id = $1`,
        [service.appId, ACTIONS_PER_APP_MAX_BYTES - BYTES_LEFT],
      );
    const expectOne = async (request: () => Promise<Answer>) => {
      await fill();
      const codes = await send(request, createLarge);
      expect([codes[0]! < 300, codes[1]]).to.deep.equal([true, 400]);
    };

    it("one action is created, and no second one", async () => {
      await expectOne(() => create("imported", LARGE_CODE));
    });

    it("an action is updated or another one is created", async () => {
      const id = await created("updated");
      await expectOne(() => service.rest("PUT", `${path}/${id}`, { body: { code: LARGE_CODE } }));
    });

    it("an action is published or another one is created", async () => {
      const id = await created("published", LARGE_CODE);
      await expectOne(() => service.rest("POST", `${path}/${id}/publish`));
    });

    it("an action is restored or another one is created", async () => {
      const id = await created("restored", LARGE_CODE);
      const versionId = (await service.rest("GET", `${path}/${id}/versions`)).body.versions[0].id as number;
      await service.rest("PUT", `${path}/${id}`, { body: { code: CODE } });
      await expectOne(() => service.rest("POST", `${path}/${id}/versions/${versionId}/restore`));
    });

    it("an action is imported or another one is created", async () => {
      const body = { format: "svc-app-actions/1", actions: [{ name: "imported", code: LARGE_CODE }] };
      await expectOne(() => service.rest("POST", `${path}/import`, { body }));
    });
  });
});
