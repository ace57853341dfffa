/**
 * Global hooks of mocha. They start the servers that mocha's parallel processes share, and check that the tests leave no process or socket:
 * in parallel mode after each file, otherwise at the end.
 */
import { readdirSync, readFileSync } from "node:fs";
import { config } from "chai";
import { startTestServer, stopTestServer } from "./postgres.js";
import { closeSharedProcesses, isShared, sharedCount } from "./shared-processes.js";
import { until } from "./until.js";

/** Maximum number of characters of a value in the message of a failed assertion. The text of an error response fits. */
config.truncateThreshold = 400;

/** Names of resources that keep this process alive, as process.getActiveResourcesInfo() returns them. */
const LEFTOVER_RESOURCES = ["TCPSocketWrap", "TCPServerWrap", "ProcessWrap"];

/** Returns the command lines of this process's running children, except the shared processes of shared-processes.ts. */
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

/** In parallel mode, starts PostgreSQL and the shared services in the first process. The workers get the URLs by environment variables. */
export async function mochaGlobalSetup(this: { isParallelMode(): boolean }): Promise<void> {
  if (!this.isParallelMode()) return;
  process.env["TEST_POSTGRES_URL"] = await startTestServer();
  // A static import would load the whole service in each process.
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
