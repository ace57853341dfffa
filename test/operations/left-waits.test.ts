/** Tests callers that wait for a run's console or result and then disconnect: the service makes no further queries for them. */
import { setTimeout as delay } from "node:timers/promises";
import { expect } from "chai";
import pg from "pg";
import { pino } from "pino";
import { createDatabaseNotifications, type DatabaseNotifications } from "../../src/engine/notifications.js";
import { ExecutionLogs, LOG_CHANNEL } from "../../src/operations/records/execution-logs.js";
import { waitForLogEntry } from "../../src/operations/records/log-wait.js";
import { RunConsole } from "../../src/operations/runs/console.js";
import { type ConnectedDatabase, connectedDatabase } from "../harness/connected-database.js";
import { until } from "../harness/until.js";

/** Time in milliseconds for which the service listens after the last caller left. Longer than the pause between reads of a console. */
const LINGER_MS = 500;

describe("a wait for a run whose reader leaves", () => {
  let database: ConnectedDatabase;
  let notifications: DatabaseNotifications;
  let runId: number;

  before(async () => {
    database = await connectedDatabase(4);
    const { db, url } = database;
    const log = pino({ level: "silent" });
    notifications = createDatabaseNotifications({
      url,
      channels: [],
      followedChannels: [LOG_CHANNEL],
      lingerMs: LINGER_MS,
      log,
    });
    await notifications.start();
    await db.query("INSERT INTO organization (name) VALUES ('o')");
    await db.query("INSERT INTO app (organization_id, name) VALUES (1, 'a')");
    const text = `INSERT INTO run (app_id, action_id, copy, trigger, state, holder, started_at, payload)
      VALUES (1, 1, 'master', 'manual', 'running', gen_random_uuid(), now(), '{}') RETURNING id`;
    runId = Number((await db.query(text))[0].id);
  });
  after(async () => {
    await notifications?.stop();
    await database?.stop();
  });

  /** Returns the last statement of the connection that receives notifications. */
  const readLastStatement = async (): Promise<string> => {
    const text =
      "SELECT query FROM pg_stat_activity WHERE application_name = 'svc-app-actions notices' AND datname = current_database()";
    return (await database.db.query(text))[0].query;
  };
  const hasStoppedListening = async () => (await readLastStatement()).startsWith("UNLISTEN");
  const isListening = async () => (await readLastStatement()).startsWith("LISTEN");

  it("ends with the reader of the run's lines, although the run prints nothing", async () => {
    const { query } = pg.Client.prototype;
    let reads = 0;
    // biome-ignore lint/suspicious/noExplicitAny: the driver accepts several kinds of arguments
    pg.Client.prototype.query = function (this: pg.Client, ...args: any[]) {
      if (args[0]?.name === "console-lines") reads += 1;
      return Reflect.apply(query, this, args);
    } as typeof query;
    try {
      const reader = new RunConsole(database.db).follow(1, runId);
      const next = reader.next();
      await until(() => reads > 1);
      await reader.return();
      expect((await next).done).to.equal(true);
      const readsBefore = reads;
      await delay(LINGER_MS);
      expect(reads).to.equal(readsBefore);
    } finally {
      pg.Client.prototype.query = query;
    }
  });

  it("ends with the caller who would get its result", async () => {
    const caller = new AbortController();
    const answer = waitForLogEntry({ logs: new ExecutionLogs(database.db), notifications }, runId, caller.signal);
    await until(isListening);
    caller.abort();
    const error = await answer.catch((reason: unknown) => reason);
    expect(error).to.include({
      status: "REQUEST_INVALID",
      message: "the client disconnected before the service sent the response",
    });
    await until(hasStoppedListening);
    const late = await waitForLogEntry(
      { logs: new ExecutionLogs(database.db), notifications },
      runId,
      caller.signal,
    ).catch(String);
    expect(late).to.include("the client disconnected");
  });
});
