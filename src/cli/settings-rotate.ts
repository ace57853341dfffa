/** `npm run settings:rotate`: the settings under a new key while the service runs. Prints no key. */
import "reflect-metadata";
import { readConfig } from "../config.js";
import { faultLine } from "../errors.js";
import { settingsKeyFile } from "../operations/data-keys.js";
import { rotateSettingsKey } from "../operations/settings-rotation.js";
import { withCommandDatabase } from "./command-database.js";

try {
  const config = readConfig();
  const { settingsKeys: keys, dataDir } = config;
  const path = settingsKeyFile(dataDir);
  const count = await withCommandDatabase(config, (db) => rotateSettingsKey({ db, keys, path }));
  const where = keys ? "the first key of SETTINGS_KEY; the others may be dropped from it" : `a new key in ${path}`;
  process.stdout.write(`The settings of ${count} ${count === 1 ? "app lies" : "apps lie"} under ${where}.\n`);
} catch (error) {
  process.stderr.write(`${faultLine(error)}\n`);
  process.exitCode = 1;
}
