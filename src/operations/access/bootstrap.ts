/** Creates the first app in an empty database, so that a new installation can be used without further set-up (contract, section 1). */
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { EntityManager } from "typeorm";
import { type Db, rows, type SqlClient } from "../../data/database.js";
import { StartError } from "../../errors.js";
import type { Credentials } from "./credentials.js";

/** Content of the file credentials.json: the IDs and tokens of the app that the first start creates. */
export interface FirstCredentials {
  baseUrl: string;
  organizationId: number;
  appId: number;
  tokens: Record<"editor" | "admin" | "api" | "viewer" | "live", string>;
}

async function insertRow(executor: SqlClient, sql: string, parameters: unknown[]): Promise<number> {
  const [row] = await rows<{ id: number }>(executor, `${sql} RETURNING id`, parameters);
  return row!.id;
}

type AppWithTokens = Omit<FirstCredentials, "baseUrl">;

/**
 * Creates an organization and an app with three people and five tokens. The people's email addresses start with `editor`, `admin` and
 * `app.user`, end with `emailDomain`, and must not exist yet.
 */
export async function createAppWithTokens(
  manager: EntityManager,
  credentials: Credentials,
  emailDomain: string,
): Promise<AppWithTokens> {
  const organizationId = await insertRow(manager, "INSERT INTO organization (name) VALUES ($1)", [
    "First organization",
  ]);
  const appSql = "INSERT INTO app (organization_id, name) VALUES ($1, $2)";
  const appId = await insertRow(manager, appSql, [organizationId, "First app"]);
  const insertPerson = (role: string, emailLocalPart: string) =>
    insertRow(
      manager,
      "INSERT INTO person (organization_id, first_name, last_name, email) VALUES ($1, 'First', $2, $3)",
      [organizationId, role, `${emailLocalPart}@${emailDomain}`],
    );
  const editorId = await insertPerson("Editor", "editor");
  const adminId = await insertPerson("Admin", "admin");
  const user = await insertPerson("App User", "app.user");
  await manager.query("INSERT INTO app_editor (app_id, person_id) VALUES ($1, $2)", [appId, editorId]);
  await manager.query("INSERT INTO organization_member (organization_id, person_id, role) VALUES ($1, $2, 'owner')", [
    organizationId,
    adminId,
  ]);
  const token = async (credential: Parameters<Credentials["issue"]>[0]) =>
    (await credentials.issue({ name: "first", ...credential }, manager)).token;
  return {
    organizationId,
    appId,
    tokens: {
      editor: await token({ kind: "editor", personId: editorId }),
      admin: await token({ kind: "admin", personId: adminId }),
      api: await token({ kind: "api", appId }),
      viewer: await token({ kind: "viewer", appId, personId: user }),
      live: await token({ kind: "live", appId, personId: user }),
    },
  };
}

/** Replaces the file atomically. Without the flush to disk, a crash could lose the only copy of the tokens. */
function writeCredentialsFile(path: string, content: FirstCredentials): void {
  const temporaryPath = `${path}.draft`;
  try {
    writeFileSync(temporaryPath, `${JSON.stringify(content, null, 2)}\n`, { mode: 0o600, flush: true });
    renameSync(temporaryPath, path);
  } catch (error) {
    rmSync(temporaryPath, { force: true });
    throw error;
  }
}

function writeFirstCredentials(path: string, content: FirstCredentials): void {
  try {
    writeCredentialsFile(path, content);
  } catch (error) {
    const { message } = error as Error;
    throw new StartError(
      `the service could not write the tokens of the first app to ${path}, so it did not create the app: ${message}`,
      { cause: error },
    );
  }
}

/**
 * Creates the first app and writes its credentials to `path`. Returns false if the database already contains an organization.
 * @throws StartError if the file cannot be written; the database is then unchanged
 */
async function createFirstApp(db: Db, credentials: Credentials, path: string, baseUrl: string): Promise<boolean> {
  return db.transaction(async (manager) => {
    // Makes concurrent first starts of several processes wait for each other, so that only one of them creates the first app.
    await manager.query("LOCK TABLE organization IN EXCLUSIVE MODE");
    if ((await rows(manager, "SELECT 1 FROM organization LIMIT 1")).length > 0) return false;
    const first = await createAppWithTokens(manager, credentials, "example.com");
    // The database stores only hashes of the tokens, so the file must exist before the commit. After a failed commit, the next start
    // replaces the file.
    writeFirstCredentials(path, { baseUrl, ...first });
    return true;
  });
}

/**
 * Creates the first app in an empty database and writes its credentials to `credentials.json` (mode 0600) in `dataDir`. Later starts of the
 * service only update the service's URL in that file. Returns the path of the file if this start created it, otherwise null.
 */
export async function createFirstAppIfEmpty(options: {
  db: Db;
  credentials: Credentials;
  dataDir: string;
  baseUrl: string;
}): Promise<string | null> {
  const { db, credentials, dataDir, baseUrl } = options;
  const path = join(dataDir, "credentials.json");
  mkdirSync(dataDir, { recursive: true });
  if (await createFirstApp(db, credentials, path, baseUrl)) return path;
  try {
    const storedCredentials = JSON.parse(readFileSync(path, "utf8")) as FirstCredentials;
    if (storedCredentials.baseUrl !== baseUrl) writeCredentialsFile(path, { ...storedCredentials, baseUrl });
  } catch {
    // Ignores all errors: the operator may have removed the file, and the service itself does not need it.
  }
  return null;
}
