/**
 * `npm run backup -- FILE`: writes all data of the service into one file. The service can keep running. The last line of output is JSON.
 */
import "reflect-metadata";
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { type Config, readConfig } from "../config.js";
import { openBlobStore } from "../engine/blob-store.js";
import { readKeyFile } from "../engine/key-ring.js";
import { StartError } from "../errors.js";
import { createBackup } from "../operations/backup/backup.js";
import { getSettingsKeyFilePath } from "../operations/settings/data-keys.js";
import { BACKUP_SECRET_OPTIONS, readBackupSecret } from "./backup-secret.js";
import { parseCommandLine, runCommand, withDatabaseUrl } from "./command.js";

const BACKUP_USAGE =
  "Usage: npm run backup -- FILE --passphrase-file FILE, or --key-file FILE, or --unencrypted; --without-keys leaves the settings' keys out";

const OPTIONS = {
  ...BACKUP_SECRET_OPTIONS,
  unencrypted: { type: "boolean", default: false },
  "without-keys": { type: "boolean", default: false },
} as const;

/**
 * Returns the keys that encrypt the settings: those of SETTINGS_KEY, otherwise those in the key file. Returns [] if there is no key file.
 */
function readAvailableKeys({ settingsKeys, dataDir }: Config): readonly Buffer[] {
  const path = getSettingsKeyFilePath(dataDir);
  return settingsKeys ?? (existsSync(path) ? readKeyFile(path) : []);
}

function readBackupTask() {
  const { positionals, values } = parseCommandLine(OPTIONS, BACKUP_USAGE);
  const [file, more] = positionals;
  if (file === undefined || more !== undefined)
    throw new StartError(`Pass the name of exactly one backup file. ${BACKUP_USAGE}`);
  const secret = readBackupSecret(values);
  if ((secret === null) !== values.unencrypted) {
    throw new StartError(
      `Set --passphrase-file or --key-file to encrypt the backup, or --unencrypted. ${BACKUP_USAGE}`,
    );
  }
  return { path: resolve(file), secret, withKeys: secret !== null && !values["without-keys"] };
}

await runCommand(async () => {
  const { path, secret, withKeys } = readBackupTask();
  const config = readConfig();
  if (secret === null) {
    process.stderr.write(
      "warning: the file is not encrypted: everyone who has it can read every row and file, except private and protected settings, whose keys it does not contain\n",
    );
  }
  const folder = join(config.dataDir, "media");
  const openStore = (space: string) => openBlobStore({ folder, bucket: config.mediaBucket, space });
  const keys = withKeys ? readAvailableKeys(config) : null;
  const report = await withDatabaseUrl(config, (url) => createBackup({ url, path, secret, keys, openStore }));
  if (report.lostFiles > 0) {
    process.stderr.write(
      `warning: ${report.lostFiles} files of apps are missing in the media store, so the backup lacks them\n`,
    );
  }
  process.stdout.write(`${JSON.stringify({ file: path, ...report })}\n`);
});
