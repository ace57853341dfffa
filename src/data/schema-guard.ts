/**
 * Checks if this release can run with the schema of the database. A schema version is the number at the end of a migration's name. Read
 * this file if a start fails because of the schema, and before you make a release.
 */
import { StartError } from "../errors.js";

export type ExecuteQuery = <Row>(sql: string) => Promise<Row[]>;

/**
 * Last migration of the previous release. Processes of the previous release can run with the schema of this release; processes of older
 * releases cannot.
 */
export const PREVIOUS_RELEASE_LAST_MIGRATION = "Alerts1763600190100";

/** Schema versions that the newest release stores as a comment of the table `migration`. */
interface SchemaDeclaration {
  /** Version of the schema in the database. */
  newest: number;
  /** Schema version of the oldest release that can run with the schema of the database. */
  oldest: number;
}

const VERSION_DIGITS = 13;
export const getSchemaVersion = (migration: string): number => Number(migration.slice(-VERSION_DIGITS));

/**
 * Returns the reason why this release cannot run with the schema; null if it can.
 * @param releaseMigrations names of the migrations of this release
 * @param appliedMigrations names of the migrations that the database has
 */
export function findSchemaIncompatibility(
  releaseMigrations: readonly string[],
  appliedMigrations: readonly string[],
  schemaDeclaration: SchemaDeclaration | null,
): string | null {
  const unknownMigrations = appliedMigrations.filter((name) => !releaseMigrations.includes(name));
  if (unknownMigrations.length === 0) return null;
  const releaseVersion = Math.max(...releaseMigrations.map(getSchemaVersion));
  const hasAllReleaseMigrations = releaseMigrations.every((name) => appliedMigrations.includes(name));
  const isCoveredByDeclaration = (name: string) =>
    getSchemaVersion(name) > releaseVersion && getSchemaVersion(name) <= schemaDeclaration!.newest;
  if (
    schemaDeclaration !== null &&
    schemaDeclaration.oldest <= releaseVersion &&
    hasAllReleaseMigrations &&
    unknownMigrations.every(isCoveredByDeclaration)
  )
    return null;
  const newestUnknown = unknownMigrations.reduce((newest, other) =>
    getSchemaVersion(other) > getSchemaVersion(newest) ? other : newest,
  );
  return `the database's schema is of a newer release (it has the migration ${newestUnknown}); this release runs with schemas up to version ${releaseVersion}, and with the next release's`;
}

/** Returns the names of the applied migrations, and the stored schema versions. The table `migration` must exist. */
export async function readSchemaState(
  query: ExecuteQuery,
): Promise<{ appliedMigrations: string[]; declaration: SchemaDeclaration | null }> {
  const applied = await query<{ name: string }>("SELECT name FROM migration");
  const [comment] = await query<{ text: string | null }>(
    "SELECT obj_description('migration'::regclass, 'pg_class') AS text",
  );
  const declaration = comment!.text === null ? null : (JSON.parse(comment!.text) as SchemaDeclaration);
  return { appliedMigrations: applied.map(({ name }) => name), declaration };
}

const NEWER_SCHEMA_REMEDY = "start the newer release, or restore a backup that this release can read";

/**
 * Returns the names of the migrations that the database already has.
 * @throws StartError if this release cannot run with the schema
 */
export async function checkSchemaCompatibility(
  query: ExecuteQuery,
  releaseMigrations: readonly string[],
): Promise<string[]> {
  const [stateRow] = await query<{ isMigrated: boolean }>(
    `SELECT to_regclass('migration') IS NOT NULL AS "isMigrated"`,
  );
  if (!stateRow!.isMigrated) return [];
  const { appliedMigrations, declaration } = await readSchemaState(query);
  const fault = findSchemaIncompatibility(releaseMigrations, appliedMigrations, declaration);
  if (fault !== null) throw new StartError(`${fault}: ${NEWER_SCHEMA_REMEDY}`);
  return appliedMigrations;
}

/** Stores which older releases can run with the schema. Call this function after the migrations of this release. */
export async function storeSchemaCompatibility(
  query: ExecuteQuery,
  releaseMigrations: readonly string[],
): Promise<void> {
  const { appliedMigrations, declaration: storedDeclaration } = await readSchemaState(query);
  // Keeps the comment of a newer release that has migrated the schema.
  if (appliedMigrations.some((name) => !releaseMigrations.includes(name))) return;
  const declaration: SchemaDeclaration = {
    newest: Math.max(...releaseMigrations.map(getSchemaVersion)),
    oldest: getSchemaVersion(PREVIOUS_RELEASE_LAST_MIGRATION),
  };
  if (storedDeclaration?.newest === declaration.newest && storedDeclaration.oldest === declaration.oldest) return;
  await query(`COMMENT ON TABLE migration IS '${JSON.stringify(declaration)}'`);
}
