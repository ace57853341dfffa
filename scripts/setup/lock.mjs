/** Lock that allows only one set-up at a time in a checkout. It is a folder. The lock of a process that has ended is released. */
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { SetupError, say } from "./steps.mjs";

const POLL_MS = 100;
const LIMIT_MS = 15 * 60_000;
/**
 * Time limit in milliseconds for a lock without a process ID. A process acquires the lock by creating a folder, and then writes its ID into
 * this folder. A lock without an ID for this long counts as released.
 */
const ANONYMOUS_LIMIT_MS = 5_000;

function holderOf(folder) {
  try {
    return Number(readFileSync(join(folder, "pid"), "utf8")) || null;
  } catch {
    return null;
  }
}

function lives(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === "EPERM";
  }
}

function tryTake(folder) {
  try {
    mkdirSync(folder);
  } catch (error) {
    if (error.code === "EEXIST") return false;
    throw new SetupError(`cannot create the folder ${folder}: ${error.message}`);
  }
  writeFileSync(join(folder, "pid"), String(process.pid));
  return true;
}

/**
 * Releases the lock of a process that has ended. Renames the lock's folder before removing it. Only one of several processes can rename it,
 * so no process removes a lock that another one has acquired meanwhile.
 */
function breakLock(folder) {
  const aside = `${folder}.${process.pid}`;
  try {
    renameSync(folder, aside);
  } catch {
    return;
  }
  rmSync(aside, { recursive: true, force: true });
}

async function take(folder, limitMs) {
  let announced = false;
  for (let waited = 0; !tryTake(folder); waited += POLL_MS) {
    const holder = holderOf(folder);
    if (holder ? !lives(holder) : waited >= ANONYMOUS_LIMIT_MS) {
      breakLock(folder);
      continue;
    }
    if (waited >= limitMs) {
      throw new SetupError(
        `another set-up is still running (process ${holder}); if that process does not exist, remove ${folder}`,
      );
    }
    if (!announced) say(`waiting for another set-up, process ${holder ?? "unknown"}`);
    announced = true;
    await delay(POLL_MS);
  }
}

/** Runs `action` while it holds the checkout's lock. Waits at most `limitMs` for another holder. */
export async function withLock(root, action, limitMs = LIMIT_MS) {
  const folder = join(root, ".setup.lock");
  await take(folder, limitMs);
  const release = () => rmSync(folder, { recursive: true, force: true });
  process.once("exit", release);
  try {
    return await action();
  } finally {
    process.off("exit", release);
    release();
  }
}
