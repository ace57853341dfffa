/** What surrounds a run of mocha: the test server, and that nothing outlives the tests; of each file where several processes share them out. */
import { readdirSync, readFileSync } from "node:fs";
import { startTestServer, stopTestServer } from "./postgres.js";
import { until } from "./until.js";

/** Resources that keep a process alive and that only a forgotten `stop()` leaves behind. */
const TELLTALE = ["TCPSocketWrap", "TCPServerWrap", "ProcessWrap"];

/** Command lines of this process's living children. */
export function childProcesses(): string[] {
  const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  return pids.flatMap((pid) => {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
      const [state, parent] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
      if (Number(parent) !== process.pid || state === "Z") return [];
      return [readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ").slice(0, 120)];
    } catch {
      return [];
    }
  });
}

function leftovers(): string[] {
  const resources = process.getActiveResourcesInfo().filter((name) => TELLTALE.includes(name));
  return process.platform === "linux" ? [...resources, ...childProcesses()] : resources;
}

/** In the first process. Where others run the files, they find the server by the environment that they are born with. */
export async function mochaGlobalSetup(this: { isParallelMode(): boolean }): Promise<void> {
  if (this.isParallelMode()) process.env["TEST_POSTGRES_URL"] = await startTestServer();
}

export async function mochaGlobalTeardown(): Promise<void> {
  await stopTestServer();
}

export const mochaHooks = {
  async afterAll() {
    await stopTestServer();
    await until(() => leftovers().length === 0).catch(() => {
      throw new Error(`the tests left running: ${leftovers().join("; ")}`);
    });
  },
};
