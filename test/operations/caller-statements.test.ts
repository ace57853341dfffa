/** Tests that slow statements of callers leave database connections for the lease and for other apps. */
import { expect } from "chai";
import { pino } from "pino";
import { DATABASE_POOL_CONNECTIONS, type Db } from "../../src/data/database.js";
import { AppUsers } from "../../src/operations/data-sources/app-users.js";
import type { StoredDataSource } from "../../src/operations/data-sources/data-source-rows.js";
import { EntryChangeTransactions } from "../../src/operations/data-sources/entry-changes.js";
import { Lease } from "../../src/operations/upkeep/lease.js";
import { connectedDatabase } from "../harness/connected-database.js";
import { countLockWaits } from "../harness/lock-waits.js";
import { startTestService } from "../harness/service.js";
import { until } from "../harness/until.js";

const settled = () => new Promise((resolve) => setImmediate(resolve));

it("the lease of a process is renewed while requests use all other connections", async () => {
  const database = await connectedDatabase(2);
  const { db } = database;
  const statementPool = (db as unknown as { statementPool: { connect(): Promise<{ release(): void }> } }).statementPool;
  const runners = [db.createQueryRunner(), db.createQueryRunner()];
  for (const runner of runners) await runner.connect();
  const clients = [await statementPool.connect(), await statementPool.connect()];
  const lease = new Lease({
    db,
    roles: new Set(["api"]),
    isOnlyProcess: false,
    onRenewal: async () => undefined,
    onDatabaseReached: () => undefined,
    log: pino({ level: "silent" }),
  });
  const holders = async () =>
    (await runners[0]!.query("SELECT id FROM instance")).map(({ id }: { id: string }) => id) as string[];
  try {
    await lease.start();
    expect(await holders()).to.include(lease.holder);
    await lease.stop();
    expect(await holders()).not.to.include(lease.holder);
  } finally {
    for (const client of clients) client.release();
    for (const runner of runners) await runner.release();
    await lease.stop();
    await database.stop();
  }
});

describe("writes of entries", () => {
  it("of one app use at most four connections, and those of all apps leave two", async () => {
    const open: { appId: number; end: () => void }[] = [];
    let appId = 0;
    const createChanges = () =>
      new EntryChangeTransactions({
        db: {
          transaction: () =>
            new Promise<void>((resolve) => {
              open.push({ appId, end: resolve });
            }),
        },
        messenger: { createCollector: async () => ({}) },
        sources: {},
      } as unknown as ConstructorParameters<typeof EntryChangeTransactions>[0]);
    const changes = createChanges();
    const ends: Promise<unknown>[] = [];
    const start = async (id: number, count: number) => {
      appId = id;
      const source = { appId: id, id: 1 } as StoredDataSource;
      const writer = { emitter: {} } as Parameters<EntryChangeTransactions["commit"]>[1];
      for (let number = 0; number < count; number += 1)
        ends.push(changes.commit(source, writer, async () => undefined));
      await settled();
    };
    await start(1, 20);
    expect(open.length).to.equal(4);
    for (let id = 2; id <= 20; id += 1) await start(id, 5);
    expect(open.length).to.be.within(5, DATABASE_POOL_CONNECTIONS - 2);
    expect(open.filter((each) => each.appId !== 1).length).to.be.at.least(3);
    for (let ended = 0; ended < ends.length; ended += 1) {
      open[ended]!.end();
      await settled();
    }
    await Promise.all(ends);
  });
});

describe("searches for callers use the connections for queries", () => {
  it("at a sign-in of an app user", async () => {
    const searchedApps: number[] = [];
    const appUsers = new AppUsers({
      db: { query: () => expect.fail("a statement used the general connections") } as unknown as Db,
      read: async (appId) => {
        searchedApps.push(appId);
        return [];
      },
      attempts: {
        runCountedAttempt: (_appId: number, _keys: unknown, _sender: unknown, attempt: () => Promise<boolean>) =>
          attempt(),
      } as unknown as ConstructorParameters<typeof AppUsers>[0]["attempts"],
      needsSecondFactor: async () => false,
    });
    const source = { appId: 3, id: 1, isUsers: true, hashedColumns: ["password"], hooks: [] };
    const request = appUsers.parseSignInRequest(source as unknown as StoredDataSource, {
      name: "anna",
      password: "secret",
    });
    const caller = { credentialId: 1 } as Parameters<AppUsers["signIn"]>[0];
    const error = await appUsers.signIn(caller, request).catch((reason: Error) => reason);
    expect(String(error)).to.contain("no user of the app");
    expect(searchedApps).to.deep.equal([3]);
  });

  it("at lists of media", async () => {
    const service = await startTestService({ ROLES: "api" });
    try {
      const paths = [`/v1/apps/${service.appId}/media/files`, `/v1/apps/${service.appId}/media`];
      const { sent, names } = await service.db.transaction(async (manager) => {
        await manager.query("LOCK TABLE media_file, media_folder IN ACCESS EXCLUSIVE MODE");
        const sent = paths.map((path) => service.rest("GET", path));
        await until(async () => (await countLockWaits(manager)) >= sent.length);
        const names: { name: string }[] = await manager.query(
          `SELECT DISTINCT application_name AS name FROM pg_stat_activity
            WHERE pid IN (SELECT pid FROM pg_locks WHERE NOT granted AND relation IN ('media_file'::regclass, 'media_folder'::regclass))`,
        );
        return { sent, names };
      });
      expect((await Promise.all(sent)).map(({ http }) => http)).to.deep.equal([200, 200]);
      expect(names.map(({ name }) => name)).to.deep.equal(["svc-app-actions entries"]);
    } finally {
      await service.stop();
    }
  });
});
