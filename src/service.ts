/**
 * Creates the components of the service with their dependencies, starts them in order, and stops them in reverse order.
 */
import "reflect-metadata";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import type { Logger } from "pino";
import { createHttpEntryPoint } from "./api/health.js";
import { createHttpServer } from "./api/port.js";
import type { Config } from "./config.js";
import { type Db, isDatabaseUnavailable } from "./data/database.js";
import { createLog } from "./engine/log.js";
import { StartError } from "./errors.js";
import { createFirstAppIfEmpty } from "./operations/access/bootstrap.js";
import { createOperations, type Operations } from "./operations/operations.js";
import { ServiceMetrics } from "./operations/watch/measures.js";
import { describeDatabaseStartError } from "./service/database-start.js";
import { createDatabaseOutageLog } from "./service/outage-log.js";
import { type Clock, createInitialReadinessChecks, type ServiceStartContext } from "./service/plan.js";
import { checkStartPreconditions } from "./service/preconditions.js";
import { registerUnhandledRejectionLogging } from "./service/rejections.js";
import { ResourceReleaseStack } from "./service/releases.js";
import { ServiceStarter } from "./service/starting.js";
import {
  startAlerts,
  startCleaner,
  startGitPulls,
  startNotifications,
  startScheduler,
  startSendingMessages,
} from "./service/timed-work.js";

const SYSTEM_CLOCK: Clock = { now: Date.now, msUntil: (time) => time - Date.now() };
const NEVER_ABORTED = new AbortController().signal;

export interface Service {
  /** Address at which the service listens: `http://HOST:PORT`. */
  url: string;
  /** Address that people and browsers use, without a trailing slash. */
  baseUrl: string;
  /** Path of the file with the first credentials if this start created it; otherwise null. */
  firstCredentialsFile: string | null;
  /** Link that creates the first administrator; null if there is one, if DATABASE_URL is set, or if this process has no API. */
  setupLink: string | null;
  /** URL of the database, including the password of an embedded database. */
  databaseUrl: string;
  /** Resolves with an error if the service can no longer work. The caller must then call `stop`. */
  failurePromise: Promise<Error>;
  /**
   * Accepts no more work, gives running actions the grace period to finish, and then ends all child processes. A second call returns the
   * same promise. With `now`, it also ends the grace period at once.
   */
  stop(options?: { now: boolean }): Promise<void>;
}

export interface ServiceStartOptions {
  clock?: Clock;
  /** Signal that cancels the start. The components that have already started are then stopped. */
  stopRequested?: AbortSignal;
  /**
   * True if this process runs nothing else. The service then logs and counts the unhandled rejections of the process, which do not end it.
   */
  ownsProcess?: boolean;
}

/**
 * Starts to listen. Returns the URL.
 * @throws StartError that names the variable (HOST or PORT) whose value cannot be used on this machine
 */
async function startListening(server: Server, { host, port }: Config): Promise<string> {
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, () => resolve(server.off("error", reject) && undefined));
  }).catch((error: NodeJS.ErrnoException) => {
    const isPortProblem = error.code === "EADDRINUSE" || error.code === "EACCES";
    const problem = isPortProblem
      ? "PORT must be a free port that this process is allowed to use"
      : "HOST must be an address of this machine";
    throw new StartError(`${problem} (got ${isPortProblem ? port : host}): ${error.message}`, { cause: error });
  });
  const { port: usedPort } = server.address() as AddressInfo;
  return `http://${host.includes(":") ? `[${host}]` : host}:${usedPort}`;
}

/** Creates the first app in a new embedded database. If the service has no administrator, returns a link that creates one. */
async function createFirstAppAndLink(
  { credentials, accounts: { accounts } }: Operations,
  db: Db,
  { dataDir, roles }: Config,
  baseUrl: string,
  log: Logger,
): Promise<Pick<Service, "firstCredentialsFile" | "setupLink">> {
  const firstCredentialsFile = await createFirstAppIfEmpty({ db, credentials, dataDir, baseUrl });
  if (firstCredentialsFile) {
    log.info({ file: join(dataDir, "credentials.json") }, "created the first app; `file` contains its credentials");
  }
  const setupLink = roles.has("api") ? await accounts.createFirstSetupLink() : null;
  return { firstCredentialsFile, setupLink: setupLink?.link ?? null };
}

/**
 * Starts the components of the service in order.
 * @throws the error of a component, or the reason of `stopRequested` if it aborts
 */
async function startServiceParts(
  startContext: ServiceStartContext,
  url: string,
  baseUrl: string,
): Promise<Pick<Service, "databaseUrl" | "firstCredentialsFile" | "setupLink">> {
  const { config, log, onDatabaseReached, measures, stopRequested } = startContext;
  const starter = new ServiceStarter(startContext);
  const tracing = await starter.startTracing();
  const [openedDatabase] = await Promise.all([starter.openDatabaseConnections(), starter.loadLibraries()]);
  const { url: databaseUrl, db, notifications } = openedDatabase;
  const { clock, getSkewMs } = await starter.createClock(db);
  const contextWithClock = { ...startContext, clock };
  const diskSpace = await starter.startDiskSpace(db);
  const apiUrl = config.roles.has("api") ? url : baseUrl;
  const browsers = await starter.startBrowsers(apiUrl);
  const isOnlyProcess = config.databaseUrl === null;
  const { now } = clock;
  const operations = await createOperations({
    ...{
      config,
      db,
      databaseUrl,
      notifications,
      browsers,
      diskSpace,
      measures,
      tracing,
      baseUrl,
      apiUrl,
      isOnlyProcess,
      now,
      log,
    },
    onDatabaseReached,
  });
  contextWithClock.releases.add("data sources", operations.store.stop);
  contextWithClock.releases.add("packages", () => operations.packages.stop());
  contextWithClock.releases.add("code check", operations.authoring.closeCodeCheck);
  contextWithClock.releases.add("outgoing requests", () => operations.requestSender.close());
  contextWithClock.releases.add("rejected requests", () => operations.rejectedRequestCounter.stop());
  await starter.startLease(operations);
  await starter.startMediaStore(operations);
  const acceptRequests = await starter.startApi(operations, tracing, baseUrl);
  const work = await starter.startRuns(openedDatabase, operations);
  await startScheduler(contextWithClock, notifications, operations);
  await startSendingMessages(contextWithClock, notifications, operations);
  await startNotifications(contextWithClock, notifications, operations);
  await startAlerts(contextWithClock, notifications, operations);
  await startGitPulls(contextWithClock, operations);
  startCleaner(contextWithClock, operations);
  starter.publishMetrics(openedDatabase, operations, work, browsers, getSkewMs);
  const noFirstApp = { firstCredentialsFile: null, setupLink: null };
  const firstApp = isOnlyProcess ? await createFirstAppAndLink(operations, db, config, baseUrl, log) : noFirstApp;
  stopRequested.throwIfAborted();
  acceptRequests();
  return { databaseUrl, ...firstApp };
}

/** Creates the function that stops the service. */
function createStop(
  { config, log, readinessChecks, releases }: ServiceStartContext,
  gracePeriodController: AbortController,
): Service["stop"] {
  let stopPromise: Promise<void> | null = null;
  const releaseResources = () => {
    readinessChecks["stopping"] = () => false;
    log.info("stopping");
    const graceTimer = setTimeout(() => gracePeriodController.abort(), config.shutdownGraceMs);
    return releases.releaseAll().finally(() => clearTimeout(graceTimer));
  };
  return ({ now } = { now: false }) => {
    stopPromise ??= releaseResources();
    if (now) gracePeriodController.abort();
    return stopPromise;
  };
}

/**
 * Starts one process of the service. Resolves when it is ready.
 * @throws if a component does not start or `stopRequested` aborts; the components that have started are then stopped
 */
export async function startService(config: Config, options: ServiceStartOptions = {}): Promise<Service> {
  const { clock = SYSTEM_CLOCK, stopRequested = NEVER_ABORTED } = options;
  const { log, recordSuccess } = createDatabaseOutageLog({ level: config.logLevel });
  const releases = new ResourceReleaseStack(log);
  const readinessChecks = createInitialReadinessChecks(config);
  const httpEntryPoint = createHttpEntryPoint(readinessChecks);
  const server = createHttpServer(httpEntryPoint);
  const gracePeriodController = new AbortController();
  const { promise: failurePromise, resolve: reportFatalFailure } = Promise.withResolvers<Error>();
  const measures = new ServiceMetrics();
  // Uses a log without the filter for database outages, so that faults of the service itself are logged during an outage too.
  if (options.ownsProcess) registerUnhandledRejectionLogging(createLog(config.logLevel), measures);
  const startContext = {
    config,
    clock,
    log,
    onDatabaseReached: recordSuccess,
    measures,
    releases,
    readinessChecks,
    server,
    httpEntryPoint,
    stopRequested,
    gracePeriodEnded: gracePeriodController.signal,
    reportFatalFailure,
  };
  const stop = createStop(startContext, gracePeriodController);
  try {
    await checkStartPreconditions(config);
    const url = await startListening(server, config);
    releases.add("port", () => new Promise((resolve) => server.close(resolve).closeAllConnections()));
    log.info({ url }, "listening");
    const baseUrl = config.publicUrl ?? url;
    const startResult = await startServiceParts(startContext, url, baseUrl);
    log.info({ url: baseUrl, roles: [...config.roles] }, "ready");
    return { url, baseUrl, ...startResult, failurePromise, stop };
  } catch (error) {
    await stop({ now: true });
    // Reports one line instead of a stack trace: an unavailable database is not a bug, and a supervisor will start this process again.
    if (isDatabaseUnavailable(error))
      throw new StartError(
        `the database became unavailable while the service started: ${describeDatabaseStartError(error, config)}`,
      );
    throw error;
  }
}
