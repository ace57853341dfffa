/**
 * `npm run settings:rotate`: encrypts the data key of each app, which encrypts its settings, with a new key while the service runs. Prints
 * no key.
 */
import "reflect-metadata";
import { readConfig } from "../config.js";
import { getSettingsKeyFilePath } from "../operations/settings/data-keys.js";
import { rotateSettingsKey } from "../operations/settings/settings-rotation.js";
import { parseCommandLine, runCommand, withMigratedDatabase } from "./command.js";

const USAGE = "Usage: npm run settings:rotate, without arguments";

await runCommand(async () => {
  parseCommandLine({}, USAGE);
  const config = readConfig();
  const { settingsKeys: keys, dataDir } = config;
  const path = getSettingsKeyFilePath(dataDir);
  const count = await withMigratedDatabase(config, ({ db }) => rotateSettingsKey({ db, keys, path }));
  const where = keys
    ? "the first key of SETTINGS_KEY; you can remove the other keys from SETTINGS_KEY"
    : `a new key in ${path}`;
  process.stdout.write(`The settings of ${count} ${count === 1 ? "app" : "apps"} are encrypted with ${where}.\n`);
});
