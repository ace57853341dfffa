/**
 * Creates a backup in one file: the database rows of one moment, the media files and, on request, the master keys that encrypt the
 * settings. The service keeps running. Only schema changes, drops of partitions and deletions of media files wait.
 */
import type { Client } from "pg";
import { to as copyTo } from "pg-copy-streams";
import type { BackupSecret } from "../../engine/archive/encryption.js";
import type { ArchiveFile } from "../../engine/archive/tar.js";
import { writeArchive } from "../../engine/archive.js";
import { BlobMissingError, type BlobStore } from "../../engine/blob-store/blob.js";
import { computeKeyFingerprint } from "../../engine/cipher.js";
import { StartError } from "../../errors.js";
import { createClient } from "../../postgres.js";
import { readServiceVersion } from "../../version.js";
import { BACKUP_LOCK_KEY } from "../media/sweep.js";
import {
  BACKUP_FORMAT_VERSION,
  type BackupManifest,
  type BackupSummary,
  createJsonFile,
  KEYS_FILE,
  MANIFEST_FILE,
  SUMMARY_FILE,
} from "./manifest.js";
import {
  type BackupTable,
  PORTABLE_FORMAT_SETTINGS_SQL,
  quoteName,
  readMigrations,
  readPartitions,
  readSequences,
  readTables,
} from "./tables.js";

/** Maximum size of a part in the backup file. Larger tables and media files are split into several parts. */
const PART_MAX_BYTES = 4 * 2 ** 20;
const BLOB_KEYS_PER_QUERY = 1_000;

export interface BackupOptions {
  /** Connection URL of the database itself, not of a connection pooler. */
  url: string;
  /** Path of the backup file. The file must not exist yet. */
  path: string;
  secret: BackupSecret | null;
  /** Master keys that encrypt the settings, if the backup should contain them; otherwise null. */
  keys: readonly Buffer[] | null;
  /** Opens the media store. `space` is the prefix of all file keys that belong to this database. */
  openStore: (space: string) => Promise<BlobStore>;
}

export interface BackupReport {
  rows: number;
  files: number;
  /** Number of media files whose content is missing in the media store. */
  lostFiles: number;
}

/** Splits `bytes` into numbered parts of PART_MAX_BYTES. If `bytes` is empty, yields one empty part. */
async function* splitIntoParts(prefix: string, bytes: AsyncIterable<Buffer>): AsyncGenerator<ArchiveFile> {
  let number = 0;
  let pendingChunks: Buffer[] = [];
  let size = 0;
  const createPart = (content: Buffer): ArchiveFile => ({
    name: `${prefix}/${String(++number).padStart(8, "0")}`,
    content,
  });
  for await (const chunk of bytes) {
    pendingChunks.push(chunk);
    size += chunk.length;
    if (size < PART_MAX_BYTES) continue;
    const all = Buffer.concat(pendingChunks);
    let at = 0;
    for (; all.length - at >= PART_MAX_BYTES; at += PART_MAX_BYTES)
      yield createPart(all.subarray(at, at + PART_MAX_BYTES));
    pendingChunks = [Buffer.from(all.subarray(at))];
    size = all.length - at;
  }
  if (size > 0 || number === 0) yield createPart(Buffer.concat(pendingChunks));
}

class BackupWriter {
  private readonly backupSummary: BackupSummary = { rows: {}, sequences: [], lostBlobs: [], blobs: 0 };

  constructor(
    private readonly client: Client,
    private readonly options: BackupOptions,
  ) {}

  get report(): BackupReport {
    const { rows, blobs, lostBlobs } = this.backupSummary;
    const all = Object.values(rows).reduce((sum, count) => sum + count, 0);
    return { rows: all, files: blobs, lostFiles: lostBlobs.length };
  }

  /**
   * Starts the transaction of the backup and returns its manifest. Locks the tables before the snapshot starts, because a snapshot does not
   * protect against dropped partitions and added columns.
   */
  private async beginBackup(): Promise<BackupManifest> {
    const { client } = this;
    if ((await readMigrations(client)) === null)
      throw new StartError(
        "this database has no tables of the service, so there is nothing to back up; check the address of the database",
      );
    const names = (await readTables(client)).map(({ name }) => `public.${quoteName(name)}`);
    await client.query(`BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; ${PORTABLE_FORMAT_SETTINGS_SQL}`);
    await client.query(`LOCK TABLE public.migration, ${names.join(", ")} IN ACCESS SHARE MODE`);
    const { rows } = await client.query<{ madeAt: Date; postgres: string }>(
      `SELECT now() AS "madeAt", current_setting('server_version') AS postgres`,
    );
    const tables = await readTables(client);
    const partitions: BackupManifest["partitions"] = {};
    for (const { table, low, high } of await readPartitions(client)) {
      partitions[table] = [...(partitions[table] ?? []), [low, high]];
    }
    return {
      format: BACKUP_FORMAT_VERSION,
      madeAt: rows[0]!.madeAt.toISOString(),
      service: readServiceVersion(),
      postgres: rows[0]!.postgres,
      migrations: (await readMigrations(client))!,
      tables,
      partitions,
      settingsKey: await this.readSettingsKeyFingerprint(tables),
    };
  }

  /** Returns the fingerprint of the key for settings; null if the database stores none. @throws StartError if `keys` lacks this key */
  private async readSettingsKeyFingerprint(tables: readonly BackupTable[]): Promise<string | null> {
    if (!tables.some(({ name }) => name === "settings_key")) return null;
    const { rows } = await this.client.query<{ fingerprint: string }>("SELECT fingerprint FROM public.settings_key");
    const storedFingerprint = rows[0]?.fingerprint ?? null;
    const { keys } = this.options;
    if (
      keys === null ||
      storedFingerprint === null ||
      keys.some((key) => computeKeyFingerprint(key) === storedFingerprint)
    )
      return storedFingerprint;
    throw new StartError(
      "none of the available keys decrypts the settings in the database; set SETTINGS_KEY or DATA_DIR to the same value as for the service, or pass --without-keys to back up without the keys",
    );
  }

  private async *readTableParts({ name, columns }: BackupTable): AsyncGenerator<ArchiveFile> {
    const list = columns.map(quoteName).join(", ");
    const stream = this.client.query(copyTo(`COPY (SELECT ${list} FROM public.${quoteName(name)}) TO STDOUT`));
    yield* splitIntoParts(`tables/${name}`, stream as AsyncIterable<Buffer>);
    this.backupSummary.rows[name] = stream.rowCount;
  }

  private async *listBlobKeys(): AsyncGenerator<string> {
    for (let lastKey = ""; ; ) {
      const { rows } = await this.client.query<{ key: string }>(
        `SELECT key FROM public.media_blob WHERE held_until IS NULL AND key > $1 ORDER BY key LIMIT ${BLOB_KEYS_PER_QUERY}`,
        [lastKey],
      );
      for (const { key } of rows) yield key;
      if (rows.length < BLOB_KEYS_PER_QUERY) return;
      lastKey = rows.at(-1)!.key;
    }
  }

  /** Yields the media files, without those of unfinished uploads. No process deletes media files during the backup. */
  private async *readMediaFileParts(): AsyncGenerator<ArchiveFile> {
    const { rows } = await this.client.query<{ space: string }>("SELECT space FROM public.media_store");
    const store = await this.options.openStore(rows[0]!.space);
    try {
      for await (const key of this.listBlobKeys()) {
        const bytes = await store.read(key).catch((error: unknown) => {
          if (error instanceof BlobMissingError) return null;
          throw error;
        });
        if (bytes === null) this.backupSummary.lostBlobs.push(key);
        else {
          yield* splitIntoParts(`blobs/${key}`, bytes);
          this.backupSummary.blobs += 1;
        }
      }
    } finally {
      store.stop();
    }
  }

  async *parts(): AsyncGenerator<ArchiveFile> {
    const manifest = await this.beginBackup();
    yield createJsonFile(MANIFEST_FILE, manifest);
    const { keys } = this.options;
    if (keys !== null && keys.length > 0)
      yield createJsonFile(KEYS_FILE, { keys: keys.map((key) => key.toString("base64")) });
    for (const table of manifest.tables) yield* this.readTableParts(table);
    if (manifest.tables.some(({ name }) => name === "media_store")) yield* this.readMediaFileParts();
    // Reads the positions of sequences last. A database snapshot does not include them, and they must be above all IDs in the backup.
    this.backupSummary.sequences = await readSequences(this.client);
    yield createJsonFile(SUMMARY_FILE, this.backupSummary);
  }
}

/**
 * Writes a backup file.
 * @throws ArchiveError if the file cannot be written; StartError if the database does not belong to this service, or if
 *   the keys of its settings are missing
 */
export async function createBackup(options: BackupOptions): Promise<BackupReport> {
  const client = createClient(options.url, "svc-app-actions backup");
  await client.connect();
  try {
    // Takes the lock before the snapshot starts. While this session holds the lock, no process deletes media files of the snapshot.
    await client.query("SELECT pg_advisory_lock($1)", [BACKUP_LOCK_KEY]);
    const backupWriter = new BackupWriter(client, options);
    await writeArchive(options.path, backupWriter.parts(), options.secret);
    return backupWriter.report;
  } finally {
    await client.end();
  }
}
