/** `npm run restore -- FILE`: a backup into an empty database and this installation's store of files. Its last line is JSON. */
import "reflect-metadata";
import { existsSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join, resolve } from "node:path";
import { pino } from "pino";
import { type Config, readConfig } from "../config.js";
import { openBlobStore } from "../engine/blob-store.js";
import { fingerprint } from "../engine/cipher.js";
import { readKeyFile, writeKeyFile } from "../engine/key-ring.js";
import { StartError } from "../errors.js";
import { type RestoreReport, restore } from "../operations/backup/restore.js";
import { createEntryIndexes } from "../operations/data-sources/entry-indexes.js";
import { settingsKeyFile } from "../operations/settings/data-keys.js";
import { readSecret, SECRET_OPTIONS } from "./backup-secret.js";
import { readArguments, runCommand, withDatabaseUrl } from "./command.js";

const USAGE =
  "Usage: npm run restore -- FILE, with --passphrase-file FILE or --key-file FILE as it was encrypted; --replace drops what the database holds";

const OPTIONS = { ...SECRET_OPTIONS, replace: { type: "boolean", default: false } } as const;

/** A name that the service gives; what a restored row says is not trusted to be a path. */
const SPACE = /^[0-9a-f]{16}$/;

const warn = (words: string) => process.stderr.write(`warning: ${words}\n`);

function keysHere({ settingsKeys, dataDir }: Config): readonly Buffer[] {
  const path = settingsKeyFile(dataDir);
  return settingsKeys ?? (existsSync(path) ? readKeyFile(path) : []);
}

/** Where each process of this installation finds them; what is there stays, behind them. */
async function storeKeys(config: Config, keys: readonly Buffer[]): Promise<void> {
  const here = keysHere(config);
  const missing = keys.filter((key) => !here.some((other) => other.equals(key)));
  if (missing.length === 0) return;
  if (config.settingsKeys !== null) {
    throw new StartError(
      "SETTINGS_KEY lacks a key that the backup's settings are encrypted with: set it to the value of the service that was backed up, or unset it",
    );
  }
  const others = here.filter((key) => !keys.some((other) => other.equals(key)));
  writeKeyFile(settingsKeyFile(config.dataDir), [...keys, ...others]);
}

function describeKeys(config: Config, { manifest, hadKeys }: RestoreReport): void {
  if (hadKeys || manifest.settingsKey === null) return;
  if (keysHere(config).some((key) => fingerprint(key) === manifest.settingsKey)) return;
  warn(
    `the backup has no keys, and the one that its settings are encrypted under (${manifest.settingsKey}) is not here: ` +
      "set SETTINGS_KEY before the service starts",
  );
}

await runCommand(async () => {
  const { positionals, values } = readArguments(OPTIONS, USAGE);
  const [file, more] = positionals;
  if (file === undefined || more !== undefined) throw new StartError(`Name exactly one file. ${USAGE}`);
  const config = readConfig();
  const folder = join(config.dataDir, "media");
  const log = pino({ level: "warn" }, pino.destination(2));
  const report = await withDatabaseUrl(config, (url) =>
    restore({
      url,
      path: resolve(file),
      secret: readSecret(values),
      replace: values.replace,
      storeKeys: (keys) => storeKeys(config, keys),
      openStore: (space) => openBlobStore({ folder, bucket: config.mediaBucket, space }),
      removeSpace: async (space) => {
        if (config.mediaBucket === null && SPACE.test(space))
          await rm(join(folder, space), { recursive: true, force: true });
      },
      incoming: join(folder, "incoming"),
      makeIndexes: () => createEntryIndexes({ url, log }).reconcile(),
      warn,
    }),
  );
  describeKeys(config, report);
  const rows = Object.values(report.summary.rows).reduce((sum, count) => sum + count, 0);
  process.stdout.write(`${JSON.stringify({ madeAt: report.manifest.madeAt, rows, files: report.summary.blobs })}\n`);
});
