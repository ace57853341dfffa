/** Creates the files of a PostgreSQL cluster, and resets its superuser's password. Starts no server that accepts connections. */
import { type SpawnOptions, spawn } from "node:child_process";
import { chownSync, closeSync, existsSync, mkdirSync, openSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { changeFolderOwner, type SystemAccount } from "./account.js";
import type { Binaries } from "./binaries.js";
import { EmbeddedPostgresError } from "./failure.js";

export const SUPERUSER = "svc";

export interface PostgresClusterContext {
  binaries: Binaries;
  account: SystemAccount | null;
  /** Path of the cluster's folder without symbolic links. */
  clusterDir: string;
}

/**
 * Returns a path to `folder` for a program whose working directory is this folder. On Linux, the program then needs no access to the parent
 * folders.
 */
export function getDataFolderArgument(folder: string): string {
  return process.platform === "linux" ? "/proc/self/cwd" : folder;
}

/**
 * Returns options for starting a PostgreSQL program. It gets no environment of this process: variables such as PGDATA would change its
 * behavior.
 */
export function createPostgresSpawnOptions(account: SystemAccount | null, folder: string): SpawnOptions {
  return { ...account, cwd: folder, env: { LC_ALL: "C", TZ: "UTC" } };
}

async function runProgram(program: string, args: string[], options: SpawnOptions, input: number): Promise<void> {
  const child = spawn(program, args, { ...options, stdio: [input, "ignore", "pipe"] });
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", resolve);
  });
  const [code, errorText] = await Promise.all([ended, text(child.stderr!)]);
  if (code === 0) return;
  const reason =
    errorText
      .trim()
      .split("\n")
      .findLast((line) => /error|fatal|denied/i.test(line)) ?? errorText.trim();
  throw new EmbeddedPostgresError(`PostgreSQL could not prepare its data folder (exit code ${code}): ${reason}`);
}

/** Writes `content` to a temporary file that the account can open, and calls `action` with the file's descriptor. */
async function runWithInput(
  path: string,
  content: string,
  account: SystemAccount | null,
  action: (fd: number) => Promise<void>,
): Promise<void> {
  writeFileSync(path, content, { mode: 0o600 });
  const fd = openSync(path, "r");
  try {
    if (account) chownSync(path, account.uid, account.gid);
    await action(fd);
  } finally {
    closeSync(fd);
    rmSync(path, { force: true });
  }
}

/** Creates the cluster in a temporary folder, which is renamed at the end. So an interrupted start leaves no incomplete cluster. */
export async function createPostgresCluster(
  context: PostgresClusterContext,
  password: string,
  sync: boolean,
): Promise<void> {
  const { binaries, account, clusterDir } = context;
  const temporaryPath = `${clusterDir}.new`;
  rmSync(temporaryPath, { recursive: true, force: true });
  mkdirSync(temporaryPath, { recursive: true, mode: 0o700 });
  changeFolderOwner(account, temporaryPath);
  const args = [
    "-D",
    getDataFolderArgument(temporaryPath),
    `--username=${SUPERUSER}`,
    "--pwfile=/dev/stdin",
    "--auth=scram-sha-256",
  ];
  args.push("--encoding=UTF8", "--locale=C", ...(sync ? [] : ["--no-sync"]));
  await runWithInput(`${clusterDir}.password`, `${password}\n`, account, (fd) =>
    runProgram(binaries.initdb, args, createPostgresSpawnOptions(account, temporaryPath), fd),
  );
  renameSync(temporaryPath, clusterDir);
}

/** Sets a new password, because the file with the old one is lost. The password is hexadecimal, so that SQL need not escape it. */
export async function resetSuperuserPassword(context: PostgresClusterContext, password: string): Promise<void> {
  const { binaries, account, clusterDir } = context;
  const args = ["--single", "-D", getDataFolderArgument(clusterDir), "postgres"];
  await runWithInput(`${clusterDir}.password`, `ALTER ROLE ${SUPERUSER} PASSWORD '${password}'\n`, account, (fd) =>
    runProgram(binaries.postgres, args, createPostgresSpawnOptions(account, clusterDir), fd),
  );
}

export function hasPostgresCluster(clusterDir: string): boolean {
  return existsSync(join(clusterDir, "PG_VERSION"));
}
