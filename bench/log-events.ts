/** Log events taken in per second with 1,000 log-triggered actions, of which none, one or ten match, beside a bare INSERT of the same row. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import type { DataSource } from "typeorm";
import { migrate, openDatabase, preparedRows } from "../src/data/database.js";
import { ENDLESS_ROOM } from "../src/engine/disk-room.js";
import { startEmbeddedPostgres } from "../src/engine/embedded-postgres.js";
import { QUEUE_MAX_PER_APP } from "../src/limits.js";
import { createIntake } from "../src/operations/records/intake.js";
import { createLogEvents } from "../src/operations/records/log-events.js";
import { createQueueRoom } from "../src/operations/records/queue-room.js";
import type { Caller } from "../src/rules/access.js";
import { publishDirectly } from "../test/harness/production-copies.js";
import { firstCredentials } from "../test/harness/service.js";
import type { Row } from "./figure.js";

export const title = "log events with 1,000 log-triggered actions, 20 callers at once";

const ACTIONS = 1_000;
const CALLERS = 20;
const EVENTS = 4_000;
const WARM_UP = 500;
const ROUNDS = 3;
const DATA = { columns: { status: "open", amount: 12.5 }, note: "an entry as it is usually made" };

const BARE = `
  INSERT INTO log_event (app_id, type, data, user_id, data_source_id, data_source_entry_id, request_id)
  VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING id, created_at`;

/** How many calls a second come through, `CALLERS` of them under way at any time. */
async function throughput(events: number, call: (index: number) => Promise<unknown>): Promise<number> {
  let next = 0;
  const begun = performance.now();
  await Promise.all(
    Array.from({ length: CALLERS }, async () => {
      while (next < events) await call(next++);
    }),
  );
  return (events * 1_000) / (performance.now() - begun);
}

async function publishTriggered(db: DataSource, appId: number): Promise<void> {
  const wanted = Array.from({ length: ACTIONS }, (_, at) => ({
    name: `action-${at}`,
    triggers: [{ trigger: "log", where: { type: "dataSource.entry.create", dataSourceId: at < 10 ? 10 : at + 1 } }],
  }));
  await publishDirectly(db, appId, wanted);
  await db.query("ANALYZE");
}

/** The mean of some rounds, each of which the queue's bound takes whole: no event is skipped. */
async function inRounds(
  db: DataSource,
  runsEach: number,
  ingest: (events: number) => Promise<number>,
): Promise<number> {
  let sum = 0;
  for (let round = 0; round < ROUNDS; round += 1) {
    sum += await ingest(Math.floor((QUEUE_MAX_PER_APP - CALLERS * runsEach) / runsEach));
    await db.query("DELETE FROM run");
    await db.query("DELETE FROM graphile_worker._private_jobs");
  }
  return sum / ROUNDS;
}

async function measure(db: DataSource, appId: number): Promise<Row[]> {
  const { add } = createLogEvents({
    db,
    queueRoom: createQueueRoom(db),
    intake: createIntake({ quotaBytes: 2 ** 40, room: ENDLESS_ROOM }),
  });
  const caller: Caller = {
    credentialId: 1,
    kind: "api",
    personId: null,
    appId,
    editorOf: new Set(),
    runId: null,
    debugs: null,
    copy: "production",
    expiresAt: Number.POSITIVE_INFINITY,
  };
  const event = (dataSourceId: number) => ({
    type: "dataSource.entry.create",
    data: DATA,
    dataSourceId,
    dataSourceEntryId: 1,
  });
  const ingest = (dataSourceId: number, events = EVENTS) =>
    throughput(events, () => add(caller, appId, event(dataSourceId)));
  const text = JSON.stringify(DATA);
  const values = [appId, "dataSource.entry.create", text, null, 5_000, 1];
  const bare = (events = EVENTS) =>
    throughput(events, () => preparedRows(db, "bare", BARE, [...values, crypto.randomUUID()]));
  await bare(WARM_UP);
  await ingest(5_000, WARM_UP);
  const rows: Row[] = [];
  // Floor and figure take turns: the machine is not the same from one second to the next.
  for (const [matching, dataSourceId, runsEach] of [
    ["none", 5_000, 0],
    ["one", 500, 1],
    ["ten", 10, 10],
  ] as const) {
    const floor = { name: "bare INSERT of the same row", value: await bare() };
    const value =
      runsEach === 0 ? await ingest(dataSourceId) : await inRounds(db, runsEach, (n) => ingest(dataSourceId, n));
    rows.push({ name: `log events, ${matching} matching`, value, unit: "/s", floor });
  }
  return rows;
}

export async function run(): Promise<Row[]> {
  const folder = mkdtempSync(join(tmpdir(), "svc-bench-"));
  const postgres = await startEmbeddedPostgres({ dataDir: folder, log: pino({ level: "silent" }) });
  await migrate(postgres.url);
  const db = await openDatabase(postgres.url, CALLERS);
  try {
    const { appId } = await firstCredentials(postgres.url, folder);
    await publishTriggered(db, appId);
    return await measure(db, appId);
  } finally {
    await db.destroy();
    await postgres.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}
