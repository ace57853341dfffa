/** Tests that the restore of an invalid or malicious backup file changes nothing. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { Client } from "pg";
import type { ArchiveFile } from "../../src/engine/archive/tar.js";
import { readArchive, writeArchive } from "../../src/engine/archive.js";
import { writeKeyFile } from "../../src/engine/key-ring.js";
import { backUp, KEY, restoreTo } from "../backup/support.js";
import { emptyDatabase, type FreshDatabase, freshDatabase } from "../harness/postgres.js";
import { createFirstCredentials } from "../harness/service.js";
import { filesUnder } from "../media/support.js";

// biome-ignore lint/suspicious/noExplicitAny: the tests change a manifest in any way
type CommandOutput = any;

async function* toAsyncIterable(parts: readonly ArchiveFile[]): AsyncGenerator<ArchiveFile> {
  yield* parts;
}

async function query<T>(url: string, sql: string): Promise<T[]> {
  const client = new Client({ connectionString: url });
  await client.connect();
  return client.query(sql).then(
    ({ rows }) => client.end().then(() => rows as T[]),
    (error) => client.end().then(() => Promise.reject(error)),
  );
}

const databaseObjects = async (url: string) =>
  (
    await query<{ name: string }>(
      url,
      `SELECT relname AS name FROM pg_class WHERE relnamespace = 'public'::regnamespace
     UNION ALL SELECT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace
     UNION ALL SELECT nspname FROM pg_namespace WHERE nspname ~ '^svc'`,
    )
  ).map(({ name }) => name);

describe("a file that claims to be a backup", function () {
  this.timeout(180_000);
  let folder: string;
  let original: FreshDatabase;
  let targetDatabase: FreshDatabase;
  let parts: ArchiveFile[];
  let count = 0;

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), "svc-attack-"));
    [original, targetDatabase] = [await freshDatabase(), await emptyDatabase()];
    await createFirstCredentials(original.url, join(folder, "source"));
    await query(original.url, "INSERT INTO setting (app_id, key, value) VALUES (1, 'a', '1')");
    const path = join(folder, "good");
    writeKeyFile(join(folder, "source", "settings-key"), [Buffer.alloc(32, 9)]);
    await backUp({ databaseUrl: original.url, dataDir: join(folder, "source") }, path);
    parts = [];
    for await (const part of readArchive(path, KEY)) parts.push(part);
  });
  after(async () => {
    await original.drop();
    await targetDatabase.drop();
    rmSync(folder, { recursive: true, force: true });
  });

  async function restoreChanged(
    change: (parts: ArchiveFile[]) => ArchiveFile[],
    replace = false,
    url = targetDatabase.url,
  ): Promise<string> {
    const path = join(folder, String(++count));
    await writeArchive(path, toAsyncIterable(change([...parts])), KEY);
    const to = { url, dataDir: join(folder, "data"), replace };
    return restoreTo(to, path).then(
      () => "restored",
      (error: Error) => error.message,
    );
  }

  const changeJson = (name: string, change: (content: CommandOutput) => void) => (all: ArchiveFile[]) =>
    all.map((part) => {
      if (part.name !== name) return part;
      const value = JSON.parse(part.content.toString());
      change(value);
      return { name, content: Buffer.from(JSON.stringify(value)) };
    });
  const manifest = (change: (content: CommandOutput) => void) => changeJson("manifest.json", change);
  const summary = (change: (content: CommandOutput) => void) => changeJson("summary.json", change);
  const table = (all: CommandOutput, name: string) =>
    all.tables.find((candidate: CommandOutput) => candidate.name === name);

  it("is rejected before the restore changes anything if it contains SQL as a name, or is incomplete", async () => {
    const sql = 'run"; DROP TABLE app; --';
    const changes: ((content: CommandOutput) => void)[] = [
      (all) => (table(all, "app").name = sql),
      (all) => table(all, "app").columns.push(sql),
      (all) => (all.partitions[sql] = []),
      (all) => (all.partitions.run = [[null, "1) PARTITION"]]),
      (all) => (all.migrations[0] = "x'; DROP"),
      (all) => (all.tables = {}),
      (all) => delete all.settingsKey,
    ];
    for (const change of changes)
      expect(await restoreChanged(manifest(change)), String(change)).to.match(/^the file is/);
    expect(await restoreChanged(manifest((all) => (all.format = 2)))).to.contain(
      "the format of the backup must be 1 (got 2)",
    );
    for (const change of [{ name: sql }, { last: sql }, { last: "12345678901234567890" }])
      expect(await restoreChanged(summary((all) => Object.assign(all.sequences[0], change)))).to.contain(
        "summary.json has unexpected content",
      );
    expect(await restoreChanged((all) => all.slice(1))).to.equal("the file is not a backup of Svc App Actions");
    expect(await restoreChanged((all) => all.slice(0, -1))).to.match(
      /^the backup is not complete: its last part must be summary\.json \(got \S+\)$/,
    );
    expect(await restoreChanged(manifest((all) => all.migrations.push("OfTomorrow1")))).to.contain(
      "a newer release of the service made this backup",
    );
    expect(await databaseObjects(targetDatabase.url)).to.deep.equal([]);
  });

  it("leaves no table and no media file if its contents do not match its summary or its tables", async () => {
    const blob = { name: `blobs/${"a".repeat(32)}/00000001`, content: Buffer.from("x") };
    const insertBefore = (name: string, part: ArchiveFile) => (all: ArchiveFile[]) =>
      all.flatMap((file) => (file.name === name ? [part, file] : [file]));
    const row = parts.find(({ name }) => name === "tables/app/00000001")!;
    const changes: [(all: ArchiveFile[]) => ArchiveFile[], RegExp][] = [
      [insertBefore("summary.json", blob), /the number of media files differs from the summary/],
      [
        (all) => all.map((file) => (file === row ? { ...row, content: Buffer.from("x\ty\n") } : file)),
        /invalid input syntax/,
      ],
      [
        manifest((all) => table(all, "app").columns.pop()),
        /the columns of the table app differ from those of the release that made the backup/,
      ],
    ];
    for (const [change, words] of changes) {
      expect(await restoreChanged(change)).to.match(words);
      expect(await databaseObjects(targetDatabase.url), String(words)).to.deep.equal([]);
    }
    expect(filesUnder(join(folder, "data", "media"))).to.deep.equal([]);
  });

  it("replaces existing data only if that is requested, and a failed restore keeps the existing data", async () => {
    const other = await freshDatabase();
    try {
      await query(other.url, "INSERT INTO organization (name) VALUES ('mine')");
      const before = (await databaseObjects(other.url)).sort();
      expect(await restoreChanged((all) => all, false, other.url)).to.contain("the database is not empty");
      await query(
        other.url,
        "INSERT INTO instance (id, roles, lease_until) VALUES (gen_random_uuid(), '{api}', now() + interval '1 hour')",
      );
      expect(await restoreChanged((all) => all, true, other.url)).to.contain("the service is running on this database");
      await query(other.url, "DELETE FROM instance");
      const failing = summary((all) => (all.rows.app = 7));
      expect(await restoreChanged(failing, true, other.url)).to.contain(
        "the number of rows of the table app differs from the summary",
      );
      expect((await databaseObjects(other.url)).sort()).to.deep.equal(before);
      expect(await query(other.url, "SELECT name FROM organization")).to.deep.equal([{ name: "mine" }]);
      expect(await restoreChanged((all) => all, true, other.url)).to.equal("restored");
      expect(await query(other.url, "SELECT name FROM organization")).to.deep.equal(
        await query(original.url, "SELECT name FROM organization"),
      );
      expect(await databaseObjects(other.url)).to.not.include("svc_before_restore");
    } finally {
      await other.drop();
    }
  });

  it("can be from a database with tables of other programs, which the restore leaves out and names", async () => {
    const source = await freshDatabase();
    const to = { url: targetDatabase.url, dataDir: join(folder, "data"), warnings: [] as string[] };
    try {
      await createFirstCredentials(source.url, join(folder, "own"));
      await query(source.url, "CREATE TABLE somebody_elses AS SELECT 1 AS one");
      // The backup leaves out tables and sequences whose names have uppercase letters, and tables whose columns have such names.
      await query(source.url, `CREATE TABLE "Some Orders" (id int); CREATE TABLE orders ("userId" int)`);
      await query(source.url, `CREATE SEQUENCE "Some Numbers"; CREATE SEQUENCE numbers`);
      const path = join(folder, String(++count));
      await backUp({ databaseUrl: source.url, dataDir: join(folder, "source") }, path);
      await restoreTo(to, path);
      expect(to.warnings).to.deep.equal(["tables that do not belong to the service are left out: somebody_elses"]);
      expect(await databaseObjects(targetDatabase.url))
        .to.include("app")
        .and.not.include("somebody_elses");
    } finally {
      await source.drop();
    }
  });
});
