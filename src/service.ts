/** The composition root: makes every part, hands it what it needs, starts it, and undoes all of it in reverse. Holds no rule of its own. */
import "reflect-metadata";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { type Logger, pino } from "pino";
import type { DataSource } from "typeorm";
import { createFrontDoor, type Parts } from "./api/health.js";
import { createResolvers } from "./api/resolvers.js";
import { type Api, createApi } from "./api/server.js";
import { createSockets } from "./api/sockets.js";
import type { Config } from "./config.js";
import { migrate, openDatabase } from "./data/database.js";
import { type Browsers, createBrowsers } from "./engine/browser/browsers.js";
import { findChromium, usualPlaces } from "./engine/chromium-path.js";
import { createEgressProxy } from "./engine/egress-proxy.js";
import { startEmbeddedPostgres } from "./engine/embedded-postgres.js";
import { createNotifications, type Notifications } from "./engine/notifications.js";
import { createQueue } from "./engine/queue.js";
import { createTicker } from "./engine/ticker.js";
import { bootstrap } from "./operations/bootstrap.js";
import { CHANNELS, createOperations, type Operations } from "./operations/operations.js";
import { SCHEDULE_CHANNEL } from "./operations/trigger-index.js";

/** The time by which schedules fire. Unix time in milliseconds; `msUntil` is real time. */
export interface Clock {
  now(): number;
  msUntil(time: number): number;
}

const SYSTEM_CLOCK: Clock = { now: Date.now, msUntil: (time) => time - Date.now() };

export interface Service {
  /** Where it listens: `http://HOST:PORT`. */
  url: string;
  /** The database in use, the embedded one's password included. */
  databaseUrl: string;
  /** Takes no more work, lets what runs end within the grace, ends every child process. May be called twice. */
  stop(): Promise<void>;
}

type Release = () => Promise<unknown> | unknown;

/** What has been acquired so far; the newest goes first. */
class Releases {
  private readonly stack: { name: string; release: Release }[] = [];

  constructor(private readonly log: Logger) {}

  add(name: string, release: Release): void {
    this.stack.push({ name, release });
  }

  async all(): Promise<void> {
    for (let next = this.stack.pop(); next; next = this.stack.pop()) {
      const { name, release } = next;
      this.log.debug({ part: name }, "stopping");
      await Promise.resolve(release()).catch((error: unknown) =>
        this.log.error({ err: error, part: name }, "a part did not stop"),
      );
    }
  }
}

async function listen(server: Server, { host, port }: Config): Promise<string> {
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, () => resolve(server.off("error", reject) && undefined));
  });
  const { port: taken } = server.address() as AddressInfo;
  return `http://${host.includes(":") ? `[${host}]` : host}:${taken}`;
}

function pathToChromium({ chromePath, puppeteerCacheDir }: Config): string {
  const path = findChromium(chromePath, usualPlaces(puppeteerCacheDir));
  if (!path) throw new Error("no Chromium was found: set CHROME_PATH, or install chromium-headless-shell");
  return path;
}

/** Everything between the listening server and the first request. */
class Starting {
  constructor(
    private readonly config: Config,
    private readonly log: Logger,
    private readonly releases: Releases,
    private readonly parts: Parts,
  ) {}

  async database(): Promise<{ url: string; db: DataSource; notifications: Notifications }> {
    const { config, log, releases, parts } = this;
    let url = config.databaseUrl;
    if (!url) {
      const embedded = await startEmbeddedPostgres({ dataDir: config.dataDir, log });
      releases.add("postgres", () => embedded.stop());
      url = embedded.url;
    }
    await migrate(url);
    const db = await openDatabase(url);
    releases.add("database", () => db.destroy());
    const notifications = createNotifications({ url, channels: CHANNELS, log });
    await notifications.start();
    releases.add("notices", () => notifications.stop());
    parts["database"] = () => db.isInitialized && notifications.healthy();
    return { url, db, notifications };
  }

  /** `apiUrl`: the service's own address, which runs may reach although it is private. */
  async browsers(apiUrl: string): Promise<Browsers | null> {
    const { config, log, releases, parts } = this;
    if (!config.roles.has("runner")) return null;
    const { allowPrivateNetwork, egressAddress: localAddress, runnerConcurrency, chromeSandbox } = config;
    const { hostname, port, protocol } = new URL(apiUrl);
    const named = `${hostname}:${port || (protocol === "https:" ? 443 : 80)}`;
    const endpoints = new Map([[named, hostname]]);
    const egress = createEgressProxy({ allowPrivateNetwork, localAddress, endpoints: () => endpoints });
    releases.add("egress", () => egress.close());
    const browsers = createBrowsers({
      chromePath: pathToChromium(config),
      sandbox: chromeSandbox,
      concurrency: runnerConcurrency,
      log,
      openLane: egress.openLane,
    });
    releases.add("browsers", () => browsers.stop());
    await browsers.start();
    parts["browser"] = () => browsers.ready();
    return browsers;
  }

  async work(url: string, operations: Operations): Promise<void> {
    const { config, log, releases } = this;
    const { runs, instance } = operations;
    await instance.start();
    releases.add("instance", () => instance.stop());
    releases.add("runs", () => runs.drain(config.shutdownGraceMs));
    if (!config.roles.has("runner")) return;
    const queue = createQueue({ url, concurrency: config.runnerConcurrency, take: runs.take, log });
    await queue.start();
    releases.add("queue", () => queue.stop());
  }

  async scheduler(notifications: Notifications, { schedule }: Operations, { msUntil }: Clock): Promise<void> {
    const { config, log, releases, parts } = this;
    if (!config.roles.has("scheduler")) return;
    const ticker = createTicker({ work: schedule.claimDue, msUntil, log });
    notifications.listen(SCHEDULE_CHANNEL, ticker.wake);
    notifications.onGap(ticker.wake);
    await ticker.start();
    releases.add("ticker", () => ticker.stop());
    parts["scheduler"] = ticker.healthy;
  }

  async api(server: Server, operations: Operations): Promise<Api> {
    const { log, releases } = this;
    const { credentials, gate, tail, console, clients } = operations;
    const api = await createApi(server, { resolvers: createResolvers(operations), credentials, log });
    releases.add("api", () => api.stop());
    const sockets = createSockets({
      schema: api.schema,
      credentials,
      gate,
      tail,
      console,
      clientFeed: clients.clientFeed,
      log,
    });
    server.on("upgrade", sockets.upgrade);
    releases.add("sockets", () => sockets.stop());
    return api;
  }
}

const partsOf = ({ roles }: Config): Parts => {
  const down = () => false;
  return {
    database: down,
    ...(roles.has("runner") && { browser: down }),
    ...(roles.has("scheduler") && { scheduler: down }),
    ...(roles.has("api") && { api: down }),
  };
};

/**
 * Starts one process of the service and resolves when it is ready.
 * @throws when a part does not start; what had started is stopped again
 */
export async function startService(config: Config, clock: Clock = SYSTEM_CLOCK): Promise<Service> {
  const log = pino({ level: config.logLevel });
  const releases = new Releases(log);
  const parts = partsOf(config);
  let api: Api | null = null;
  const server = createServer(
    createFrontDoor(
      () => parts,
      () => api?.handle ?? null,
    ),
  );
  try {
    const url = await listen(server, config);
    releases.add("port", () => new Promise((resolve) => server.close(resolve).closeAllConnections()));
    const baseUrl = config.publicUrl ?? url;
    const starting = new Starting(config, log, releases, parts);
    const { url: databaseUrl, db, notifications } = await starting.database();
    const apiUrl = config.roles.has("api") ? url : baseUrl;
    const browsers = await starting.browsers(apiUrl);
    const alone = config.databaseUrl === null;
    const operations = await createOperations({
      config,
      db,
      notifications,
      browsers,
      baseUrl,
      apiUrl,
      alone,
      now: clock.now,
      log,
    });
    await starting.work(databaseUrl, operations);
    await starting.scheduler(notifications, operations, clock);
    if (alone) await announceFirst(operations, db, config, baseUrl, log);
    if (config.roles.has("api")) api = await starting.api(server, operations);
    parts["api"] = () => true;
    log.info({ url: baseUrl, roles: [...config.roles] }, "ready");
    let stopped: Promise<void> | null = null;
    const stop = () => {
      parts["stopping"] = () => false;
      stopped ??= releases.all();
      return stopped;
    };
    return { url, databaseUrl, stop };
  } catch (error) {
    await releases.all();
    throw error;
  }
}

async function announceFirst(
  { credentials }: Operations,
  db: DataSource,
  { dataDir }: Config,
  baseUrl: string,
  log: Logger,
): Promise<void> {
  const file = await bootstrap({ db, credentials, dataDir, baseUrl });
  if (file) log.info({ file: join(dataDir, "credentials.json") }, "made a first app; its credentials are in the file");
}
