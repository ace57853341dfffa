/** Helpers for tests of backups: they fill a service with data of every kind, back it up, restore it, and read all its responses. */
import { mkdirSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { pino } from "pino";
import { ROUTES } from "../../src/api/rest/routes.js";
import type { BackupSecret } from "../../src/engine/archive/encryption.js";
import { openBlobStore } from "../../src/engine/blob-store.js";
import { readKeyFile, writeKeyFile } from "../../src/engine/key-ring.js";
import { type BackupReport, createBackup } from "../../src/operations/backup/backup.js";
import { type BackupRestoreReport, restoreBackup } from "../../src/operations/backup/restore.js";
import { EntryIndexes } from "../../src/operations/data-sources/entry-indexes.js";
import { Partitions } from "../../src/operations/upkeep/partitions.js";
import type { TestService } from "../harness/service.js";
import { mediaOf, noise, picture } from "../media/support.js";

export const KEY: BackupSecret = { kind: "key", bytes: Buffer.alloc(32, 7) };
export const SCHEDULED_ACTION = "nightly";

type SendRest = TestService["rest"];

async function sendOrThrow(
  rest: SendRest,
  method: string,
  path: string,
  body?: object,
): Promise<Record<string, never>> {
  const answer = await rest(method, path, { body });
  if (answer.http < 300) return answer.body;
  throw new Error(`${method} ${path}: ${answer.http} ${JSON.stringify(answer.body)}`);
}

/** Adds completed runs in several partitions. Also adds a running run to another app. The test compares no responses of this other app. */
async function fillPartitions({ db }: TestService): Promise<void> {
  const partitions = new Partitions({ db, days: 30 });
  for (const last of [150_000, 420_000]) {
    await db.query("SELECT setval('run_id_seq', $1::bigint), setval('execution_log_id_seq', $1::bigint)", [last]);
    await partitions.createPartitionsAhead();
    await db.query(`
      WITH done AS (
        INSERT INTO run (app_id, action_id, copy, trigger, payload, state, queued_at, finished_at)
        SELECT 1, 1, 'master', 'manual', json_build_object('n', n, 'odd', E'\\t\\n\\\\N ü🎈'), 'completed', now() - interval '2 days', now()
          FROM generate_series(1, 5) AS n RETURNING id),
      told AS (
        INSERT INTO execution_log (app_id, task_id, run_id, type, data)
        SELECT 1, 1, id, 'app.task.completed', '{"result":"\\u00fc"}' FROM done RETURNING id, run_id)
      UPDATE run SET log_id = told.id FROM told WHERE run.id = told.run_id`);
  }
  await db.query(`
    INSERT INTO app (organization_id, name) VALUES (1, 'other');
    INSERT INTO instance (id, roles, lease_until) VALUES ('00000000-0000-4000-8000-000000000001', '{runner}', now() + interval '1 hour');
    INSERT INTO run (app_id, action_id, copy, trigger, payload, state, holder, started_at)
      SELECT max(id), 999, 'master', 'manual', '{}', 'running', '00000000-0000-4000-8000-000000000001', now() FROM app`);
}

/** Adds rows to most tables, most of them through the API. */
export async function fillService(service: TestService): Promise<void> {
  const { appId, rest } = service;
  const app = `/v1/apps/${appId}`;
  const actions = `/v3/apps/${appId}/actions`;
  await sendOrThrow(rest, "POST", `${app}/settings`, {
    title: "ü",
    _note: "for editors",
    __apiKey: "a-secret-of-the-app",
  });
  const code = "async function execute() { return 1 }";
  const frequency = "0 4 * * *";
  const scheduled = { triggers: [{ trigger: "schedule" }], frequency };
  await sendOrThrow(rest, "POST", actions, { name: SCHEDULED_ACTION, active: true, code, ...scheduled });
  await sendOrThrow(rest, "PUT", `${actions}/1`, { code: `${code} // changed` });
  await sendOrThrow(rest, "POST", `${app}/publish`);
  await sendOrThrow(rest, "POST", `${actions}/1/publish`);
  await sendOrThrow(rest, "POST", `${app}/versions`, {});
  await sendOrThrow(rest, "POST", `${app}/logs`, { type: "order.made", data: { n: 1 } });
  await sendOrThrow(rest, "POST", `${app}/data-sources`, {
    name: "Seats",
    columns: [],
    indexes: [{ columns: ["Seat"], unique: true }],
    entries: [{ Seat: "A1" }, { Seat: "A2", Note: "\\N\t\n" }],
  });
  await sendOrThrow(rest, "GET", `${app}/push/subscriptions`);
  await sendOrThrow(rest, "POST", `${app}/notifications`, { data: { title: "hello" }, status: "draft" });
  const media = mediaOf(service);
  const papers = await media.folder("papers");
  await media.folder("drafts", papers);
  await media.upload("noise.bin", noise(5_000_000), { folderId: String(papers) });
  await media.upload("picture.png", new Uint8Array(await picture(900, 600).png().toBuffer()));
  await media.upload("empty.txt", "");
  await fillPartitions(service);
}

const folderOf = (dataDir: string) => join(dataDir, "media");
const keyFileOf = (dataDir: string) => join(dataDir, "settings-key");

export function backUp(
  from: { databaseUrl: string; dataDir: string },
  path: string,
  secret = KEY,
): Promise<BackupReport> {
  const folder = folderOf(from.dataDir);
  return createBackup({
    url: from.databaseUrl,
    path,
    secret,
    keys: readKeyFile(keyFileOf(from.dataDir)),
    openStore: (space) => openBlobStore({ folder, bucket: null, space }),
  });
}

export interface RestoreTo {
  url: string;
  dataDir: string;
  replace?: boolean;
  secret?: BackupSecret | null;
  warnings?: string[];
  removeMediaFiles?: (space: string) => Promise<void>;
}

export function restoreTo(to: RestoreTo, path: string): Promise<BackupRestoreReport> {
  const { url, dataDir, replace = false, secret = KEY, warnings = [] } = to;
  mkdirSync(dataDir, { recursive: true });
  return restoreBackup({
    ...{ url, path, secret, replace },
    storeKeys: async (keys) => writeKeyFile(keyFileOf(dataDir), keys),
    openStore: (space) => openBlobStore({ folder: folderOf(dataDir), bucket: null, space }),
    removeMediaFiles:
      to.removeMediaFiles ?? ((space) => rm(join(folderOf(dataDir), space), { recursive: true, force: true })),
    temporaryDir: join(folderOf(dataDir), "incoming"),
    createIndexes: () => new EntryIndexes({ url, log: pino({ level: "silent" }) }).reconcile(),
    logWarning: (words) => void warnings.push(words),
  });
}

const NAMES: Record<string, string> = { ":columns": "Seat", ":name": "Seats" };

/** Returns the responses of every GET route for the first app, by path. Leaves out URLs and values that depend on the time. */
export async function allAnswers(url: string, token: string): Promise<Record<string, string>> {
  const answers: Record<string, string> = {};
  for (const { method, path } of ROUTES) {
    if (method !== "GET") continue;
    const filled = path.replace(/:\w+/g, (name) => NAMES[name] ?? "1");
    const response = await fetch(`${url}${filled}?frequency=0 4 * * *`, { headers: { "auth-token": token } });
    const body = (await response.text())
      .replaceAll(url, "")
      .replace(/"(?:now|from|until|to|expiresAt|url)":\s*("[^"]*"|\d+)/g, "");
    answers[filled] = `${response.status} ${body}`;
  }
  return answers;
}
