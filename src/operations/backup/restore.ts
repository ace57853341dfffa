/**
 * Restores a backup: reads the file to its end, creates the schema of its release, writes its rows and files, and migrates the schema to
 * this release. A failure leaves the database as it was. No other process changes the schema meanwhile.
 */
import type { Client } from "pg";
import { bringCurrentSchema, bringSchema, MIGRATIONS, withSchemaLock } from "../../data/database.js";
import { ArchiveError } from "../../engine/archive/failure.js";
import type { Secret } from "../../engine/archive/sealing.js";
import { readArchive } from "../../engine/archive.js";
import type { BlobStore } from "../../engine/blob-store/blob.js";
import { StartError } from "../../errors.js";
import { createClient } from "../../postgres.js";
import { Load } from "./load.js";
import { KEYS, type Manifest, readKeys, readManifest, readSummary, SUMMARY, type Summary } from "./manifest.js";

/** Schema that holds the previous contents until the restore is complete. */
const ASIDE = "svc_before_restore";

export interface RestoreOptions {
  url: string;
  path: string;
  secret: Secret | null;
  /** True: drops the contents of the database. */
  replace: boolean;
  /** Stores the backup's keys where this installation reads them. */
  storeKeys: (keys: readonly Buffer[]) => Promise<void>;
  openStore: (space: string) => Promise<BlobStore>;
  /** Removes the files of a replaced database, if they are in a folder of this machine. */
  removeSpace: (space: string) => Promise<void>;
  /** Absolute path of a folder for files before the store receives them. */
  incoming: string;
  /** Creates the indexes on entries that editors have requested. */
  makeIndexes: () => Promise<void>;
  warn: (words: string) => void;
}

export interface RestoreReport {
  manifest: Manifest;
  summary: Summary;
  /** True if the file contained the keys of the settings. */
  hadKeys: boolean;
}

interface Contents {
  manifest: Manifest;
  keys: Buffer[] | null;
}

/** Reads the whole file, its manifest and its summary. @throws ArchiveError */
async function readThrough(path: string, secret: Secret | null): Promise<Contents> {
  const contents: { manifest: Manifest | null } & Omit<Contents, "manifest"> = { manifest: null, keys: null };
  let last = "";
  for await (const part of readArchive(path, secret)) {
    if (contents.manifest === null) contents.manifest = readManifest(part);
    else if (part.name === KEYS) contents.keys = readKeys(part);
    else if (part.name === SUMMARY) readSummary(part);
    last = part.name;
  }
  if (contents.manifest === null || last !== SUMMARY)
    throw new ArchiveError("the file is not a backup of this service");
  return { ...contents, manifest: contents.manifest };
}

/** Returns the migrations of the backup's schema. @throws ArchiveError if this release lacks one */
function migrationsOf({ migrations, service }: Manifest): typeof MIGRATIONS {
  const text = new Set(migrations);
  const own = MIGRATIONS.filter(({ name }) => text.has(name));
  if (own.length === text.size) return own;
  throw new ArchiveError(`a newer release made the backup (${service}): restore it with that release`);
}

const OWN = `
  SELECT (SELECT count(*)::int FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p', 'v', 'm', 'S', 'f')
           AND NOT EXISTS (SELECT FROM pg_depend WHERE classid = 'pg_class'::regclass AND objid = pg_class.oid AND deptype = 'e')) AS things,
         (SELECT count(*)::int FROM pg_namespace WHERE nspname = '${ASIDE}') AS aside,
         to_regclass('public.instance') IS NOT NULL AS "hasInstances"`;

/** @throws StartError if the database cannot be restored into */
async function makeRoom(client: Client, replace: boolean): Promise<void> {
  const { rows } = await client.query<{ things: number; aside: number; hasInstances: boolean }>(OWN);
  const { things, aside, hasInstances } = rows[0]!;
  if (aside > 0) {
    throw new StartError(
      `a restore was interrupted: the earlier data is in the schema ${ASIDE}. ` +
        `Drop that schema, or drop public and rename ${ASIDE} to public; then try again`,
    );
  }
  if (things === 0) return;
  if (!replace)
    throw new StartError("the database is not empty: nothing was restored. --replace drops its content first");
  const living = hasInstances
    ? await client.query("SELECT FROM public.instance WHERE roles <> '{}' AND lease_until >= now() LIMIT 1")
    : null;
  if (living?.rowCount) throw new StartError("the service is running on this database: stop every process first");
  await client.query(`
    BEGIN;
    ALTER SCHEMA public RENAME TO ${ASIDE};
    CREATE SCHEMA public;
    COMMIT`);
}

/* Drops what this user created in the schema, except objects of extensions. */
const CLEAR = `
  DO $$
    DECLARE one record;
    BEGIN
      FOR one IN SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition
                    AND NOT EXISTS (SELECT FROM pg_depend WHERE classid = 'pg_class'::regclass AND objid = pg_class.oid AND deptype = 'e')
      LOOP EXECUTE format('DROP TABLE IF EXISTS public.%I CASCADE', one.relname); END LOOP;
      FOR one IN SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'S'
      LOOP EXECUTE format('DROP SEQUENCE IF EXISTS public.%I CASCADE', one.relname); END LOOP;
      FOR one IN SELECT oid::regprocedure AS name FROM pg_proc WHERE pronamespace = 'public'::regnamespace AND proname LIKE 'svc\\_%'
      LOOP EXECUTE format('DROP FUNCTION IF EXISTS %s CASCADE', one.name); END LOOP;
    END
  $$`;

/** Restores the previous contents. */
async function undo(client: Client): Promise<void> {
  await client.query(CLEAR);
  const { rows } = await client.query<{ aside: number }>(OWN);
  if (rows[0]!.aside === 0) return;
  await client.query(`BEGIN; DROP SCHEMA public; ALTER SCHEMA ${ASIDE} RENAME TO public; COMMIT`);
}

async function load(work: Load, options: RestoreOptions, { keys }: Contents): Promise<Summary> {
  const parts = readArchive(options.path, options.secret);
  try {
    // The second reading must return the same content as the first: the file's digest proves it.
    readManifest((await parts.next()).value ?? undefined);
    if (keys !== null) await parts.next();
    return await work.run(parts, async () => {
      if (keys !== null) await options.storeKeys(keys);
    });
  } finally {
    await parts.return(undefined);
  }
}

/** Returns the prefix of the replaced files in the store; null if there are none. */
async function replacedPrefix(client: Client): Promise<string | null> {
  const { rows } = await client.query<{ isThere: boolean }>(
    `SELECT to_regclass('${ASIDE}.media_store') IS NOT NULL AS "isThere"`,
  );
  if (!rows[0]!.isThere) return null;
  const replaced = await client.query<{ space: string }>(`SELECT space FROM ${ASIDE}.media_store`);
  return replaced.rows[0]?.space ?? null;
}

/** Creates the schema of the backup's release, its contents, then this release's schema; on a failure restores the previous contents. */
async function fill(client: Client, options: RestoreOptions, contents: Contents): Promise<Summary> {
  const { url, warn } = options;
  const work = new Load({ ...options, client, manifest: contents.manifest });
  try {
    await bringSchema(url, migrationsOf(contents.manifest));
    const summary = await load(work, options, contents);
    await bringCurrentSchema(url, async (sql) => (await client.query(sql)).rows);
    await client.query("UPDATE public.media_store SET identity = $1", [await work.storeIdentity()]);
    const replaced = await replacedPrefix(client);
    await client.query(`DROP SCHEMA IF EXISTS ${ASIDE} CASCADE`);
    if (replaced !== null) await options.removeSpace(replaced);
    return summary;
  } catch (error) {
    await work.removeFiles();
    await undo(client).catch(({ message }: Error) => warn(`what was begun could not be taken back: ${message}`));
    throw error;
  } finally {
    work.stop();
  }
}

/**
 * Restores the backup into an empty database, or into one whose contents are replaced.
 * @throws ArchiveError for a fault of the file, before anything has changed; StartError for a fault of the database
 */
export async function restore(options: RestoreOptions): Promise<RestoreReport> {
  const { url, path, secret, replace } = options;
  const contents = await readThrough(path, secret);
  migrationsOf(contents.manifest);
  const summary = await withSchemaLock(url, async () => {
    const client = createClient(url, "svc-app-actions restore");
    await client.connect();
    try {
      await makeRoom(client, replace);
      const filled = await fill(client, options, contents);
      await client.query("ANALYZE");
      return filled;
    } finally {
      await client.end();
    }
  });
  await options.makeIndexes();
  return { manifest: contents.manifest, summary, hadKeys: contents.keys !== null };
}
