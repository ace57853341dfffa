/**
 * Creates a folder in memory for the temporary files of tests, above all databases. On a disk, copying databases takes a third of the
 * tests' time.
 */
import { spawnSync } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const MEMORY = "/dev/shm";
/** Type number that statfs(2) reports for a tmpfs. */
const TMPFS = 0x01021994;
const FREE_BYTES_MIN = 4 * 2 ** 30;
/** Minimum available memory in bytes. Files in memory count as used memory, also against the limit of a container. */
const MEMORY_BYTES_MIN = 6 * 2 ** 30;

function hasRoom() {
  const { type, bsize, bavail } = statfsSync(MEMORY);
  return type === TMPFS && bsize * bavail >= FREE_BYTES_MIN && process.availableMemory() >= MEMORY_BYTES_MIN;
}

/**
 * True if programs in the folder can run, which tests need. Some containers mount the folder with the option noexec, which prevents this.
 */
function runsPrograms(folder) {
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

/** Creates the folder and returns its path. Returns null if this machine has too little memory, or no file system in memory. */
export function createMemoryFolder() {
  try {
    if (!hasRoom()) return null;
    const folder = mkdtempSync(join(MEMORY, "svc-tests-"));
    removeAtEnd(folder);
    // Gives the folder the same mode as /tmp, because PostgreSQL and Chromium run as other accounts.
    chmodSync(folder, 0o1777);
    return runsPrograms(folder) ? folder : null;
  } catch {
    return null;
  }
}
