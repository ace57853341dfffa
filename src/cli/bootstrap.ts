/**
 * `npm run bootstrap`: creates the first app and its credentials in the empty database of DATABASE_URL. The last line of the output is
 * JSON. With `--link`, prints only a link with which one administrator can be created within an hour.
 */
import "reflect-metadata";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type Config, readConfig } from "../config.js";
import { StartError } from "../errors.js";
import { createFirstAppIfEmpty, type FirstCredentials } from "../operations/access/bootstrap.js";
import { People } from "../operations/access/people.js";
import { createAccountModules } from "../operations/accounts/people-accounts.js";
import { type CommandDatabase, parseCommandLine, runCommand, withMigratedDatabase } from "./command.js";

/**
 * Returns PUBLIC_URL, or the URL that the service wrote into credentials.json: with PORT=0, only this file has the port. Without both,
 * returns `http://HOST:PORT`.
 */
function findServiceUrl({ publicUrl, dataDir, host, port }: Config): string {
  if (publicUrl !== null) return publicUrl;
  try {
    return (JSON.parse(readFileSync(join(dataDir, "credentials.json"), "utf8")) as FirstCredentials).baseUrl;
  } catch {
    return `http://${host}:${port}`;
  }
}

async function createAdministratorLink({ db, credentials }: CommandDatabase, baseUrl: string): Promise<string> {
  const people = new People({ db });
  const { accounts } = createAccountModules({ db, credentials, people, baseUrl });
  return (await accounts.createSetupLink()).link;
}

await runCommand(async () => {
  const config = readConfig();
  const { values } = parseCommandLine({ link: { type: "boolean" } }, "Usage: npm run bootstrap [-- --link]");
  const { databaseUrl, dataDir, host, port, publicUrl } = config;
  if (values.link) {
    const link = await withMigratedDatabase(config, (database) =>
      createAdministratorLink(database, findServiceUrl(config)),
    );
    process.stdout.write(`${link}\n`);
    return;
  }
  if (databaseUrl === null) {
    throw new StartError(
      "Set DATABASE_URL. With an embedded database, the service creates the first app when it starts.",
    );
  }
  const baseUrl = publicUrl ?? `http://${host}:${port}`;
  const created = await withMigratedDatabase(config, async (database) => {
    const credentials = await createFirstAppIfEmpty({ ...database, dataDir, baseUrl });
    return credentials && { credentials, setupLink: await createAdministratorLink(database, baseUrl) };
  });
  if (created === null)
    throw new StartError(
      "The database is not empty, so the command created nothing. Use an empty database, or sign in to the existing service.",
    );
  process.stdout.write(`${JSON.stringify(created)}\n`);
});
