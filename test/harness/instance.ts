/** Starts an instance of the service on a shared database. `npm test` starts it in this process, the long tests as a separate process. */
import { rmSync } from "node:fs";
import { readConfig } from "../../src/config.js";
import { startService } from "../../src/service.js";
import { type ServiceProcess, startProcess } from "./process.js";
import { runsAll } from "./samples.js";

export interface Instance {
  url: string;
  /** Process of the instance in the long tests; null in `npm test`. */
  process: ServiceProcess | null;
  stop(): Promise<void>;
}

const DEFAULTS = {
  PORT: "0",
  LOG_LEVEL: "silent",
  RATE_LIMIT_MANAGE: "0",
  RATE_LIMIT_RUN: "0",
  RATE_LIMIT_PUBLISH: "0",
  RATE_LIMIT_COMMUNICATE: "0",
  RATE_LIMIT_MCP: "0",
};

/**
 * Starts an instance. `environment` must contain DATA_DIR, a folder that `stop` removes. `npm test` starts no separate process, because
 * that takes four times as much processor time.
 */
export async function startInstance(environment: Record<string, string>): Promise<Instance> {
  if (!runsAll()) {
    const { DATA_DIR } = environment;
    const service = await startService(readConfig({ ...DEFAULTS, ...environment, LOG_LEVEL: "silent" }));
    const stop = () => service.stop().finally(() => rmSync(DATA_DIR!, { recursive: true, force: true }));
    return { url: service.url, process: null, stop };
  }
  const child = startProcess(environment);
  const stop = async () => {
    child.signal("SIGTERM");
    await child.ended;
    await child.clean();
  };
  return { url: await child.ready(), process: child, stop };
}
