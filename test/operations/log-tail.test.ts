import { setTimeout as delay } from "node:timers/promises";
import { expect } from "chai";
import { pino } from "pino";
import { createDatabaseNotifications } from "../../src/engine/notifications.js";
import type { ActionError } from "../../src/errors.js";
import { ExecutionLogs, LOG_CHANNEL, type LogEntry } from "../../src/operations/records/execution-logs.js";
import { createLogTail, type LogTailFilter } from "../../src/operations/records/log-tail.js";
import { connectedDatabase } from "../harness/connected-database.js";
import { countLockWaits } from "../harness/lock-waits.js";
import { startTestService, type TestService } from "../harness/service.js";
import { until } from "../harness/until.js";

describe("followers of execution logs", () => {
  let service: TestService;
  before(async () => {
    service = await startTestService({ ROLES: "api" });
  });
  after(() => service.stop());

  it("lose no entry whose reading fails, and get them in order", async () => {
    const client = service.socket();
    const entries = client.iterate<{ actionLogAdded: { data: { payload: number } } }>({
      query: `subscription { actionLogAdded(appId: ${service.appId}) { data } }`,
    });
    const first = entries.next();
    const rollbacks = async () =>
      Number(
        (
          await service.db.query("SELECT xact_rollback AS n FROM pg_stat_database WHERE datname = current_database()")
        )[0].n,
      );
    let runId = 1_000_000;
    const write = (payload: number, then = "") =>
      service.db.transaction(async (manager) => {
        runId += 1;
        const [{ id }] = await manager.query(
          "INSERT INTO execution_log (app_id, task_id, run_id, type, data) VALUES ($1, 1, $2, 'app.task.completed', $3) RETURNING id",
          [service.appId, runId, { taskId: 1, payload }],
        );
        await manager.query("SELECT pg_notify($1, $2)", [LOG_CHANNEL, `${service.appId}:${id}:0`]);
        if (then) await manager.query(then);
      });
    // The subscription receives no entries from before its start, so the test writes entries until one arrives.
    let received = false;
    void first.then(() => {
      received = true;
    });
    await until(async () => {
      if (!received) await write(0);
      return received;
    });
    const before = await rollbacks();
    await write(1, "ALTER TABLE execution_log RENAME TO execution_log_away");
    await until(async () => (await rollbacks()) > before);
    await service.db.query("ALTER TABLE execution_log_away RENAME TO execution_log");
    await write(2);
    const seen: number[] = [];
    for await (const { data } of entries) {
      const { payload } = data!.actionLogAdded.data;
      if (payload > 0) seen.push(payload);
      if (payload === 2) break;
    }
    expect(seen).to.deep.equal([1, 2]);
    await client.dispose();
  });
});

describe("an entry that is written before the first follower listens", () => {
  it("is sent once, although its notification arrives too", async () => {
    const { db, url, stop } = await connectedDatabase(4);
    const log = pino({ level: "silent" });
    const notifications = createDatabaseNotifications({ url, channels: [], followedChannels: [LOG_CHANNEL], log });
    try {
      await db.query("INSERT INTO organization (name) VALUES ('o')");
      await db.query("INSERT INTO app (organization_id, name) VALUES (1, 'a')");
      const write = async () => {
        const text = `INSERT INTO execution_log (app_id, task_id, run_id, type, data)
          VALUES (1, 1, 1, 'app.task.completed', '{}') RETURNING id`;
        return (await db.query(text))[0].id as number;
      };
      const notify = (id: number) => db.query("SELECT pg_notify($1, $2)", [LOG_CHANNEL, `1:${id}:1`]);
      await write();
      // Waits, so that the next entry has a later time. Times have a precision of milliseconds.
      await delay(5);
      const seen: number[] = [];
      const tail = createLogTail({ logs: new ExecutionLogs(db), notifications, log });
      const end = tail.follow({ appId: 1 }).listen(
        (entry: LogEntry) => seen.push(entry.id),
        () => {},
      );
      const first = await write();
      await db.transaction(async (manager) => {
        // The lock delays the tail's read of missed entries until the notification of these entries has arrived.
        await manager.query("LOCK TABLE execution_log IN ACCESS EXCLUSIVE MODE");
        await notifications.start();
        await until(async () => (await countLockWaits(manager)) > 0);
        await notify(first);
      });
      const second = await write();
      await notify(second);
      await until(() => seen.includes(second));
      expect(seen).to.deep.equal([first, second]);
      end();
    } finally {
      await notifications.stop();
      await stop();
    }
  });
});

describe("followers of execution logs after gaps", () => {
  it("get entries in the order of IDs although transactions commit in another, and resume without loss or repetition", async () => {
    const { db, url, stop } = await connectedDatabase(8);
    const log = pino({ level: "silent" });
    const notifications = createDatabaseNotifications({ url, channels: [], followedChannels: [LOG_CHANNEL], log });
    await notifications.start();
    try {
      await db.query("INSERT INTO organization (name) VALUES ('o')");
      await db.query("INSERT INTO app (organization_id, name) VALUES (1, 'a')");
      let run = 0;
      /** Writes an entry in a transaction. When `ready` resolves, commits the transaction, or rolls it back if `isKept` is false. */
      const write = (ready: Promise<unknown>, isKept = true) => {
        const written = Promise.withResolvers<number>();
        const done = db
          .transaction(async (manager) => {
            run += 1;
            const sql = `INSERT INTO execution_log (app_id, task_id, run_id, type, data)
              VALUES (1, 1, $1, 'app.task.completed', '{}') RETURNING id`;
            const [{ id }] = await manager.query(sql, [run]);
            await manager.query("SELECT pg_notify($1, $2)", [LOG_CHANNEL, `1:${id}:1`]);
            written.resolve(id);
            await ready;
            if (!isKept) throw new Error("rolled back");
          })
          .catch(() => undefined);
        return { id: written.promise, done };
      };
      const now = Promise.resolve();
      const tail = createLogTail({ logs: new ExecutionLogs(db), notifications, log });
      const follow = (after?: number) => {
        const seen: number[] = [];
        const end = tail.follow({ appId: 1, after }).listen(
          ({ id }: LogEntry) => seen.push(id),
          () => {},
        );
        return { seen, end };
      };
      const first = await write(now).id;
      const live = follow(0);
      await until(() => live.seen.includes(first));
      const ids = [first];
      for (let round = 0; round < 20; round += 1) {
        const release = Promise.withResolvers<void>();
        const slow = write(release.promise);
        const lost = write(release.promise, false);
        ids.push(await slow.id);
        await lost.id;
        const quick = write(now);
        ids.push(await quick.id);
        await quick.done;
        // The later entry is visible now, but the tail does not deliver it before the earlier one.
        await delay(5);
        expect(live.seen).to.not.include(ids.at(-1));
        release.resolve();
        await Promise.all([slow.done, lost.done]);
      }
      await until(() => live.seen.length === ids.length);
      expect(live.seen).to.deep.equal(ids);
      live.end();
      const away = await write(now).id;
      const resumed = follow(ids[10]);
      await until(() => resumed.seen.includes(away));
      expect(resumed.seen).to.deep.equal([...ids.slice(11), away]);
      resumed.end();
    } finally {
      await notifications.stop();
      await stop();
    }
  });
});

describe("a follower of execution logs", () => {
  /** Creates two apps, and a tail of their logs. The methods that `over` returns replace those of the ExecutionLogs that the tail reads. */
  async function createTail(over: (logs: ExecutionLogs) => Partial<ExecutionLogs>, readAttempts?: number) {
    const { db, url, stop } = await connectedDatabase(8);
    const log = pino({ level: "silent" });
    const notifications = createDatabaseNotifications({ url, channels: [], followedChannels: [LOG_CHANNEL], log });
    await notifications.start();
    await db.query("INSERT INTO organization (name) VALUES ('o')");
    await db.query("INSERT INTO app (organization_id, name) VALUES (1, 'a'), (1, 'b')");
    const write = async (appId: number, count = 1): Promise<number[]> => {
      const sql = `INSERT INTO execution_log (app_id, task_id, run_id, type, data)
        SELECT $1, 1, run, 'app.task.completed', '{}' FROM generate_series(1, $2) AS run RETURNING id`;
      const ids: number[] = (await db.query(sql, [appId, count])).map(({ id }: { id: number }) => id);
      await db.query("SELECT pg_notify($1, $2)", [LOG_CHANNEL, `${appId}:${ids.at(-1)}:1`]);
      return ids;
    };
    const logs = new ExecutionLogs(db);
    const options = { logs: Object.assign(new ExecutionLogs(db), over(logs)), notifications, log };
    const tail = createLogTail(readAttempts === undefined ? options : { ...options, readAttempts });
    const follow = (filter: LogTailFilter) => {
      const seen: number[] = [];
      const ended = Promise.withResolvers<ActionError>();
      const end = tail.follow(filter).listen(({ id }) => seen.push(id), ended.resolve);
      return { seen, end, ended: ended.promise };
    };
    const close = async () => {
      await notifications.stop();
      await stop();
    };
    return { write, follow, close };
  }

  it("that resumes receives at most the newest 1,000 entries of its app, then those that follow", async () => {
    const { write, follow, close } = await createTail(() => ({}));
    try {
      const ids = await write(1, 1_010);
      await write(2, 10);
      const { seen, end } = follow({ appId: 1, after: 0 });
      await until(() => seen.includes(ids.at(-1)!));
      const next = await write(1);
      await until(() => seen.includes(next[0]!));
      expect(seen).to.deep.equal([...ids.slice(10), ...next]);
      end();
    } finally {
      await close();
    }
  });

  it("does not wait for another app's follower that resumes", async () => {
    const release = Promise.withResolvers<void>();
    const { write, follow, close } = await createTail((logs) => ({
      async listIdsOfApp(appId, after, upTo) {
        if (appId === 2) await release.promise;
        return logs.listIdsOfApp(appId, after, upTo);
      },
    }));
    try {
      const others = await write(2, 10);
      const live = follow({ appId: 1, after: 0 });
      const resumed = follow({ appId: 2, after: 0 });
      const [id] = await write(1);
      await until(() => live.seen.includes(id!));
      // After the catch-up, the subscriber receives the entries that were written during it, once and in order.
      others.push(...(await write(2, 3)));
      const [later] = await write(1);
      await until(() => live.seen.includes(later!));
      expect(resumed.seen).to.deep.equal([]);
      release.resolve();
      await until(() => resumed.seen.includes(others.at(-1)!));
      expect(resumed.seen).to.deep.equal(others);
      live.end();
      resumed.end();
    } finally {
      release.resolve();
      await close();
    }
  });

  it("that ends while it resumes receives nothing more, and causes no more reads", async () => {
    const reading = Promise.withResolvers<void>();
    const release = Promise.withResolvers<void>();
    const read: number[] = [];
    const { write, follow, close } = await createTail((logs) => ({
      async findFitting(ids) {
        read.push(...ids);
        reading.resolve();
        await release.promise;
        return logs.findFitting(ids);
      },
    }));
    try {
      const ids = await write(1, 200);
      const gone = follow({ appId: 1, after: 0 });
      await reading.promise;
      gone.end();
      release.resolve();
      // Catch-ups of one app run one after the other, so the second one ends after the first.
      const next = follow({ appId: 1, after: ids.at(-2)! });
      await until(() => next.seen.includes(ids.at(-1)!));
      expect(gone.seen).to.deep.equal([]);
      expect(read).to.deep.equal([...ids.slice(0, 25), ids.at(-1)]);
      next.end();
    } finally {
      release.resolve();
      await close();
    }
  });

  for (const [how, after, failing] of [
    ["begins", undefined, "readNewestId"],
    ["resumes", 0, "listIdsOfApp"],
  ] as const) {
    it(`whose reads still fail after all attempts as it ${how} ends with an error`, async () => {
      const fail = () => Promise.reject(new Error("the database is away"));
      const { write, follow, close } = await createTail(() => ({ [failing]: fail }), 1);
      try {
        await write(1);
        const { ended, end } = follow({ appId: 1, after });
        expect((await ended).status).to.equal("INTERNAL_ERROR");
        end();
      } finally {
        await close();
      }
    });
  }

  it("of a quiet app does not wait for entries of other apps since its last one", async () => {
    const settled: number[] = [];
    const { write, follow, close } = await createTail((logs) => ({
      listIdsAfter(id) {
        settled.push(id);
        return logs.listIdsAfter(id);
      },
    }));
    try {
      const quiet = follow({ appId: 1, after: 0 });
      const [first] = await write(1);
      await until(() => quiet.seen.includes(first!));
      const others = await write(2, 10);
      await until(() => settled.includes(others.at(-1)!));
      quiet.end();
    } finally {
      await close();
    }
  });
});
