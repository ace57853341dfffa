/**
 * `npm run restore -- FILE`: restores a backup into this installation's media store and an empty database. With --replace, it first deletes
 * the content of the database. The last line of the output is JSON.
 */
import "reflect-metadata";
import { existsSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join, resolve } from "node:path";
import { pino } from "pino";
import { type Config, readConfig } from "../config.js";
import { openBlobStore } from "../engine/blob-store.js";
import { computeKeyFingerprint } from "../engine/cipher.js";
import { readKeyFile, writeKeyFile } from "../engine/key-ring.js";
import { StartError } from "../errors.js";
import { type BackupRestoreReport, restoreBackup } from "../operations/backup/restore.js";
import { EntryIndexes } from "../operations/data-sources/entry-indexes.js";
import { getSettingsKeyFilePath } from "../operations/settings/data-keys.js";
import { BACKUP_SECRET_OPTIONS, readBackupSecret } from "./backup-secret.js";
import { parseCommandLine, runCommand, withDatabaseUrl } from "./command.js";

const USAGE =
  "Usage: npm run restore -- FILE, with --passphrase-file FILE or --key-file FILE as it was encrypted; --replace deletes the previous content of the database";

const OPTIONS = { ...BACKUP_SECRET_OPTIONS, replace: { type: "boolean", default: false } } as const;

/**
 * Matches names of media folders. The command removes no folder with another name, because the name could be a path outside of the media
 * store.
 */
const MEDIA_FOLDER_NAME_PATTERN = /^[0-9a-f]{16}$/;

const writeWarning = (message: string) => process.stderr.write(`warning: ${message}\n`);

function readAvailableKeys({ settingsKeys, dataDir }: Config): readonly Buffer[] {
  const path = getSettingsKeyFilePath(dataDir);
  return settingsKeys ?? (existsSync(path) ? readKeyFile(path) : []);
}

/**
 * Adds the backup's keys to this installation's key file.
 * @throws StartError if SETTINGS_KEY, which replaces the file, is set and lacks one of the keys
 */
async function storeKeys(config: Config, keys: readonly Buffer[]): Promise<void> {
  const availableKeys = readAvailableKeys(config);
  const missingKeys = keys.filter((key) => !availableKeys.some((other) => other.equals(key)));
  if (missingKeys.length === 0) return;
  if (config.settingsKeys !== null) {
    throw new StartError(
      "SETTINGS_KEY lacks a key that the backup contains for its settings. Set SETTINGS_KEY to the value that the backed-up service had. Or unset SETTINGS_KEY: this command then stores the backup's keys in DATA_DIR",
    );
  }
  const otherKeys = availableKeys.filter((key) => !keys.some((other) => other.equals(key)));
  writeKeyFile(getSettingsKeyFilePath(config.dataDir), [...keys, ...otherKeys]);
}

function warnAboutMissingKey(config: Config, { manifest, containedKeys }: BackupRestoreReport): void {
  if (containedKeys || manifest.settingsKey === null) return;
  if (readAvailableKeys(config).some((key) => computeKeyFingerprint(key) === manifest.settingsKey)) return;
  writeWarning(
    `the backup contains no keys, and this installation lacks the key of the backup's settings (${manifest.settingsKey}): ` +
      "set SETTINGS_KEY before the service starts",
  );
}

await runCommand(async () => {
  const { positionals, values } = parseCommandLine(OPTIONS, USAGE);
  const [file, more] = positionals;
  if (file === undefined || more !== undefined)
    throw new StartError(`Pass the name of exactly one backup file. ${USAGE}`);
  const config = readConfig();
  const folder = join(config.dataDir, "media");
  const log = pino({ level: "warn" }, pino.destination(2));
  const report = await withDatabaseUrl(config, (url) =>
    restoreBackup({
      url,
      path: resolve(file),
      secret: readBackupSecret(values),
      replace: values.replace,
      storeKeys: (keys) => storeKeys(config, keys),
      openStore: (space) => openBlobStore({ folder, bucket: config.mediaBucket, space }),
      removeMediaFiles: async (space) => {
        if (config.mediaBucket === null && MEDIA_FOLDER_NAME_PATTERN.test(space))
          await rm(join(folder, space), { recursive: true, force: true });
      },
      temporaryDir: join(folder, "incoming"),
      createIndexes: () => new EntryIndexes({ url, log }).reconcile(),
      logWarning: writeWarning,
    }),
  );
  warnAboutMissingKey(config, report);
  const rows = Object.values(report.summary.rows).reduce((sum, count) => sum + count, 0);
  process.stdout.write(`${JSON.stringify({ madeAt: report.manifest.madeAt, rows, files: report.summary.blobs })}\n`);
});
