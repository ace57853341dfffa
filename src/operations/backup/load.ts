/**
 * Writes the content of a backup into a new database that has the schema of the backup. If anything fails, the database stays unchanged.
 * Names in the backup are only used to select existing tables, so that they cannot inject SQL.
 */
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdir, open } from "node:fs/promises";
import { join } from "node:path";
import type { Client } from "pg";
import { from as copyFrom } from "pg-copy-streams";
import { ArchiveError } from "../../engine/archive/failure.js";
import type { ArchiveFile } from "../../engine/archive/tar.js";
import { type BlobStore, isBlobKey } from "../../engine/blob-store/blob.js";
import { type BackupManifest, type BackupSummary, parseBackupSummary, SUMMARY_FILE } from "./manifest.js";
import {
  type BackupTable,
  listEarlyReferences,
  type PartitionBounds,
  PORTABLE_FORMAT_SETTINGS_SQL,
  quoteName,
  readPartitions,
  readSequences,
  readTables,
} from "./tables.js";

const createInconsistencyError = (reason: string): ArchiveError =>
  new ArchiveError(`the backup is not consistent, so nothing was restored; use another backup: ${reason}`);

export interface BackupLoadOptions {
  client: Client;
  manifest: BackupManifest;
  openStore: (space: string) => Promise<BlobStore>;
  /** Absolute path of a folder that holds restored media files until the media store has received them. */
  temporaryDir: string;
  logWarning: (message: string) => void;
}

/** Consecutive parts of the backup file that together contain one table or one media file. `name` is the prefix of their names. */
class PartGroup {
  constructor(
    readonly name: string,
    private readonly parts: AsyncIterator<ArchiveFile>,
    private first: ArchiveFile | null,
  ) {}

  /** First part after this group; null at the end of the backup file. Set when `contents` has yielded all parts of the group. */
  nextPart: ArchiveFile | null = null;

  async *contents(): AsyncGenerator<Buffer> {
    for (let part = this.first; ; ) {
      if (part === null || !part.name.startsWith(`${this.name}/`)) {
        this.nextPart = part;
        return;
      }
      yield part.content;
      this.first = null;
      const { value, done } = await this.parts.next();
      part = done ? null : value;
    }
  }
}

export class BackupLoader {
  private readonly rowCountsByTable = new Map<string, number>();
  private readonly writtenBlobKeys: string[] = [];
  private store: BlobStore | null = null;
  private tables: readonly BackupTable[] = [];

  constructor(private readonly options: BackupLoadOptions) {}

  /** Checks that the backup has the tables and columns of the schema. Leaves out additional tables, which belong to other programs. */
  private async compareTables(): Promise<void> {
    const { client, manifest, logWarning } = this.options;
    const targetTables = await readTables(client);
    const archivedTables = new Map(manifest.tables.map((table) => [table.name, table]));
    for (const { name, columns } of targetTables) {
      const archivedTable = archivedTables.get(name);
      if (!archivedTable) throw createInconsistencyError(`the table ${name} is missing`);
      const hasSameColumns =
        archivedTable.columns.length === columns.length &&
        columns.every((column) => archivedTable.columns.includes(column));
      if (!hasSameColumns)
        throw createInconsistencyError(
          `the columns of the table ${name} differ from those of the release that made the backup`,
        );
    }
    const names = new Set(targetTables.map(({ name }) => name));
    const unknownTables = manifest.tables.filter(({ name }) => !names.has(name)).map(({ name }) => name);
    if (unknownTables.length > 0)
      logWarning(`tables that do not belong to the service are left out: ${unknownTables.join(", ")}`);
    this.tables = manifest.tables.filter(({ name }) => names.has(name));
  }

  /** Creates the same partitions of tables as in the backup, so that the service later drops old rows at the right time. */
  private async createPartitions(): Promise<void> {
    const { client, manifest } = this.options;
    const existingPartitions = Map.groupBy(await readPartitions(client), ({ table }) => table);
    for (const [table, partitions] of existingPartitions) {
      const archivedBounds = manifest.partitions[table];
      if (!archivedBounds || !coversAllIds(archivedBounds))
        throw createInconsistencyError(`the partitions of the table ${table} are missing, overlap or have gaps`);
      for (const { name } of partitions) await client.query(`DROP TABLE public.${quoteName(name)}`);
      for (const [low, high] of archivedBounds) {
        const name = high === null ? `${table}_rest` : `${table}_p${low === null ? 1 : String(low).replace("-", "m")}`;
        await client.query(
          `CREATE TABLE public.${quoteName(name)} PARTITION OF public.${quoteName(table)}
             FOR VALUES FROM (${low ?? "MINVALUE"}) TO (${high ?? "MAXVALUE"})`,
        );
      }
    }
  }

  private async prepareDatabase(): Promise<void> {
    const { client } = this.options;
    await client.query(`BEGIN; ${PORTABLE_FORMAT_SETTINGS_SQL}`);
    await this.compareTables();
    await this.createPartitions();
    const names = this.tables.map(({ name }) => `public.${quoteName(name)}`);
    // Removes the rows that migrations insert into every new database, because the backup contains these rows too.
    await client.query(`TRUNCATE ${names.join(", ")}`);
    for (const name of names) await client.query(`ALTER TABLE ${name} DISABLE TRIGGER USER`);
    await this.alterEarlyReferences("DEFERRABLE INITIALLY DEFERRED");
  }

  /** Before the rows are loaded, defers the checks of foreign keys that refer to rows of later tables. Afterwards, restores these keys. */
  private async alterEarlyReferences(mode: "DEFERRABLE INITIALLY DEFERRED" | "NOT DEFERRABLE"): Promise<void> {
    const { client } = this.options;
    for (const { from, name } of await listEarlyReferences(client, this.tables))
      await client.query(`ALTER TABLE public.${quoteName(from)} ALTER CONSTRAINT ${quoteName(name)} ${mode}`);
  }

  private async copyTable(group: PartGroup, table: BackupTable | undefined): Promise<void> {
    if (this.rowCountsByTable.has(group.name)) throw createInconsistencyError(`the part ${group.name} appears twice`);
    if (!table) {
      for await (const _skipped of group.contents());
      return;
    }
    const columns = this.options.manifest.tables
      .find(({ name }) => name === table.name)!
      .columns.map(quoteName)
      .join(", ");
    const stream = this.options.client.query(copyFrom(`COPY public.${quoteName(table.name)} (${columns}) FROM STDIN`));
    const streamEnd = once(stream, "finish");
    // Prevents an unhandled rejection of `streamEnd` if the loop below fails first. `await streamEnd` still throws the error.
    streamEnd.catch(() => undefined);
    try {
      for await (const content of group.contents())
        if (!stream.write(content)) await Promise.race([once(stream, "drain"), streamEnd]);
    } catch (error) {
      stream.destroy(error as Error);
      throw error;
    }
    stream.end();
    await streamEnd;
    this.rowCountsByTable.set(group.name, stream.rowCount);
  }

  private async openStore(): Promise<BlobStore> {
    const { client, openStore, temporaryDir } = this.options;
    // Gives the restored database a new key prefix in the media store. Two databases with the same prefix would delete each other's files.
    const { rows } = await client.query<{ space: string }>(
      "UPDATE public.media_store SET space = left(replace(gen_random_uuid()::text, '-', ''), 16) RETURNING space",
    );
    if (!rows[0]) throw createInconsistencyError("the backup contains media files, but the table media_store is empty");
    await mkdir(temporaryDir, { recursive: true, mode: 0o700 });
    const store = await openStore(rows[0].space);
    await store.check();
    return store;
  }

  private async writeMediaFile(group: PartGroup): Promise<void> {
    const key = group.name.slice("blobs/".length);
    if (!isBlobKey(key)) throw createInconsistencyError("a media file has an invalid key");
    this.store ??= await this.openStore();
    const temporaryPath = join(this.options.temporaryDir, `restore-${randomBytes(8).toString("hex")}`);
    const file = await open(temporaryPath, "wx", 0o600);
    try {
      for await (const content of group.contents()) await file.writeFile(content);
      await file.sync();
    } finally {
      await file.close();
    }
    this.writtenBlobKeys.push(key);
    await this.store.put(key, temporaryPath);
  }

  /** Writes all tables and media files of the backup. Returns the summary, which is the backup's last part. */
  private async loadParts(parts: AsyncIterator<ArchiveFile>): Promise<BackupSummary> {
    const tableByPartName = new Map(this.tables.map((table) => [`tables/${table.name}`, table]));
    const { value, done } = await parts.next();
    for (let part: ArchiveFile | null = done ? null : value; part !== null; ) {
      if (part.name === SUMMARY_FILE) return parseBackupSummary(part);
      const group = new PartGroup(part.name.slice(0, part.name.lastIndexOf("/")), parts, part);
      if (group.name.startsWith("tables/")) await this.copyTable(group, tableByPartName.get(group.name));
      else if (group.name.startsWith("blobs/")) await this.writeMediaFile(group);
      else throw createInconsistencyError(`the part ${part.name} is unknown`);
      part = group.nextPart;
    }
    throw createInconsistencyError("the summary is missing");
  }

  /** Compares the loaded rows and media files with the summary, and sets the sequences to its positions. */
  private async checkSummary({ rows: expectedRows, blobs, lostBlobs, sequences }: BackupSummary): Promise<void> {
    const { client } = this.options;
    for (const { name } of this.tables) {
      if (this.rowCountsByTable.get(`tables/${name}`) !== expectedRows[name])
        throw createInconsistencyError(`the number of rows of the table ${name} differs from the summary`);
    }
    if (blobs !== this.writtenBlobKeys.length)
      throw createInconsistencyError("the number of media files differs from the summary");
    const hasMediaBlobs = this.tables.some(({ name }) => name === "media_blob");
    const missingBlobs = hasMediaBlobs
      ? await client.query("SELECT FROM public.media_blob WHERE held_until IS NULL AND key <> ALL ($1) LIMIT 1", [
          [...this.writtenBlobKeys, ...lostBlobs],
        ])
      : null;
    if (missingBlobs?.rowCount)
      throw createInconsistencyError("the backup lacks media files that its table media_blob lists");
    const targetSequences = new Set((await readSequences(client)).map(({ name }) => name));
    for (const { name, last, called } of sequences) {
      if (targetSequences.has(name))
        await client.query("SELECT setval($1, $2, $3)", [`public.${quoteName(name)}`, last, called]);
    }
    const archivedSequences = new Set(sequences.map(({ name }) => name));
    const missingSequences = [...targetSequences].filter((name) => !archivedSequences.has(name));
    if (missingSequences.length > 0)
      throw createInconsistencyError(`the positions of the sequences ${missingSequences.join(", ")} are missing`);
  }

  /**
   * Writes all rows and media files in one transaction. Calls `beforeCommit` at the end of this transaction, when other
   * sessions see none of the rows yet.
   */
  async loadBackup(parts: AsyncIterator<ArchiveFile>, beforeCommit: () => Promise<void>): Promise<BackupSummary> {
    const { client } = this.options;
    try {
      await this.prepareDatabase();
      const summary = await this.loadParts(parts);
      if (!(await parts.next()).done) throw createInconsistencyError("the file has a part after the summary");
      await this.checkSummary(summary);
      // Executes the deferred checks now, because PostgreSQL alters no table with unfinished checks.
      await client.query("SET CONSTRAINTS ALL IMMEDIATE");
      await this.alterEarlyReferences("NOT DEFERRABLE");
      for (const { name } of this.tables)
        await client.query(`ALTER TABLE public.${quoteName(name)} ENABLE TRIGGER USER`);
      await beforeCommit();
      await client.query("COMMIT");
      return summary;
    } catch (error) {
      // An error is ignored: if the connection is lost, the database rolls the transaction back by itself.
      await client.query("ROLLBACK").catch(() => undefined);
      throw error;
    }
  }

  /** Returns the ID of the media store into which this object has written files; null if the backup contains no media files. */
  async readMediaStoreIdentity(): Promise<string | null> {
    return (await this.store?.readStoreId()) ?? null;
  }

  async removeWrittenFiles(): Promise<void> {
    // Ignores errors, because the restore reports the error that stopped it. Files that remain are in a folder of the media store that no
    // database uses.
    for (const key of this.writtenBlobKeys) await this.store?.remove(key).catch(() => undefined);
  }

  closeStore(): void {
    this.store?.stop();
  }
}

/** True if the partitions follow each other without gaps, from the lowest possible ID to the highest. */
function coversAllIds(archivedBounds: readonly PartitionBounds[]): boolean {
  const followsPrevious = ([low, high]: PartitionBounds, index: number) =>
    low === (index === 0 ? null : archivedBounds[index - 1]![1]) && (low === null || high === null || high > low);
  return (
    archivedBounds.length > 0 &&
    archivedBounds.at(-1)![1] === null &&
    archivedBounds.slice(0, -1).every(([, high]) => high !== null) &&
    archivedBounds.every(followsPrevious)
  );
}
