/**
 * Writes the contents of a backup into a database that has the backup's schema and no rows. If one part fails, nothing
 * is written. Names in the file only select tables of the database, so that they cannot become SQL.
 */
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdir, open } from "node:fs/promises";
import { join } from "node:path";
import type { Client } from "pg";
import { from as copyFrom } from "pg-copy-streams";
import { ArchiveError } from "../../engine/archive/failure.js";
import type { TapePart } from "../../engine/archive/tape.js";
import { type BlobStore, isBlobKey } from "../../engine/blob-store/blob.js";
import { type BackupSummary, type Manifest, readSummary, SUMMARY_FILE } from "./manifest.js";
import {
  type PartitionBounds,
  PLAIN_VALUES,
  quoteName,
  readPartitions,
  readSequences,
  readTables,
  type Table,
} from "./tables.js";

const foreignArchive = (reason: string): ArchiveError =>
  new ArchiveError(`the backup is not consistent, so nothing was restored: ${reason}`);

export interface LoadOptions {
  client: Client;
  manifest: Manifest;
  openStore: (space: string) => Promise<BlobStore>;
  /** Absolute path of a folder for temporary files, until the store has received them. */
  incoming: string;
  warn: (message: string) => void;
}

/** Consecutive parts of the file that belong to one table or one media file. */
class PartGroup {
  constructor(
    readonly name: string,
    private readonly parts: AsyncIterator<TapePart>,
    private first: TapePart | null,
  ) {}

  /** First part after this group; null at the end of the file. Set when `contents` has ended. */
  next: TapePart | null = null;

  async *contents(): AsyncGenerator<Buffer> {
    for (let part = this.first; ; ) {
      if (part === null || !part.name.startsWith(`${this.name}/`)) {
        this.next = part;
        return;
      }
      yield part.content;
      this.first = null;
      const { value, done } = await this.parts.next();
      part = done ? null : value;
    }
  }
}

export class ArchiveLoader {
  private readonly copied = new Map<string, number>();
  private readonly put: string[] = [];
  private store: BlobStore | null = null;
  private tables: readonly Table[] = [];

  constructor(private readonly options: LoadOptions) {}

  /**
   * Checks that file and schema have the same tables and columns. Other tables in the database belong to other
   * programs.
   */
  private async compare(): Promise<void> {
    const { client, manifest, warn } = this.options;
    const targetTables = await readTables(client);
    const archivedTables = new Map(manifest.tables.map((table) => [table.name, table]));
    for (const { name, columns } of targetTables) {
      const archivedTable = archivedTables.get(name);
      if (!archivedTable) throw foreignArchive(`the table ${name} is missing`);
      const hasSameColumns =
        archivedTable.columns.length === columns.length &&
        columns.every((column) => archivedTable.columns.includes(column));
      if (!hasSameColumns) throw foreignArchive(`the table ${name} has other columns than in its release`);
    }
    const names = new Set(targetTables.map(({ name }) => name));
    const unknownTables = manifest.tables.filter(({ name }) => !names.has(name)).map(({ name }) => name);
    if (unknownTables.length > 0)
      warn(`tables that do not belong to the service are left out: ${unknownTables.join(", ")}`);
    this.tables = manifest.tables.filter(({ name }) => names.has(name));
  }

  /** Creates the partitions of the backed up tables, so that old rows are dropped when due. */
  private async makePartitions(): Promise<void> {
    const { client, manifest } = this.options;
    const existingPartitions = Map.groupBy(await readPartitions(client), ({ table }) => table);
    for (const [table, partitions] of existingPartitions) {
      const archivedBounds = manifest.partitions[table];
      if (!archivedBounds || !coversAllRows(archivedBounds))
        throw foreignArchive(`the partitions of the table ${table} overlap or have gaps`);
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

  private async prepare(): Promise<void> {
    const { client } = this.options;
    await client.query(`BEGIN; ${PLAIN_VALUES}`);
    await this.compare();
    await this.makePartitions();
    const names = this.tables.map(({ name }) => `public.${quoteName(name)}`);
    // Removes the rows that migrations write into every database.
    await client.query(`TRUNCATE ${names.join(", ")}`);
    for (const name of names) await client.query(`ALTER TABLE ${name} DISABLE TRIGGER USER`);
  }

  private async copyTable(group: PartGroup, table: Table | undefined): Promise<void> {
    if (this.copied.has(group.name)) throw foreignArchive(`the part ${group.name} appears twice`);
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
    // Prevents an unhandled rejection: the loop may fail before this promise is awaited, and the await reports the
    // failure.
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
    this.copied.set(group.name, stream.rowCount);
  }

  private async openStore(): Promise<BlobStore> {
    const { client, openStore, incoming } = this.options;
    // The database gets a new prefix in the store, because two databases with one prefix would remove each other's
    // files.
    const { rows } = await client.query<{ space: string }>(
      "UPDATE public.media_store SET space = left(replace(gen_random_uuid()::text, '-', ''), 16) RETURNING space",
    );
    if (!rows[0]) throw foreignArchive("the backup contains media files, but the table media_store is empty");
    await mkdir(incoming, { recursive: true, mode: 0o700 });
    const store = await openStore(rows[0].space);
    await store.check();
    return store;
  }

  private async putBlob(group: PartGroup): Promise<void> {
    const key = group.name.slice("blobs/".length);
    if (!isBlobKey(key)) throw foreignArchive("a media file has an invalid key");
    this.store ??= await this.openStore();
    const temporaryPath = join(this.options.incoming, `restore-${randomBytes(8).toString("hex")}`);
    const file = await open(temporaryPath, "wx", 0o600);
    try {
      for await (const content of group.contents()) await file.writeFile(content);
      await file.sync();
    } finally {
      await file.close();
    }
    this.put.push(key);
    await this.store.put(key, temporaryPath);
  }

  /** Writes all tables and files. @returns the summary, which is the last part */
  private async loadParts(parts: AsyncIterator<TapePart>): Promise<BackupSummary> {
    const byName = new Map(this.tables.map((table) => [`tables/${table.name}`, table]));
    const { value, done } = await parts.next();
    for (let part: TapePart | null = done ? null : value; part !== null; ) {
      if (part.name === SUMMARY_FILE) return readSummary(part);
      const group = new PartGroup(part.name.slice(0, part.name.lastIndexOf("/")), parts, part);
      if (group.name.startsWith("tables/")) await this.copyTable(group, byName.get(group.name));
      else if (group.name.startsWith("blobs/")) await this.putBlob(group);
      else throw foreignArchive(`the part ${part.name} is unknown`);
      part = group.next;
    }
    throw foreignArchive("the summary is missing");
  }

  /** Checks that the counts in the summary match the loaded rows, and that no media file is missing. */
  private async check({ rows: expectedRows, blobs, lostBlobs, sequences }: BackupSummary): Promise<void> {
    const { client } = this.options;
    for (const { name } of this.tables) {
      if (this.copied.get(`tables/${name}`) !== expectedRows[name])
        throw foreignArchive(`the table ${name} has another number of rows than the summary states`);
    }
    if (blobs !== this.put.length) throw foreignArchive("the number of media files differs from the summary");
    const hasMediaBlobs = this.tables.some(({ name }) => name === "media_blob");
    const missingBlobs = hasMediaBlobs
      ? await client.query("SELECT FROM public.media_blob WHERE held_until IS NULL AND key <> ALL ($1) LIMIT 1", [
          [...this.put, ...lostBlobs],
        ])
      : null;
    if (missingBlobs?.rowCount) throw foreignArchive("media files that the table media_blob lists are missing");
    const targetSequences = new Set((await readSequences(client)).map(({ name }) => name));
    for (const { name, last, called } of sequences) {
      if (targetSequences.has(name))
        await client.query("SELECT setval($1, $2, $3)", [`public.${quoteName(name)}`, last, called]);
    }
    const foundSequences = new Set(sequences.map(({ name }) => name));
    const missingSequences = [...targetSequences].filter((name) => !foundSequences.has(name));
    if (missingSequences.length > 0)
      throw foreignArchive(`the positions of the sequences ${missingSequences.join(", ")} are missing`);
  }

  /** Writes all rows and files. Calls `beforeCommit` when everything is written and nothing is visible yet. */
  async run(parts: AsyncIterator<TapePart>, beforeCommit: () => Promise<void>): Promise<BackupSummary> {
    const { client } = this.options;
    try {
      await this.prepare();
      const summary = await this.loadParts(parts);
      // The file is complete only if it ends after its summary.
      if (!(await parts.next()).done) throw foreignArchive("data follows the summary");
      await this.check(summary);
      for (const { name } of this.tables)
        await client.query(`ALTER TABLE public.${quoteName(name)} ENABLE TRIGGER USER`);
      await beforeCommit();
      await client.query("COMMIT");
      return summary;
    } catch (error) {
      // If the connection is lost, the database rolls back by itself.
      await client.query("ROLLBACK").catch(() => undefined);
      throw error;
    }
  }

  /** Returns the identity of the media store; null if the backup has no files. */
  async storeIdentity(): Promise<string | null> {
    return (await this.store?.identity()) ?? null;
  }

  /** Removes the files of a failed restore. */
  async removeFiles(): Promise<void> {
    for (const key of this.put) await this.store?.remove(key).catch(() => undefined);
  }

  stop(): void {
    this.store?.stop();
  }
}

/** True if the bounds cover all numbers without a gap. */
function coversAllRows(archivedBounds: readonly PartitionBounds[]): boolean {
  const followsPrevious = ([low, high]: PartitionBounds, at: number) =>
    low === (at === 0 ? null : archivedBounds[at - 1]![1]) && (low === null || high === null || high > low);
  return (
    archivedBounds.length > 0 &&
    archivedBounds.at(-1)![1] === null &&
    archivedBounds.slice(0, -1).every(([, high]) => high !== null) &&
    archivedBounds.every(followsPrevious)
  );
}
