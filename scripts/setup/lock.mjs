/** Lets only one set-up run in a checkout. The kernel releases the lock when its holder ends, even after a crash. */
import { spawnSync } from "node:child_process";
import { closeSync, constants, mkdirSync, openSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { printProgress, SetupError } from "./steps.mjs";

const POLL_MS = 200;
const WAIT_MAX_MS = 15 * 60_000;
/** Flag of `open` on macOS that locks the opened folder. macOS has no program `flock`, and Node no constant for the flag. */
const O_EXLOCK = 0x20;

function openAndLockOnMac(folder) {
  try {
    return openSync(folder, constants.O_RDONLY | constants.O_NONBLOCK | O_EXLOCK);
  } catch (error) {
    if (error.code === "EAGAIN") return null;
    throw error;
  }
}

/** Opens and locks the folder; null if another process has locked it. The descriptor keeps the lock after the program `flock` ends. */
function openAndLock(folder) {
  const descriptor = openSync(folder, "r");
  const stdio = ["ignore", "ignore", "pipe", descriptor];
  const { status, stderr, error } = spawnSync("flock", ["-n", "3"], { stdio, encoding: "utf8" });
  if (status === 0) return descriptor;
  closeSync(descriptor);
  if (status === 1 && stderr === "") return null;
  throw error ?? new Error(stderr.trim());
}

function tryLock(folder) {
  try {
    mkdirSync(folder, { recursive: true });
    return process.platform === "darwin" ? openAndLockOnMac(folder) : openAndLock(folder);
  } catch (error) {
    const remedy = error.path === "flock" ? "; install flock, which is in the package util-linux" : "";
    throw new SetupError(`cannot lock the folder ${folder}: ${error.message}${remedy}`);
  }
}

async function acquireLock(folder, limitMs) {
  for (let waited = 0; ; waited += POLL_MS) {
    const descriptor = tryLock(folder);
    if (descriptor !== null) return descriptor;
    if (waited >= limitMs)
      throw new SetupError("another set-up of this checkout is still running; wait for it, or end it");
    if (waited === 0) printProgress("waiting for another set-up of this checkout");
    await delay(POLL_MS);
  }
}

/** Runs `action` with the checkout's lock. Waits at most `limitMs` for a set-up that has the lock. */
export async function withLock(root, action, limitMs = WAIT_MAX_MS) {
  const descriptor = await acquireLock(join(root, ".setup.lock"), limitMs);
  try {
    return await action();
  } finally {
    closeSync(descriptor);
  }
}
