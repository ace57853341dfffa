/**
 * Starts one test server for the whole run of mocha, and checks that no process or socket of the tests remains. If several processes share
 * the test files, checks this after each file.
 */
import { readdirSync, readFileSync } from "node:fs";
import { config } from "chai";
import { startTestServer, stopTestServer } from "./postgres.js";
import { closeSharedProcesses, isShared, sharedCount } from "./shared-processes.js";
import { until } from "./until.js";

/** Length of values in messages of failed assertions: enough for the error in a response. */
config.truncateThreshold = 400;

/** Resources that keep a process alive. They remain only if a test does not call `stop()`. */
const LEFTOVER_RESOURCES = ["TCPSocketWrap", "TCPServerWrap", "ProcessWrap"];

/** Returns the command lines of this process's live children, except those that its test files share. */
export function childProcesses(): string[] {
  const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  return pids.flatMap((pid) => {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
      const [state, parent] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
      if (Number(parent) !== process.pid || state === "Z" || isShared(Number(pid))) return [];
      return [readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ").slice(0, 120)];
    } catch {
      return [];
    }
  });
}

function leftovers(): string[] {
  const resources = process.getActiveResourcesInfo().filter((name) => LEFTOVER_RESOURCES.includes(name));
  for (let number = 0; number < sharedCount(); number += 1) {
    const at = resources.indexOf("ProcessWrap");
    if (at !== -1) resources.splice(at, 1);
  }
  return process.platform === "linux" ? [...resources, ...childProcesses()] : resources;
}

/** Starts the server and the shared services in the first process. Other processes get their URLs from their environment. */
export async function mochaGlobalSetup(this: { isParallelMode(): boolean }): Promise<void> {
  if (!this.isParallelMode()) return;
  process.env["TEST_POSTGRES_URL"] = await startTestServer();
  // Loads the whole service, which a process without shared services does not need.
  const { startSharedServices } = await import("./shared-service.js");
  await startSharedServices();
}

export async function mochaGlobalTeardown(): Promise<void> {
  await closeSharedProcesses();
  await stopTestServer();
}

export const mochaHooks = {
  async afterAll() {
    // A mocha worker runs other test files later, so its shared processes stay open.
    if (process.env["MOCHA_WORKER_ID"] === undefined) await closeSharedProcesses();
    await stopTestServer();
    await until(() => leftovers().length === 0).catch(() => {
      throw new Error(`the tests left running: ${leftovers().join("; ")}`);
    });
  },
};
