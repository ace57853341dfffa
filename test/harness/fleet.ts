/** Runs several instances of the service on one database. Restarts each instance that ends, like a supervisor. */
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type ServiceProcess, startProcess } from "./process.js";
import { until } from "./until.js";

const INSTANCE_PROGRAM = fileURLToPath(new URL("./instance-process.js", import.meta.url));
const READY_LIMIT_MS = 120_000;

export interface ServiceFleet {
  /** Kills the process of one instance, selected at random. */
  killInstance(): void;
  /** Kills one process of an instance's browser, selected at random: the main process, a renderer or a helper. */
  killBrowser(): void;
  urls(): string[];
  /** Resolves when all instances are ready. */
  ready(): Promise<unknown>;
  stop(): Promise<void>;
  kills(): number;
  /** Exit code or signal, and standard error, of each ready instance that ended without SIGKILL. */
  crashes(): string[];
  /** Stack of each unexpected error in the instances' logs, from requests and from operations on actions. */
  faults(): string[];
}

export const ALL_ROLES = "api,scheduler,runner";

function endProcess(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // Ignores the error: the process has already ended.
  }
}

/** Creates a data folder for one process. Its media folder is a link to a folder that all processes share. */
export function createDataFolder(media: string): string {
  const folder = mkdtempSync(join(tmpdir(), "svc-process-"));
  symlinkSync(media, join(folder, "media"));
  return folder;
}

/** Starts the instances with the given `roles`. `startTime` and `rate` set their clock, see fast-clock.ts. */
export async function startFleet(options: {
  roles: readonly string[];
  databaseUrl: string;
  /** Additional environment variables of all instances. */
  environment?: Record<string, string>;
  startTime: number;
  rate: number;
}): Promise<ServiceFleet> {
  const { roles, databaseUrl, startTime, rate } = options;
  const size = roles.length;
  const environment = {
    DATABASE_URL: databaseUrl,
    SETTINGS_KEY: randomBytes(32).toString("base64"),
    RUNNER_CONCURRENCY: "4",
    LOG_LEVEL: "info",
    ...options.environment,
  };
  const sharedMedia = mkdtempSync(join(tmpdir(), "svc-fleet-media-"));
  const instances: ServiceProcess[] = [];
  const leftovers: Promise<void>[] = [];
  const logs: ServiceProcess["log"][] = [];
  const crashes: string[] = [];
  let kills = 0;
  let stopping = false;
  const lineOf = ({ log }: ServiceProcess, message: string) => log.find(({ msg }) => msg === message);
  const isUp = (instance: ServiceProcess) => lineOf(instance, "ready") !== undefined;

  /** Starts instance number `at`, and starts it again whenever its process ends before `stop` is called. */
  function launch(at: number): void {
    const dataDir = createDataFolder(sharedMedia);
    const instance = startProcess({ ...environment, DATA_DIR: dataDir, ROLES: roles[at]! }, [
      INSTANCE_PROGRAM,
      String(startTime),
      String(rate),
    ]);
    instances[at] = instance;
    logs.push(instance.log);
    void instance.ended.then(({ code, signal }) => {
      if (stopping) return;
      if (signal !== "SIGKILL" && isUp(instance)) crashes.push(`${code ?? signal}: ${instance.stderr()}`);
      leftovers.push(instance.clean());
      launch(at);
    });
  }

  async function stop(): Promise<void> {
    stopping = true;
    for (const instance of instances) instance.signal("SIGTERM");
    await Promise.all(instances.map(({ ended }) => ended));
    await Promise.all([...leftovers, ...instances.map((instance) => instance.clean())]);
    rmSync(sharedMedia, { recursive: true, force: true });
  }

  const ready = () => until(() => instances.every(isUp), READY_LIMIT_MS);
  for (let at = 0; at < size; at += 1) launch(at);
  try {
    await ready();
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    kills: () => kills,
    crashes: () => crashes,
    faults: () =>
      logs
        .flat()
        .filter(({ msg }) => msg === "a request failed" || msg === "an operation on an action failed unexpectedly")
        .map(({ err, stack }) => String((err as Error | undefined)?.stack ?? stack)),
    urls: () =>
      instances
        .filter((instance, at) => isUp(instance) && roles[at]!.includes("api"))
        .map((instance) => String(lineOf(instance, "listening")!["url"])),
    ready,
    killInstance() {
      kills += 1;
      instances[Math.floor(Math.random() * size)]!.signal("SIGKILL");
    },
    killBrowser() {
      const found = instances
        .flatMap((instance) => instance.listRemainingProcesses())
        .filter((line) => line.includes("chromium"));
      const chosen = found[Math.floor(Math.random() * found.length)];
      if (chosen) endProcess(Number(chosen.split(" ")[0]));
    },
    stop,
  };
}
