/** Lock file of a data folder. It contains the ID and the start time of the process that owns the folder. */
import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { EmbeddedPostgresError } from "./failure.js";
import { isProcessAlive, readProcessStartTicks } from "./processes.js";

const LOCK_ATTEMPTS = 10;

interface LockOwner {
  pid: number;
  startTicks: string | null;
}

interface DataFolderLock {
  release(): void;
}

function readText(path: string): string | null {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return null;
  }
}

function parseOwner(text: string | null): LockOwner | null {
  try {
    const owner = JSON.parse(text ?? "") as Partial<LockOwner>;
    return typeof owner.pid === "number" ? { pid: owner.pid, startTicks: owner.startTicks ?? null } : null;
  } catch {
    return null;
  }
}

function findRunningOwner(text: string | null): LockOwner | null {
  const owner = parseOwner(text);
  const isOwnerRunning =
    owner !== null && isProcessAlive(owner.pid) && readProcessStartTicks(owner.pid) === owner.startTicks;
  return isOwnerRunning ? owner : null;
}

/** Creates the lock file together with its content by link(), so that other processes never read an incomplete file. */
function tryCreateLock(path: string, text: string): boolean {
  const temporaryPath = `${path}.${process.pid}`;
  writeFileSync(temporaryPath, text, { mode: 0o600 });
  try {
    linkSync(temporaryPath, path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  } finally {
    rmSync(temporaryPath, { force: true });
  }
}

/**
 * Removes the lock file with the content `staleText`, whose process has ended. Another process may have replaced the file meanwhile. Then
 * this function restores the new file.
 */
function removeStaleLock(path: string, staleText: string | null): void {
  const staleLockPath = `${path}.${process.pid}.stale`;
  try {
    renameSync(path, staleLockPath);
  } catch {
    return;
  }
  const currentText = readText(staleLockPath);
  if (currentText !== staleText && currentText !== null) tryCreateLock(path, currentText);
  rmSync(staleLockPath, { force: true });
}

/** Returns the ID of the running process that holds the lock; null if no running process holds it. */
export function findDataFolderLockHolder(path: string): number | null {
  return findRunningOwner(readText(path))?.pid ?? null;
}

/**
 * Locks a data folder for this process.
 * @throws EmbeddedPostgresError if a running process owns the folder; the message contains its PID
 */
export function acquireDataFolderLock(path: string, folder: string): DataFolderLock {
  const ownerText = JSON.stringify({
    pid: process.pid,
    startTicks: readProcessStartTicks(process.pid),
  } satisfies LockOwner);
  for (let attempt = 0; attempt < LOCK_ATTEMPTS; attempt += 1) {
    if (tryCreateLock(path, ownerText)) {
      return { release: () => readText(path) === ownerText && rmSync(path, { force: true }) };
    }
    const lockText = readText(path);
    const owner = findRunningOwner(lockText);
    if (owner) {
      throw new EmbeddedPostgresError(
        `The data folder ${folder} is in use by process ${owner.pid}: stop that process first, or set another DATA_DIR. To let several processes use one database, set DATABASE_URL.`,
      );
    }
    removeStaleLock(path, lockText);
  }
  throw new EmbeddedPostgresError(
    `The data folder ${folder} could not be locked: other processes keep locking ${path}.`,
  );
}
