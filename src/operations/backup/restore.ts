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

/** Where the schema that was there stands until the restored one is whole. */
const ASIDE = "svc_before_restore";

export interface RestoreOptions {
  url: string;
  path: string;
  secret: Secret | null;
  /** What is in the database is dropped. */
  replace: boolean;
  /** Puts the keys of the backup where this installation finds them. */
  takeKeys: (keys: readonly Buffer[]) => Promise<void>;
  openStore: (space: string) => Promise<BlobStore>;
  /** Removes the files of a database that is replaced, where they are in a folder of this machine. */
  removeSpace: (space: string) => Promise<void>;
  /** Absolute; files come in here before the store takes them. */
  incoming: string;
  /** Makes what editors wish for beside the schema: the indexes of entries. */
  makeIndexes: () => Promise<void>;
  warn: (words: string) => void;
}

export interface RestoreReport {
  manifest: Manifest;
  summary: Summary;
  /** Whether the file had the keys of the settings. */
  hadKeys: boolean;
}

interface Contents {
  manifest: Manifest;
  keys: Buffer[] | null;
}

/** Reads all of the file, and what it says of itself. @throws ArchiveError */
async function readThrough(path: string, secret: Secret | null): Promise<Contents> {
  const contents: { manifest: Manifest | null } & Omit<Contents, "manifest"> = { manifest: null, keys: null };
  let last = "";
  for await (const part of readArchive(path, secret)) {
    if (contents.manifest === null) contents.manifest = readManifest(part);
    else if (part.name === KEYS) contents.keys = readKeys(part);
    else if (part.name === SUMMARY) readSummary(part);
    last = part.name;
  }
  if (contents.manifest === null || last !== SUMMARY) throw new ArchiveError("the file is no backup of this service");
  return { ...contents, manifest: contents.manifest };
}

/** The changes that made the backup's schema. @throws ArchiveError where this release does not know them all */
function migrationsOf({ migrations, service }: Manifest): typeof MIGRATIONS {
  const said = new Set(migrations);
  const own = MIGRATIONS.filter(({ name }) => said.has(name));
  if (own.length === said.size) return own;
  throw new ArchiveError(`the backup is of a newer release (it calls itself ${service}): restore it with that one`);
}

const OWN = `
  SELECT (SELECT count(*)::int FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p', 'v', 'm', 'S', 'f')
           AND NOT EXISTS (SELECT FROM pg_depend WHERE classid = 'pg_class'::regclass AND objid = pg_class.oid AND deptype = 'e')) AS things,
         (SELECT count(*)::int FROM pg_namespace WHERE nspname = '${ASIDE}') AS aside,
         to_regclass('public.instance') IS NOT NULL AS "hasInstances"`;

/** @throws StartError where the database is not the place for it */
async function makeRoom(client: Client, replace: boolean): Promise<void> {
  const { rows } = await client.query<{ things: number; aside: number; hasInstances: boolean }>(OWN);
  const { things, aside, hasInstances } = rows[0]!;
  if (aside > 0) {
    throw new StartError(
      `a restore was cut off: what was there before stands in the schema ${ASIDE}. ` +
        `Drop that schema, or drop public and rename ${ASIDE} to public; then try again`,
    );
  }
  if (things === 0) return;
  if (!replace)
    throw new StartError("the database is not empty: nothing was restored. With --replace what is in it is dropped");
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

/* What this user made in the schema, and no extension's. */
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

/** What was there is there again. */
async function undo(client: Client): Promise<void> {
  await client.query(CLEAR);
  const { rows } = await client.query<{ aside: number }>(OWN);
  if (rows[0]!.aside === 0) return;
  await client.query(`BEGIN; DROP SCHEMA public; ALTER SCHEMA ${ASIDE} RENAME TO public; COMMIT`);
}

async function load(work: Load, options: RestoreOptions, { keys }: Contents): Promise<Summary> {
  const parts = readArchive(options.path, options.secret);
  try {
    // What was read before must be what is read now; the file's digest says whether it is.
    readManifest((await parts.next()).value ?? undefined);
    if (keys !== null) await parts.next();
    return await work.run(parts, async () => {
      if (keys !== null) await options.takeKeys(keys);
    });
  } finally {
    await parts.return(undefined);
  }
}

/** The place in the store of the files that a restore replaces; null if there are none. */
async function replacedSpace(client: Client): Promise<string | null> {
  const { rows } = await client.query<{ isThere: boolean }>(
    `SELECT to_regclass('${ASIDE}.media_store') IS NOT NULL AS "isThere"`,
  );
  if (!rows[0]!.isThere) return null;
  const replaced = await client.query<{ space: string }>(`SELECT space FROM ${ASIDE}.media_store`);
  return replaced.rows[0]?.space ?? null;
}

/** The schema of the backup's release, its contents, this release's schema: or the database as it was. */
async function fill(client: Client, options: RestoreOptions, contents: Contents): Promise<Summary> {
  const { url, warn } = options;
  const work = new Load({ ...options, client, manifest: contents.manifest });
  try {
    await bringSchema(url, migrationsOf(contents.manifest));
    const summary = await load(work, options, contents);
    await bringCurrentSchema(url, async (sql) => (await client.query(sql)).rows);
    await client.query("UPDATE public.media_store SET identity = $1", [await work.storeIdentity()]);
    const replaced = await replacedSpace(client);
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
 * Restores the backup into an empty database, or into one whose contents are to go.
 * @throws ArchiveError what is wrong with the file: then nothing has changed; StartError what is wrong with the database
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
