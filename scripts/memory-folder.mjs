/**
 * Creates a folder in memory for the temporary files of tests, mainly databases. On a disk, copying databases takes a third of the tests'
 * time.
 */
import { spawnSync } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const MEMORY_FILE_SYSTEM = "/dev/shm";
/** Type of a tmpfs (file system in memory) in the result of statfs(2). */
const TMPFS_TYPE = 0x01021994;
const FREE_BYTES_MIN = 4 * 2 ** 30;
/** Minimum available memory in bytes. Files in the folder use this memory, also in a container with a memory limit. */
const MEMORY_BYTES_MIN = 6 * 2 ** 30;

function hasEnoughMemory() {
  const { type, bsize, bavail } = statfsSync(MEMORY_FILE_SYSTEM);
  return type === TMPFS_TYPE && bsize * bavail >= FREE_BYTES_MIN && process.availableMemory() >= MEMORY_BYTES_MIN;
}

/** True if programs in the folder can run. Tests start programs there, but some containers mount /dev/shm with the option noexec. */
function canRunPrograms(folder) {
  const program = join(folder, "program");
  writeFileSync(program, "#!/bin/sh\n", { mode: 0o755 });
  const { status } = spawnSync(program);
  rmSync(program);
  return status === 0;
}

function removeAtEnd(folder) {
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.once(signal, () => process.exit(1));
}

/** Creates the folder and returns its path; null if too little memory is free, or if /dev/shm is not in memory or cannot run programs. */
export function createMemoryFolder() {
  try {
    if (!hasEnoughMemory()) return null;
    const folder = mkdtempSync(join(MEMORY_FILE_SYSTEM, "svc-tests-"));
    removeAtEnd(folder);
    // Every account can write, as in /tmp: PostgreSQL and Chromium may run as other accounts.
    chmodSync(folder, 0o1777);
    return canRunPrograms(folder) ? folder : null;
  } catch {
    return null;
  }
}
