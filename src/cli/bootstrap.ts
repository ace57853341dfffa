/** `npm run bootstrap`: makes the first app and its credentials in an empty database of somebody else's. Its last line is JSON. */
import "reflect-metadata";
import { readConfig } from "../config.js";
import { StartError } from "../errors.js";
import { bootstrap } from "../operations/access/bootstrap.js";
import { runCommand, withDatabase } from "./command.js";

await runCommand(async () => {
  const config = readConfig();
  const { databaseUrl, dataDir, host, port, publicUrl } = config;
  if (databaseUrl === null) {
    throw new StartError(
      "Set DATABASE_URL: an embedded database gets its first app by itself when the service starts.",
    );
  }
  const baseUrl = publicUrl ?? `http://${host}:${port}`;
  const file = await withDatabase(config, ({ db, credentials }) => bootstrap({ db, credentials, dataDir, baseUrl }));
  if (file === null) throw new StartError("The database is not empty: nothing was made.");
  process.stdout.write(`${JSON.stringify({ credentials: file })}\n`);
});
