import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { type Db, migrateDatabase, openDatabase, rows } from "../../src/data/database.js";
import { startRestartablePostgres } from "../harness/gateway.js";
import { type ServiceProcess, startProcess } from "../harness/process.js";
import { createFirstCredentials } from "../harness/service.js";
import { until } from "../harness/until.js";

const ROUNDS = 20;
const IMPORTED_ENTRIES = 20_000;
const COMMITTED_ENTRIES = 40;
const RECOVERY_LIMIT_MS = 60_000;

interface SourceState {
  entries: number;
  bytes: number;
  tallied: number;
  talliedBytes: number;
  created: number;
  imports: number;
  changes: number;
}

const SELECT_SOURCE_STATE = `
  SELECT (SELECT count(*) FROM data_source_entry WHERE data_source_id = $1) AS entries,
         (SELECT coalesce(sum(bytes), 0) FROM data_source_entry WHERE data_source_id = $1) AS bytes,
         (SELECT entries FROM data_source_tally WHERE data_source_id = $1) AS tallied,
         (SELECT bytes FROM data_source_tally WHERE data_source_id = $1) AS "talliedBytes",
         (SELECT count(*) FROM log_event WHERE data_source_id = $1 AND type = 'dataSource.entry.create') AS created,
         (SELECT count(*) FROM log_event WHERE data_source_id = $1 AND type = 'dataSource.import') AS imports,
         (SELECT count(*) FROM data_source_change WHERE data_source_id = $1) AS changes`;

async function request(url: string, token: string, path: string, body: unknown): Promise<number> {
  const headers = { "auth-token": token, "content-type": "application/json" };
  const response = await fetch(url + path, { method: "POST", headers, body: JSON.stringify(body) });
  await response.text();
  return response.status;
}

describe("imports and commits under kill -9 of the service and of PostgreSQL", () => {
  it(`are applied completely or not at all in ${2 * ROUNDS} rounds, with events for exactly the committed data`, async () => {
    const postgres = await startRestartablePostgres();
    const dataDir = mkdtempSync(join(tmpdir(), "svc-entry-kills-"));
    await migrateDatabase(postgres.url);
    const { tokens, appId } = await createFirstCredentials(postgres.url, dataDir);
    const path = `/v1/apps/${appId}/data-sources`;
    const settings = { DATABASE_URL: postgres.url, DATA_DIR: dataDir, ROLES: "api", INTAKE_QUOTA_MB: "0" };
    const start = (): ServiceProcess => startProcess(settings);
    let service = start();
    let db: Db = await openDatabase(postgres.url, 2);
    const outcomes = { whole: 0, nothing: 0 };

    async function checkSource(id: number, expected: number): Promise<boolean> {
      const [seen] = await until(
        () => rows<SourceState>(db, SELECT_SOURCE_STATE, [id]).catch(() => null),
        RECOVERY_LIMIT_MS,
      );
      const { entries, bytes, tallied, talliedBytes, created, imports, changes } = seen!;
      expect(entries).to.be.oneOf([0, expected]);
      expect([tallied, talliedBytes]).to.deep.equal([entries, bytes]);
      const isImport = expected === IMPORTED_ENTRIES;
      const events = entries === 0 ? [0, 0, 0] : isImport ? [0, 1, 1] : [expected, 0, 1];
      expect([created, imports, changes]).to.deep.equal(events);
      return entries > 0;
    }

    try {
      for (let round = 0; round < 2 * ROUNDS; round += 1) {
        const url = await until(() => service.ready().catch(() => null), RECOVERY_LIMIT_MS);
        const ids: number[] = [];
        for (const name of [`import ${round}`, `commit ${round}`]) {
          const made = () => request(url, tokens.editor, path, { name }).catch(() => 0);
          await until(async () => [201, 409].includes(await made()), RECOVERY_LIMIT_MS);
          const [source] = await rows<{ id: number }>(db, "SELECT id FROM data_source WHERE name = $1", [name]);
          ids.push(source!.id);
        }
        const entries = Array.from({ length: COMMITTED_ENTRIES }, (_, n) => ({ data: { n } }));
        const sent = [
          request(
            url,
            tokens.editor,
            `${path}/${ids[0]}/import`,
            Array.from({ length: IMPORTED_ENTRIES }, (_, n) => ({ n })),
          ),
          request(url, tokens.editor, `${path}/${ids[1]}/commit`, { entries }),
        ].map((answer) => answer.catch(() => 0));
        // Waits longer in each round, up to 1.5 s, so that the kills happen at different moments of the writes.
        await new Promise((resolve) => setTimeout(resolve, (round / (2 * ROUNDS)) * 1_500));
        if (round % 2 === 0) {
          service.signal("SIGKILL");
          await service.ended;
          service = start();
        } else await (await postgres.lose("SIGKILL"))();
        const answers = await Promise.all(sent);
        await db.destroy().catch(() => undefined);
        db = await until(() => openDatabase(postgres.url, 2).catch(() => null), RECOVERY_LIMIT_MS);
        for (const [at, id] of ids.entries()) {
          // Waits until the statements of abandoned connections have ended.
          await until(async () => {
            const [busy] = await rows<{ count: number }>(
              db,
              "SELECT count(*) FROM pg_stat_activity WHERE state <> 'idle' AND query ~ 'data_source' AND pid <> pg_backend_pid()",
            );
            return busy!.count === 0;
          }, RECOVERY_LIMIT_MS);
          const isWhole = await checkSource(id, at === 0 ? IMPORTED_ENTRIES : COMMITTED_ENTRIES);
          if (answers[at] === 200) expect(isWhole, "what was acknowledged is there").to.equal(true);
          outcomes[isWhole ? "whole" : "nothing"] += 1;
        }
      }
      process.stdout.write(`${JSON.stringify(outcomes)}\n`);
      expect(outcomes.whole).to.be.above(0);
      expect(outcomes.nothing).to.be.above(0);
    } finally {
      await db.destroy().catch(() => undefined);
      await service.clean();
      await postgres.stop();
      rmSync(dataDir, { recursive: true, force: true });
    }
  });
});
