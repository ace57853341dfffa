/**
 * Restores a backup: creates the schema of the backup's release, writes the rows and media files, and migrates the schema to this release.
 * If one of these steps fails, the previous tables are moved back. A lock keeps other processes from changing the schema.
 */
import type { Client } from "pg";
import { migrateSchema, migrateToCurrentSchema, withSchemaLock } from "../../data/database.js";
import { MIGRATIONS } from "../../data/migrations.js";
import type { BackupSecret } from "../../engine/archive/encryption.js";
import { ArchiveError } from "../../engine/archive/failure.js";
import { readArchive } from "../../engine/archive.js";
import type { BlobStore } from "../../engine/blob-store/blob.js";
import { StartError } from "../../errors.js";
import { createClient } from "../../postgres.js";
import { BackupLoader } from "./load.js";
import {
  type BackupManifest,
  type BackupSummary,
  KEYS_FILE,
  parseBackupManifest,
  parseBackupSummary,
  parseMasterKeys,
  SUMMARY_FILE,
} from "./manifest.js";

/** Name of the schema that holds the previous tables until the restore is complete. */
const PREVIOUS_TABLES_SCHEMA = "svc_before_restore";

export interface BackupRestoreOptions {
  url: string;
  path: string;
  secret: BackupSecret | null;
  /** True to replace the database's current content. If false, the restore only accepts an empty database. */
  replace: boolean;
  /** Adds the master keys of the settings from the backup to the keys of this installation. */
  storeKeys: (keys: readonly Buffer[]) => Promise<void>;
  openStore: (space: string) => Promise<BlobStore>;
  /** Deletes the media files of the previous database content, if they are in a folder of this machine. */
  removeMediaFiles: (space: string) => Promise<void>;
  /** Absolute path of a folder that holds restored media files until the media store has received them. */
  temporaryDir: string;
  /** Creates the indexes of data sources that editors have defined. */
  createIndexes: () => Promise<void>;
  logWarning: (message: string) => void;
}

export interface BackupRestoreReport {
  manifest: BackupManifest;
  summary: BackupSummary;
  containedKeys: boolean;
}

interface BackupContents {
  manifest: BackupManifest;
  keys: Buffer[] | null;
}

/** Reads and checks the whole backup file before the restore changes the database. Returns its manifest and keys. @throws ArchiveError */
async function readWholeBackup(path: string, secret: BackupSecret | null): Promise<BackupContents> {
  const backupContents: { manifest: BackupManifest | null } & Omit<BackupContents, "manifest"> = {
    manifest: null,
    keys: null,
  };
  let last = "";
  for await (const part of readArchive(path, secret)) {
    if (backupContents.manifest === null) backupContents.manifest = parseBackupManifest(part);
    else if (part.name === KEYS_FILE) backupContents.keys = parseMasterKeys(part);
    else if (part.name === SUMMARY_FILE) parseBackupSummary(part);
    last = part.name;
  }
  if (backupContents.manifest === null) throw new ArchiveError("the file is not a backup of Svc App Actions");
  if (last !== SUMMARY_FILE)
    throw new ArchiveError(`the backup is not complete: its last part must be ${SUMMARY_FILE} (got ${last})`);
  return { ...backupContents, manifest: backupContents.manifest };
}

/** Returns the migrations of the backed-up database. @throws ArchiveError if this release lacks one of them */
function requireKnownMigrations({ migrations, service }: BackupManifest): typeof MIGRATIONS {
  const backupMigrationNames = new Set(migrations);
  const knownMigrations = MIGRATIONS.filter(({ name }) => backupMigrationNames.has(name));
  if (knownMigrations.length === backupMigrationNames.size) return knownMigrations;
  throw new ArchiveError(
    `a newer release of the service made this backup (release ${service}); restore the backup with that release`,
  );
}

const COUNT_DATABASE_CONTENTS = `
  SELECT (SELECT count(*)::int FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p', 'v', 'm', 'S', 'f')
           AND NOT EXISTS (SELECT FROM pg_depend WHERE classid = 'pg_class'::regclass AND objid = pg_class.oid AND deptype = 'e')) AS "objectCount",
         (SELECT count(*)::int FROM pg_namespace WHERE nspname = '${PREVIOUS_TABLES_SCHEMA}') AS "replacedCount",
         to_regclass('public.instance') IS NOT NULL AS "hasInstances"`;

/**
 * Moves the existing tables to the schema PREVIOUS_TABLES_SCHEMA, so that a failed restore can move them back.
 * @param replace true if the restore may replace existing tables
 * @throws StartError if a restore into this database is not possible
 */
async function moveOldTablesAside(client: Client, replace: boolean): Promise<void> {
  const { rows } = await client.query<{ objectCount: number; replacedCount: number; hasInstances: boolean }>(
    COUNT_DATABASE_CONTENTS,
  );
  const { objectCount, replacedCount, hasInstances } = rows[0]!;
  if (replacedCount > 0) {
    throw new StartError(
      `a restore was interrupted: the previous tables are in the schema ${PREVIOUS_TABLES_SCHEMA}. ` +
        `To get them back, run DROP SCHEMA public CASCADE, then ALTER SCHEMA ${PREVIOUS_TABLES_SCHEMA} RENAME TO public. ` +
        `To discard them, run DROP SCHEMA ${PREVIOUS_TABLES_SCHEMA} CASCADE. Then try again`,
    );
  }
  if (objectCount === 0) return;
  if (!replace)
    throw new StartError("the database is not empty, so nothing was restored; use --replace to replace its contents");
  const liveInstances = hasInstances
    ? await client.query("SELECT FROM public.instance WHERE roles <> '{}' AND lease_until >= now() LIMIT 1")
    : null;
  if (liveInstances?.rowCount)
    throw new StartError("the service is running on this database; stop all its processes first");
  await client.query(`
    BEGIN;
    ALTER SCHEMA public RENAME TO ${PREVIOUS_TABLES_SCHEMA};
    CREATE SCHEMA public;
    COMMIT`);
}

/* Drops the tables and sequences in the schema `public`, except tables of extensions. Also drops the service's functions (`svc_…`). */
const DROP_DATABASE_CONTENTS = `
  DO $$
    DECLARE item record;
    BEGIN
      FOR item IN SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition
                    AND NOT EXISTS (SELECT FROM pg_depend WHERE classid = 'pg_class'::regclass AND objid = pg_class.oid AND deptype = 'e')
      LOOP EXECUTE format('DROP TABLE IF EXISTS public.%I CASCADE', item.relname); END LOOP;
      FOR item IN SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'S'
      LOOP EXECUTE format('DROP SEQUENCE IF EXISTS public.%I CASCADE', item.relname); END LOOP;
      FOR item IN SELECT oid::regprocedure AS name FROM pg_proc WHERE pronamespace = 'public'::regnamespace AND proname LIKE 'svc\\_%'
      LOOP EXECUTE format('DROP FUNCTION IF EXISTS %s CASCADE', item.name); END LOOP;
    END
  $$`;

/** After a failed restore, deletes the restored tables and moves the previous tables back to the schema `public`. */
async function undoRestore(client: Client): Promise<void> {
  await client.query(DROP_DATABASE_CONTENTS);
  const { rows } = await client.query<{ replacedCount: number }>(COUNT_DATABASE_CONTENTS);
  if (rows[0]!.replacedCount === 0) return;
  await client.query(`BEGIN; DROP SCHEMA public; ALTER SCHEMA ${PREVIOUS_TABLES_SCHEMA} RENAME TO public; COMMIT`);
}

/** Undoes a failed restore. Keeps the restored files if the restored rows may remain, because these rows need the files. */
async function undoRestoreWithFiles(
  client: Client,
  loader: BackupLoader,
  { logWarning }: BackupRestoreOptions,
): Promise<void> {
  try {
    await undoRestore(client);
  } catch (error) {
    logWarning(`the unfinished restore could not be undone: ${(error as Error).message}`);
    return;
  }
  await loader.removeWrittenFiles();
}

/** Deletes the media files of the previous database content. If this fails, the restore is complete nevertheless. */
async function removePreviousFiles(
  prefix: string,
  { removeMediaFiles, logWarning }: BackupRestoreOptions,
): Promise<void> {
  try {
    await removeMediaFiles(prefix);
  } catch (error) {
    logWarning(
      `the restore is complete, but the old files in DATA_DIR/media/${prefix} could not be deleted; ` +
        `delete this folder: ${(error as Error).message}`,
    );
  }
}

async function loadParts(
  loader: BackupLoader,
  options: BackupRestoreOptions,
  { keys }: BackupContents,
): Promise<BackupSummary> {
  const parts = readArchive(options.path, options.secret);
  try {
    // The first reading only checked the backup file. This second reading writes its content to the database.
    parseBackupManifest((await parts.next()).value ?? undefined);
    if (keys !== null) await parts.next();
    return await loader.loadBackup(parts, async () => {
      if (keys !== null) await options.storeKeys(keys);
    });
  } finally {
    await parts.return(undefined);
  }
}

/** Returns the prefix of all file keys that belong to the previous database; null if there was no previous database. */
async function readPreviousStorePrefix(client: Client): Promise<string | null> {
  const { rows } = await client.query<{ exists: boolean }>(
    `SELECT to_regclass('${PREVIOUS_TABLES_SCHEMA}.media_store') IS NOT NULL AS "exists"`,
  );
  if (!rows[0]!.exists) return null;
  const replacedStores = await client.query<{ space: string }>(
    `SELECT space FROM ${PREVIOUS_TABLES_SCHEMA}.media_store`,
  );
  return replacedStores.rows[0]?.space ?? null;
}

/** Restores the backup into the schema of its release, and migrates the schema to this release. After a failure, moves old tables back. */
async function restoreIntoDatabase(
  client: Client,
  options: BackupRestoreOptions,
  backupContents: BackupContents,
): Promise<BackupSummary> {
  const { url } = options;
  const loader = new BackupLoader({ ...options, client, manifest: backupContents.manifest });
  let previousPrefix: string | null;
  let summary: BackupSummary;
  try {
    await migrateSchema(url, requireKnownMigrations(backupContents.manifest));
    summary = await loadParts(loader, options, backupContents);
    await migrateToCurrentSchema(url, async (sql) => (await client.query(sql)).rows);
    await client.query("UPDATE public.media_store SET identity = $1", [await loader.readMediaStoreIdentity()]);
    previousPrefix = await readPreviousStorePrefix(client);
    await client.query(`DROP SCHEMA IF EXISTS ${PREVIOUS_TABLES_SCHEMA} CASCADE`);
  } catch (error) {
    await undoRestoreWithFiles(client, loader, options);
    throw error;
  } finally {
    loader.closeStore();
  }
  // Without the previous tables, the restore cannot be undone, so an error from here on must not start the rollback.
  if (previousPrefix !== null) await removePreviousFiles(previousPrefix, options);
  return summary;
}

/**
 * Restores a backup into an empty database. With `replace`, the database may have content, which the restore deletes.
 * @throws ArchiveError if the file is damaged or not consistent; StartError if the database cannot be used. In both cases, the database
 *   has its previous content
 */
export async function restoreBackup(options: BackupRestoreOptions): Promise<BackupRestoreReport> {
  const { url, path, secret, replace } = options;
  const backupContents = await readWholeBackup(path, secret);
  requireKnownMigrations(backupContents.manifest);
  const summary = await withSchemaLock(url, async () => {
    const client = createClient(url, "svc-app-actions restore");
    await client.connect();
    try {
      await moveOldTablesAside(client, replace);
      const summary = await restoreIntoDatabase(client, options, backupContents);
      await client.query("ANALYZE");
      return summary;
    } finally {
      await client.end();
    }
  });
  await options.createIndexes();
  return { manifest: backupContents.manifest, summary, containedKeys: backupContents.keys !== null };
}
