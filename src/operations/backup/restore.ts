/**
 * Restores a backup: reads the file to its end, creates the schema of its release, writes its rows and files, and
 * migrates the schema to this release. A failure leaves the database unchanged. No other process changes the schema
 * meanwhile.
 */
import type { Client } from "pg";
import { migrateSchema, migrateToCurrentSchema, withSchemaLock } from "../../data/database.js";
import { MIGRATIONS } from "../../data/migrations.js";
import { ArchiveError } from "../../engine/archive/failure.js";
import type { Secret } from "../../engine/archive/sealing.js";
import { readArchive } from "../../engine/archive.js";
import type { BlobStore } from "../../engine/blob-store/blob.js";
import { StartError } from "../../errors.js";
import { createClient } from "../../postgres.js";
import { ArchiveLoader } from "./load.js";
import {
  type BackupSummary,
  KEYS_FILE,
  type Manifest,
  readKeys,
  readManifest,
  readSummary,
  SUMMARY_FILE,
} from "./manifest.js";

/** Schema that holds the previous contents until the restore is complete. */
const REPLACED_SCHEMA = "svc_before_restore";

export interface RestoreOptions {
  url: string;
  path: string;
  secret: Secret | null;
  /** True to drop the current contents of the database before the restore. */
  replace: boolean;
  /** Stores the backup's keys where this installation reads them. */
  storeKeys: (keys: readonly Buffer[]) => Promise<void>;
  openStore: (space: string) => Promise<BlobStore>;
  /** Removes the media files of a replaced database, if they are in a folder of this machine. */
  removeSpace: (space: string) => Promise<void>;
  /** Absolute path of the folder that holds restored files until the media store has received them. */
  incoming: string;
  /** Creates the indexes on entries that editors have requested. */
  makeIndexes: () => Promise<void>;
  warn: (message: string) => void;
}

export interface RestoreReport {
  manifest: Manifest;
  summary: BackupSummary;
  /** True if the backup contained the keys of the settings. */
  hadKeys: boolean;
}

interface BackupContents {
  manifest: Manifest;
  keys: Buffer[] | null;
}

/** Reads the whole file, its manifest and its summary. @throws ArchiveError */
async function readThrough(path: string, secret: Secret | null): Promise<BackupContents> {
  const backupContents: { manifest: Manifest | null } & Omit<BackupContents, "manifest"> = {
    manifest: null,
    keys: null,
  };
  let last = "";
  for await (const part of readArchive(path, secret)) {
    if (backupContents.manifest === null) backupContents.manifest = readManifest(part);
    else if (part.name === KEYS_FILE) backupContents.keys = readKeys(part);
    else if (part.name === SUMMARY_FILE) readSummary(part);
    last = part.name;
  }
  if (backupContents.manifest === null || last !== SUMMARY_FILE)
    throw new ArchiveError("the file is not a backup of this service");
  return { ...backupContents, manifest: backupContents.manifest };
}

/** Returns the migrations of the backup's schema. @throws ArchiveError if this release lacks one */
function migrationsOf({ migrations, service }: Manifest): typeof MIGRATIONS {
  const archivedNames = new Set(migrations);
  const knownMigrations = MIGRATIONS.filter(({ name }) => archivedNames.has(name));
  if (knownMigrations.length === archivedNames.size) return knownMigrations;
  throw new ArchiveError(
    `a newer release of the service made this backup (${service}); restore the backup with that release`,
  );
}

const DATABASE_CONTENTS = `
  SELECT (SELECT count(*)::int FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p', 'v', 'm', 'S', 'f')
           AND NOT EXISTS (SELECT FROM pg_depend WHERE classid = 'pg_class'::regclass AND objid = pg_class.oid AND deptype = 'e')) AS "objectCount",
         (SELECT count(*)::int FROM pg_namespace WHERE nspname = '${REPLACED_SCHEMA}') AS "replacedCount",
         to_regclass('public.instance') IS NOT NULL AS "hasInstances"`;

/**
 * Moves the existing tables to another schema, so that a failed restore can move them back.
 * @throws StartError if a restore into this database is not possible
 */
async function moveOldTablesAside(client: Client, replace: boolean): Promise<void> {
  const { rows } = await client.query<{ objectCount: number; replacedCount: number; hasInstances: boolean }>(
    DATABASE_CONTENTS,
  );
  const { objectCount, replacedCount, hasInstances } = rows[0]!;
  if (replacedCount > 0) {
    throw new StartError(
      `a restore was interrupted: the earlier data is in the schema ${REPLACED_SCHEMA}. ` +
        `Drop that schema, or drop public and rename ${REPLACED_SCHEMA} to public; then try again`,
    );
  }
  if (objectCount === 0) return;
  if (!replace)
    throw new StartError(
      "the database is not empty, so nothing was restored; use --replace to drop its contents first",
    );
  const liveInstances = hasInstances
    ? await client.query("SELECT FROM public.instance WHERE roles <> '{}' AND lease_until >= now() LIMIT 1")
    : null;
  if (liveInstances?.rowCount)
    throw new StartError("the service is running on this database; stop all its processes first");
  await client.query(`
    BEGIN;
    ALTER SCHEMA public RENAME TO ${REPLACED_SCHEMA};
    CREATE SCHEMA public;
    COMMIT`);
}

/* Drops the tables, sequences and functions in the schema, except objects of extensions. */
const DROP_CONTENTS = `
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

/** Moves the previous contents back after a failed restore. */
async function undoRestore(client: Client): Promise<void> {
  await client.query(DROP_CONTENTS);
  const { rows } = await client.query<{ replacedCount: number }>(DATABASE_CONTENTS);
  if (rows[0]!.replacedCount === 0) return;
  await client.query(`BEGIN; DROP SCHEMA public; ALTER SCHEMA ${REPLACED_SCHEMA} RENAME TO public; COMMIT`);
}

async function loadParts(
  loader: ArchiveLoader,
  options: RestoreOptions,
  { keys }: BackupContents,
): Promise<BackupSummary> {
  const parts = readArchive(options.path, options.secret);
  try {
    // Reads the file a second time. The file's digest proves that its content has not changed since the first reading.
    readManifest((await parts.next()).value ?? undefined);
    if (keys !== null) await parts.next();
    return await loader.run(parts, async () => {
      if (keys !== null) await options.storeKeys(keys);
    });
  } finally {
    await parts.return(undefined);
  }
}

/** Returns the prefix of the previous database's files in the media store, or null if there are none. */
async function replacedPrefix(client: Client): Promise<string | null> {
  const { rows } = await client.query<{ isThere: boolean }>(
    `SELECT to_regclass('${REPLACED_SCHEMA}.media_store') IS NOT NULL AS "isThere"`,
  );
  if (!rows[0]!.isThere) return null;
  const replacedStores = await client.query<{ space: string }>(`SELECT space FROM ${REPLACED_SCHEMA}.media_store`);
  return replacedStores.rows[0]?.space ?? null;
}

/**
 * Creates the schema of the backup's release, inserts the rows, and migrates to this release's schema. On a failure it
 * moves the previous contents back.
 */
async function fillDatabase(
  client: Client,
  options: RestoreOptions,
  backupContents: BackupContents,
): Promise<BackupSummary> {
  const { url, warn } = options;
  const loader = new ArchiveLoader({ ...options, client, manifest: backupContents.manifest });
  try {
    await migrateSchema(url, migrationsOf(backupContents.manifest));
    const summary = await loadParts(loader, options, backupContents);
    await migrateToCurrentSchema(url, async (sql) => (await client.query(sql)).rows);
    await client.query("UPDATE public.media_store SET identity = $1", [await loader.storeIdentity()]);
    const replacedStores = await replacedPrefix(client);
    await client.query(`DROP SCHEMA IF EXISTS ${REPLACED_SCHEMA} CASCADE`);
    if (replacedStores !== null) await options.removeSpace(replacedStores);
    return summary;
  } catch (error) {
    await loader.removeFiles();
    await undoRestore(client).catch(({ message }: Error) =>
      warn(`the unfinished restore could not be undone: ${message}`),
    );
    throw error;
  } finally {
    loader.stop();
  }
}

/**
 * Restores the backup into an empty database, or into one whose contents are replaced.
 * @throws ArchiveError for a fault of the file, before anything has changed; StartError for a fault of the database
 */
export async function restoreBackup(options: RestoreOptions): Promise<RestoreReport> {
  const { url, path, secret, replace } = options;
  const backupContents = await readThrough(path, secret);
  migrationsOf(backupContents.manifest);
  const summary = await withSchemaLock(url, async () => {
    const client = createClient(url, "svc-app-actions restore");
    await client.connect();
    try {
      await moveOldTablesAside(client, replace);
      const summary = await fillDatabase(client, options, backupContents);
      await client.query("ANALYZE");
      return summary;
    } finally {
      await client.end();
    }
  });
  await options.makeIndexes();
  return { manifest: backupContents.manifest, summary, hadKeys: backupContents.keys !== null };
}
