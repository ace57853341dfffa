/** Several instances of the service on one database, each restarted when it ends, like by a supervisor. */
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type ServiceProcess, startProcess } from "./process.js";
import { until } from "./until.js";

const ENTRY = fileURLToPath(new URL("./instance-process.js", import.meta.url));
const READY_LIMIT_MS = 120_000;

export interface ServiceFleet {
  killOne(): void;
  /** A process of a running instance's browser: the browser itself, a renderer or a helper. */
  killBrowser(): void;
  /** URLs of the instances that are up and serve requests. */
  urls(): string[];
  /** Resolves when every instance is up. */
  ready(): Promise<unknown>;
  stop(): Promise<void>;
  kills(): number;
  /** Reasons for which instances ended by themselves while they were up. */
  crashes(): string[];
  /** Unexpected failures of requests, as they logged them. */
  faults(): string[];
}

export const ALL_ROLES = "api,scheduler,runner";

function endProcess(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has ended meanwhile.
  }
}

/** A data folder for one process, with media on a volume that all processes share. */
export function folderWith(media: string): string {
  const folder = mkdtempSync(join(tmpdir(), "svc-process-"));
  symlinkSync(media, join(folder, "media"));
  return folder;
}

/** `roles` of each instance; `began` and `rate` set their clock, see fast-clock.ts. */
export async function startFleet(options: {
  roles: readonly string[];
  databaseUrl: string;
  /** Variables for all instances, on top of the test's. */
  environment?: Record<string, string>;
  began: number;
  rate: number;
}): Promise<ServiceFleet> {
  const { roles, databaseUrl, began, rate } = options;
  const size = roles.length;
  const environment = {
    DATABASE_URL: databaseUrl,
    SETTINGS_KEY: randomBytes(32).toString("base64"),
    RUNNER_CONCURRENCY: "4",
    LOG_LEVEL: "info",
    ...options.environment,
  };
  const sharedMedia = mkdtempSync(join(tmpdir(), "svc-fleet-media-"));
  const living: ServiceProcess[] = [];
  const leftovers: Promise<void>[] = [];
  const logs: ServiceProcess["log"][] = [];
  const crashes: string[] = [];
  let kills = 0;
  let stopping = false;
  const lineOf = ({ log }: ServiceProcess, message: string) => log.find(({ msg }) => msg === message);
  const isUp = (instance: ServiceProcess) => lineOf(instance, "ready") !== undefined;

  /** An instance may end during its start when the database is lost. */
  function launch(at: number): void {
    const dataDir = folderWith(sharedMedia);
    const instance = startProcess({ ...environment, DATA_DIR: dataDir, ROLES: roles[at]! }, [
      ENTRY,
      String(began),
      String(rate),
    ]);
    living[at] = instance;
    logs.push(instance.log);
    void instance.ended.then(({ code, signal }) => {
      if (stopping) return;
      if (signal !== "SIGKILL" && isUp(instance)) crashes.push(`${code ?? signal}: ${instance.stderr()}`);
      leftovers.push(instance.clean());
      launch(at);
    });
  }

  const ready = () => until(() => living.every(isUp), READY_LIMIT_MS);
  for (let at = 0; at < size; at += 1) launch(at);
  await ready();
  return {
    kills: () => kills,
    crashes: () => crashes,
    faults: () =>
      logs
        .flat()
        .filter(({ msg }) => msg === "a request failed" || msg === "an operation failed")
        .map(({ err, stack }) => String((err as Error | undefined)?.stack ?? stack)),
    urls: () =>
      living
        .filter((instance, at) => isUp(instance) && roles[at]!.includes("api"))
        .map((instance) => String(lineOf(instance, "listening")!["url"])),
    ready,
    killOne() {
      kills += 1;
      living[Math.floor(Math.random() * size)]!.signal("SIGKILL");
    },
    killBrowser() {
      const found = living.flatMap((instance) => instance.offspring()).filter((line) => line.includes("chromium"));
      const chosen = found[Math.floor(Math.random() * found.length)];
      if (chosen) endProcess(Number(chosen.split(" ")[0]));
    },
    async stop() {
      stopping = true;
      for (const instance of living) instance.signal("SIGTERM");
      await Promise.all(living.map(({ ended }) => ended));
      await Promise.all([...leftovers, ...living.map((instance) => instance.clean())]);
      rmSync(sharedMedia, { recursive: true, force: true });
    },
  };
}
