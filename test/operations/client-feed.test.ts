import { createHash } from "node:crypto";
import { expect } from "chai";
import { pino } from "pino";
import type { Db } from "../../src/data/database.js";
import { BROWSER_HOLDER_ID } from "../../src/data/run.js";
import type { DatabaseNotifications } from "../../src/engine/notifications.js";
import { type ClientAction, ClientActions } from "../../src/operations/client/client-actions.js";
import { type ClientActionUpdate, createClientActionFeed } from "../../src/operations/client/client-feed.js";
import { insertRunByActionId } from "../../src/operations/runs/run-inserts.js";
import { RunRepository } from "../../src/operations/runs/run-repository.js";
import { compileActionScript } from "../../src/rules/compile-script.js";
import { clientActions } from "../api/client-actions.js";
import { longTest } from "../harness/samples.js";
import { startTestService, type TestService } from "../harness/service.js";

const ignoreEnd = () => undefined;

/** Creates a feed without a database. The test resolves each read of the list in `reads`. */
function createFeed() {
  const reads: ((actions: ClientAction[]) => void)[] = [];
  const list = () => new Promise<ClientAction[]>((resolve) => reads.push(resolve));
  const feed = createClientActionFeed({
    clientActions: { list } as unknown as ClientActions,
    notifications: { listen: () => ignoreEnd, onGap: () => ignoreEnd } as unknown as DatabaseNotifications,
    log: pino({ level: "silent" }),
  });
  return { feed, reads };
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

describe("subscribers to client actions", () => {
  const action: ClientAction = { id: 1, integrity: "sha256-", triggers: [], assets: [] };

  it("share one read of the app's actions, also if each of them leaves before it ends", async () => {
    const { feed, reads } = createFeed();
    for (let count = 0; count < 20; count += 1) {
      feed.follow(7, "production").listen(() => undefined, ignoreEnd)();
      await settled();
    }
    expect(reads.length).to.equal(1);
    const received: ClientActionUpdate[] = [];
    const stop = feed.follow(7, "production").listen((change) => received.push(change), ignoreEnd);
    reads[0]!([action]);
    await settled();
    expect(reads.length).to.equal(1);
    expect(received).to.deep.equal([{ reset: true, actions: [action], removed: [] }]);
    stop();
    await settled();
    feed.follow(7, "production").listen(() => undefined, ignoreEnd)();
    await settled();
    expect(reads.length, "a read after all subscribers left").to.equal(2);
  });

  it("of drafts and of live versions do not share a read", async () => {
    const { feed, reads } = createFeed();
    for (const copy of ["master", "production"] as const) feed.follow(7, copy).listen(() => undefined, ignoreEnd);
    await settled();
    expect(reads.length).to.equal(2);
  });
});

describe("the list of client actions", () => {
  let service: TestService;
  before(async () => {
    service = await startTestService({ ROLES: "api" });
  });
  after(() => service.stop());
  const { create, update } = clientActions(() => service);

  /** Wraps the database: for each query, appends the total size of the code in its result to `statements`. */
  function createCountingDatabase(statements: number[]): Db {
    const query = async (sql: string, parameters: unknown[]) => {
      const found: { code?: string }[] = await service.db.query(sql, parameters);
      statements.push(found.reduce((sum, { code }) => sum + (code?.length ?? 0), 0));
      return found;
    };
    return { query } as unknown as Db;
  }

  longTest("reads each code once until the action changes, and few at a time", async () => {
    const long = (mark: number) => `async function execute() { return ${mark}; } // ${"x".repeat(900_000)}`;
    const ids: number[] = [];
    for (let mark = 0; mark < 5; mark += 1) ids.push(await create({ code: long(mark) }));
    await create({ code: long(9), triggers: [{ trigger: "manual" }] });
    const statements: number[] = [];
    const read = new ClientActions({
      db: createCountingDatabase(statements),
      addAssetUrls: () => [],
      findAppUser: async () => null,
    });
    const list = async () => {
      statements.length = 0;
      return read.list(service.appId, "master");
    };
    const first = await list();
    expect(first.map(({ id }) => id)).to.deep.equal(ids);
    const [row] = await service.db.query("SELECT id, name, code FROM action WHERE id = $1", [ids[2]]);
    const hash = createHash("sha256").update(compileActionScript(row)).digest("base64");
    expect(first[2]!.integrity).to.equal(`sha256-${hash}`);
    expect(Math.max(...statements)).to.be.below(2 * 1024 * 1024);
    expect(statements.reduce((sum, size) => sum + size)).to.equal(5 * long(0).length);

    expect(await list()).to.deep.equal(first);
    expect(statements).to.deep.equal([0]);

    const repository = new RunRepository(service.db);
    const run = {
      appId: service.appId,
      actionId: ids[0]!,
      copy: "master",
      trigger: "analytics",
      payload: "{}",
    } as const;
    const nobody = { personId: null, credentialId: null, idempotencyKey: null };
    const { id } = await insertRunByActionId(service.db, { ...run, ...nobody }, BROWSER_HOLDER_ID);
    const end = { id, holder: BROWSER_HOLDER_ID, state: "completed", data: { text: "{}", payloadAt: null } } as const;
    expect(await repository.finish(end)).to.equal(true);
    const [{ ran }] = await service.db.query("SELECT last_run_at IS NOT NULL AS ran FROM action WHERE id = $1", [
      ids[0],
    ]);
    expect(ran).to.equal(true);
    expect(await list(), "after a run in a browser").to.deep.equal(first);
    expect(statements, "after a run in a browser").to.deep.equal([0]);

    await update(ids[1]!, { code: long(7) });
    const changed = await list();
    expect(statements).to.deep.equal([0, long(7).length]);
    expect(changed.map(({ id }) => id)).to.deep.equal(ids);
    expect(changed.filter(({ integrity }, at) => integrity !== first[at]!.integrity)).to.have.length(1);
    await service.db.query("UPDATE action SET active = false WHERE id = $1", [ids[0]]);
    expect((await list()).map(({ id }) => id)).to.deep.equal(ids.slice(1));
    expect(statements).to.deep.equal([0]);
  });
});
