/** Tests that requests which wait for the lock of one app leave database connections for other apps. */
import { expect } from "chai";
import type { EntityManager } from "typeorm";
import { DATABASE_POOL_CONNECTIONS, rows } from "../../src/data/database.js";
import { runEntryChangeInSlot, transactWithAppLock } from "../../src/operations/settings/app-lock.js";
import { type ConnectedDatabase, connectedDatabase } from "../harness/connected-database.js";
import { countLockWaits, untilLockWait } from "../harness/lock-waits.js";
import type { TestService } from "../harness/service.js";
import { useSharedService } from "../harness/shared-service.js";
import { until } from "../harness/until.js";

/** Maximum number of transactions of one app that wait for its lock in the database. */
const WAITING_IN_DATABASE = 2;
/** Maximum number of further transactions of one app that wait in the process. */
const WAITING_IN_MEMORY = 100;

const LOCK_APP = "SELECT FROM app WHERE id = $1 FOR NO KEY UPDATE";

describe("the lock of an app", () => {
  describe("in a service", () => {
    let service: TestService;
    let other: TestService;
    before(async () => {
      service = await useSharedService("api");
      other = await useSharedService("api");
    });
    after(async () => {
      await other.stop();
      await service.stop();
    });

    it("holds up no other app, however many requests wait for it", async () => {
      const path = (appId: number) => `/v1/apps/${appId}/settings`;
      const { sent, answers } = await service.db.transaction(async (manager) => {
        await rows(manager, LOCK_APP, [service.appId]);
        const sent = Array.from({ length: DATABASE_POOL_CONNECTIONS + 2 }, (_, at) =>
          service.rest("POST", path(service.appId), { body: { title: `title ${at}` } }),
        );
        await until(async () => (await countLockWaits(manager)) >= WAITING_IN_DATABASE);
        const read = await other.rest("GET", path(other.appId));
        const written = await other.rest("POST", path(other.appId), { body: { title: "other" } });
        return { sent, answers: [read, written] };
      });
      expect(answers.map(({ http, body }) => [http, body.error])).to.deep.equal([
        [200, undefined],
        [200, undefined],
      ]);
      for (const { http, body } of await Promise.all(sent)) expect([http, body.error]).to.deep.equal([200, undefined]);
    });
  });

  describe("in transactions", () => {
    let database: ConnectedDatabase;
    let locked: number;
    let free: number;
    before(async () => {
      database = await connectedDatabase(DATABASE_POOL_CONNECTIONS);
      const sql = `WITH made AS (INSERT INTO organization (name) VALUES ('test') RETURNING id)
        INSERT INTO app (organization_id, name) SELECT id, 'app ' || n FROM made, generate_series(1, 2) n RETURNING id`;
      [locked, free] = (await rows<{ id: number }>(database.db, sql)).map(({ id }) => id) as [number, number];
    });
    after(() => database.stop());

    /** Locks the first app in a transaction, then runs `work` with the manager of this transaction. Returns the result of `work`. */
    const whileLocked = <T>(work: (manager: EntityManager) => Promise<T>): Promise<T> =>
      database.db.transaction(async (manager) => {
        await rows(manager, LOCK_APP, [locked]);
        return work(manager);
      });

    it("is waited for by a limited number of transactions, and further ones are rejected", async () => {
      const { waiting } = await whileLocked(async (manager) => {
        const transact = (appId: number) => transactWithAppLock(database.db, appId, async () => appId);
        const waiting = Array.from({ length: WAITING_IN_DATABASE + WAITING_IN_MEMORY }, () => transact(locked));
        const refusal = await transact(locked).catch((error: Error) => error);
        expect(refusal).to.include({ status: "OVERLOADED" });
        expect(String(refusal)).to.contain("too many requests wait to change this app");
        await untilLockWait(manager, Promise.all(waiting), WAITING_IN_DATABASE);
        expect(await transact(free)).to.equal(free);
        return { waiting };
      });
      expect(await Promise.all(waiting)).to.deep.equal(waiting.map(() => locked));
    });

    it("leaves connections for writes of entries of the same app", async () => {
      const { waiting } = await whileLocked(async (manager) => {
        const waiting = Array.from({ length: DATABASE_POOL_CONNECTIONS }, () =>
          transactWithAppLock(database.db, locked, async () => undefined),
        );
        await untilLockWait(manager, Promise.all(waiting), WAITING_IN_DATABASE);
        expect(await runEntryChangeInSlot(database.db, locked, async () => "written")).to.equal("written");
        return { waiting };
      });
      await Promise.all(waiting);
    });

    it("is free again after a transaction that fails", async () => {
      const fail = () =>
        transactWithAppLock(database.db, locked, async () => {
          throw new Error("stopped");
        }).catch((error: Error) => error.message);
      const failures = await Promise.all(Array.from({ length: DATABASE_POOL_CONNECTIONS }, fail));
      expect(new Set(failures)).to.deep.equal(new Set(["stopped"]));
      expect(await transactWithAppLock(database.db, locked, async () => "done")).to.equal("done");
    });
  });
});
