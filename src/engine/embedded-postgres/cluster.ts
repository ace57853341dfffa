/** The files of a PostgreSQL cluster: making one, and giving its owner a new password. Starts no server that listens. */
import { type SpawnOptions, spawn } from "node:child_process";
import { chownSync, closeSync, existsSync, mkdirSync, openSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { giveTo, type SystemAccount } from "./account.js";
import type { Binaries } from "./binaries.js";
import { EmbeddedPostgresError } from "./failure.js";

export const SUPERUSER = "svc";

/** What every program of the cluster is started with. */
export interface ClusterContext {
  binaries: Binaries;
  account: SystemAccount | null;
  /** Real path of the cluster's folder. */
  clusterDir: string;
}

/**
 * How a program is told of its data folder. The account may be unable to walk the path to it (a checkout under /root),
 * but it starts inside the folder, and this link of the kernel leads there without a walk.
 */
export function dataFolderArgument(folder: string): string {
  return process.platform === "linux" ? "/proc/self/cwd" : folder;
}

/** No variable of ours reaches PostgreSQL: PGDATA, PGPORT and the like would steer it. */
export function spawnOptions(account: SystemAccount | null, folder: string): SpawnOptions {
  return { ...account, cwd: folder, env: { LC_ALL: "C", TZ: "UTC" } };
}

async function runToEnd(program: string, args: string[], options: SpawnOptions, input: number): Promise<void> {
  const child = spawn(program, args, { ...options, stdio: [input, "ignore", "pipe"] });
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", resolve);
  });
  const [code, complaint] = await Promise.all([ended, text(child.stderr!)]);
  if (code === 0) return;
  const reason =
    complaint
      .trim()
      .split("\n")
      .findLast((line) => /error|fatal|denied/i.test(line)) ?? complaint.trim();
  throw new EmbeddedPostgresError(`PostgreSQL could not prepare its data folder (exit code ${code}): ${reason}`);
}

/** Runs `action` with a descriptor that reads `content`: a file that the account may open, gone afterwards. */
async function withInput(
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

/** Makes the cluster beside its place and moves it there when it is whole: a start cut short leaves no half of one. */
export async function createCluster(context: ClusterContext, password: string, sync: boolean): Promise<void> {
  const { binaries, account, clusterDir } = context;
  const draft = `${clusterDir}.new`;
  rmSync(draft, { recursive: true, force: true });
  mkdirSync(draft, { recursive: true, mode: 0o700 });
  giveTo(account, draft);
  const args = [
    "-D",
    dataFolderArgument(draft),
    `--username=${SUPERUSER}`,
    "--pwfile=/dev/stdin",
    "--auth=scram-sha-256",
  ];
  args.push("--encoding=UTF8", "--locale=C", ...(sync ? [] : ["--no-sync"]));
  await withInput(`${clusterDir}.password`, `${password}\n`, account, (fd) =>
    runToEnd(binaries.initdb, args, spawnOptions(account, draft), fd),
  );
  renameSync(draft, clusterDir);
}

/** For a cluster whose password file is lost. The password is of our making: hexadecimal, nothing to quote. */
export async function resetPassword(context: ClusterContext, password: string): Promise<void> {
  const { binaries, account, clusterDir } = context;
  const args = ["--single", "-D", dataFolderArgument(clusterDir), "postgres"];
  await withInput(`${clusterDir}.password`, `ALTER ROLE ${SUPERUSER} PASSWORD '${password}'\n`, account, (fd) =>
    runToEnd(binaries.postgres, args, spawnOptions(account, clusterDir), fd),
  );
}

export function clusterExists(clusterDir: string): boolean {
  return existsSync(join(clusterDir, "PG_VERSION"));
}
