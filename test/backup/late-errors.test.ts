/** Tests errors at the end of a restore, when the restored rows are committed: the database never loses both the old and the new content. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { Client } from "pg";
import { emptyDatabase, type FreshDatabase } from "../harness/postgres.js";
import { startTestService } from "../harness/service.js";
import { until } from "../harness/until.js";
import { filesUnder, mediaOf } from "../media/support.js";
import { backUp, restoreTo } from "./support.js";

describe("a restore that fails at its end", function () {
  this.timeout(60_000);
  let folder: string;
  let file: string;
  let dataDir: string;
  let target: FreshDatabase;
  let client: Client;

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), "svc-restore-end-"));
    file = join(folder, "backup");
    const service = await startTestService({ ROLES: "api" });
    await mediaOf(service).upload("page.txt", "text of the file");
    await backUp(service, file);
    await service.stop();
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  beforeEach(async () => {
    target = await emptyDatabase();
    dataDir = mkdtempSync(join(folder, "data-"));
    await restoreTo({ url: target.url, dataDir }, file);
    client = new Client({ connectionString: target.url });
    await client.connect();
  });
  afterEach(async () => {
    await client.end();
    await target.drop();
  });

  async function prefixIn(schema: string): Promise<string> {
    return (await client.query<{ space: string }>(`SELECT space FROM ${schema}.media_store`)).rows[0]!.space;
  }
  /** Returns the key of the file in the restored rows, and the paths of the files that the restore has written. */
  async function readRestoredContent(): Promise<{ key: string; paths: string[] }> {
    const { rows } = await client.query<{ key: string }>("SELECT blob_key AS key FROM public.media_file");
    return { key: rows[0]!.key, paths: filesUnder(join(dataDir, "media", await prefixIn("public"))) };
  }

  it("keeps the restored rows and files if the old files cannot be deleted", async () => {
    const warnings: string[] = [];
    const previousPrefix = await prefixIn("public");
    const removeMediaFiles = () => Promise.reject(new Error("EBUSY: resource busy or locked"));
    await restoreTo({ url: target.url, dataDir, replace: true, warnings, removeMediaFiles }, file);
    const { key, paths } = await readRestoredContent();
    expect(paths.some((path) => path.endsWith(key))).to.equal(true);
    expect(warnings).to.deep.equal([
      `the restore is complete, but the old files in DATA_DIR/media/${previousPrefix} could not be deleted; delete this folder: EBUSY: resource busy or locked`,
    ]);
  });

  it("keeps the restored files if the connection is lost after the commit of the rows", async () => {
    const warnings: string[] = [];
    const blocker = new Client({ connectionString: target.url });
    await blocker.connect();
    try {
      // The lock moves with the table to the schema of the previous tables. There it delays DROP SCHEMA.
      await blocker.query("BEGIN; LOCK TABLE public.media_file IN ACCESS SHARE MODE");
      const restore = restoreTo({ url: target.url, dataDir, replace: true, warnings }, file).then(
        () => "restored",
        (error: Error) => error.message,
      );
      const terminate = `
        SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE 'DROP SCHEMA%'`;
      await until(async () => (await client.query(terminate)).rowCount === 1);
      expect(await restore).to.match(/terminat/);
    } finally {
      await blocker.end();
    }
    const { key, paths } = await readRestoredContent();
    expect(paths.some((path) => path.endsWith(key))).to.equal(true);
    const previousPaths = filesUnder(join(dataDir, "media", await prefixIn("svc_before_restore")));
    expect(previousPaths.some((path) => path.endsWith(key))).to.equal(true);
    expect(warnings.join()).to.match(/^the unfinished restore could not be undone: /);
  });
});
