/** Creates, starts and releases the components of the service. service.ts calls these methods in order. */

import { randomUUID } from "node:crypto";
import { availableParallelism } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import { createClientAddressGetter } from "../api/address.js";
import { createCallerReader } from "../api/caller.js";
import { createFairTaskQueue } from "../api/fair-task-queue.js";
import { createMetrics } from "../api/metrics.js";
import { createRequestBodyBudgetsBySize } from "../api/request-body-budget.js";
import { createResolvers } from "../api/resolvers.js";
import { ResponseMemoryLimiter } from "../api/response-memory.js";
import { createApi } from "../api/server.js";
import { createSocketServer, type SocketServer } from "../api/sockets.js";
import { createWebsocketUpgradeTokenReader } from "../api/upgrade-origin.js";
import { runInBackground } from "../background.js";
import { countConnections, type Db } from "../data/database.js";
import { Browsers } from "../engine/browser/browsers.js";
import type { DiskSpaceMonitor } from "../engine/disk-space.js";
import { createEgressProxy } from "../engine/egress-proxy.js";
import { startEmbeddedPostgres } from "../engine/embedded-postgres.js";
import { FairSemaphore } from "../engine/fair-semaphore.js";
import { createTicker } from "../engine/ticker.js";
import { StartError } from "../errors.js";
import { createRequestLimiter } from "../operations/access/request-limiter.js";
import { loadWebAuthn } from "../operations/accounts/passkeys.js";
import type { Operations } from "../operations/operations.js";
import { QUEUED_RUN_CHANNEL } from "../operations/records/queue-limits.js";
import { CONCURRENCY_LIMITS_CHANNEL } from "../operations/runs/run-admission.js";
import { createTracing, type RequestTracing } from "../operations/watch/tracing.js";
import { countLostConnections, isDatabaseReadOnly, isDiskFull } from "../postgres.js";
import { createBrowserSources } from "./browser-sources.js";
import { createDatabaseClock, createSkewCorrectedClock } from "./database-clock.js";
import { openServiceDatabase } from "./database-start.js";
import { createDiskFullProbe } from "./disk-probe.js";
import { createDatabaseDiskSpaceMonitor, createDataDirDiskSpaceMonitor, getFreeDiskBytes } from "./disk-space.js";
import type { Clock, DatabaseConnections, RunnerState, ServiceStartContext } from "./plan.js";

/** Maximum milliseconds that a stop waits until the callers of aborted runs have received their responses. */
const LAST_RESPONSES_TIMEOUT_MS = 1_000;

/** Maximum number of browser contexts and documents that open at the same time. Each keeps one core busy; other cores run pages. */
const CONCURRENT_OPENINGS_MAX = Math.max(1, Math.floor(availableParallelism() / 2));

/** Maximum time that a run may wait although this process has a free slot. After a longer wait, the process is not ready. */
const UNCLAIMED_RUN_WAIT_MAX_MS = 10_000;

/** Starts the components of the service. Most methods throw the reason of `stopRequested` if the service must stop during the start. */
export class ServiceStarter {
  private readonly taskQueue = createFairTaskQueue();
  private readonly responseMemory = new ResponseMemoryLimiter(undefined, this.taskQueue);
  private sockets: SocketServer | null = null;

  constructor(private readonly startContext: ServiceStartContext) {}

  /** Loads libraries that would otherwise be loaded during a request, which would delay all other requests. */
  async loadLibraries(): Promise<void> {
    if (this.startContext.config.roles.has("api")) await loadWebAuthn();
  }

  async openDatabaseConnections(): Promise<DatabaseConnections> {
    const { config, log, releases, readinessChecks, stopRequested, reportFatalFailure } = this.startContext;
    stopRequested.throwIfAborted();
    let url = config.databaseDirectUrl ?? config.databaseUrl;
    if (!url) {
      const embedded = await startEmbeddedPostgres({ dataDir: config.dataDir, log });
      releases.add("postgres", () => embedded.stop());
      runInBackground(
        embedded.unexpectedExit.then(() =>
          reportFatalFailure(new StartError("PostgreSQL stopped unexpectedly; the next start recovers its data")),
        ),
      );
      url = embedded.socketUrl;
    }
    const { db, notifications } = await openServiceDatabase(config, url, { log, stopRequested });
    releases.add("database", () => db.destroy());
    releases.add("database notifications", () => notifications.stop());
    const probe = createDiskFullProbe({ db, log });
    await probe.start();
    releases.add("disk probe", () => probe.stop());
    readinessChecks["database"] = () => {
      if (isDatabaseReadOnly()) return "it is read-only";
      return isDiskFull() ? "its disk is full" : db.isInitialized && notifications.isHealthy();
    };
    return { url, db, notifications };
  }

  async createClock(db: Db): Promise<{ clock: Clock; getSkewMs: () => number }> {
    const { clock, log, releases } = this.startContext;
    const databaseClock = createDatabaseClock({ db, log });
    const ticker = createTicker({
      work: databaseClock.measureSkew,
      msUntil: (time) => time - Date.now(),
      sleepMaxMs: Number.POSITIVE_INFINITY,
      log,
    });
    await ticker.start();
    releases.add("clock", () => ticker.stop());
    return { clock: createSkewCorrectedClock(clock, databaseClock.getSkewMs), getSkewMs: databaseClock.getSkewMs };
  }

  /** Starts tracing. It stops after everything that starts later, so that it can send the traces of those components. */
  async startTracing(): Promise<RequestTracing> {
    const { config, log, releases, stopRequested } = this.startContext;
    stopRequested.throwIfAborted();
    const tracing = await createTracing(config.otlpEndpoint, randomUUID(), log);
    releases.add("traces", tracing.stop);
    return tracing;
  }

  async startDiskSpace(db: Db): Promise<DiskSpaceMonitor> {
    const { config, log, releases } = this.startContext;
    const diskSpace = createDatabaseDiskSpaceMonitor(config, db, log);
    releases.add("database disk space", diskSpace.stop);
    await diskSpace.start();
    const dataDirMonitor = createDataDirDiskSpaceMonitor(config, log);
    releases.add("DATA_DIR disk space", dataDirMonitor.stop);
    await dataDirMonitor.start();
    return diskSpace;
  }

  /**
   * Starts the browsers and their egress proxies. Returns null if this process is not a runner.
   * @param apiUrl URL of this service, to which runs may send requests although it is a private address
   */
  async startBrowsers(apiUrl: string): Promise<Browsers | null> {
    const { config, log, measures, releases, readinessChecks, stopRequested } = this.startContext;
    stopRequested.throwIfAborted();
    if (!config.roles.has("runner")) return null;
    const { sources, egressOptions } = createBrowserSources(config, log);
    const { hostname, port, protocol } = new URL(apiUrl);
    const apiEndpoint = `${hostname}:${port || (protocol === "https:" ? 443 : 80)}`;
    const endpoints = new Map([[apiEndpoint, hostname]]);
    const egressProxy = createEgressProxy({ ...egressOptions, endpoints: () => endpoints });
    releases.add("egress", () => egressProxy.close());
    const testedPort = await egressProxy.openProxyPort().catch((error: Error) => {
      const { host } = egressOptions;
      throw new StartError(
        host === undefined
          ? `the egress proxy cannot listen at 127.0.0.1 (${error.message})`
          : `EGRESS_PROXY_HOST must be an address of this machine at which a proxy can listen (got ${host}: ${error.message})`,
      );
    });
    testedPort.close();
    const openingSemaphore = new FairSemaphore(CONCURRENT_OPENINGS_MAX, 1);
    const browsers = new Browsers({
      sources,
      log,
      openProxyPort: egressProxy.openProxyPort,
      openingQueue: openingSemaphore,
      onLoss: (kind) => measures.countBrowserLoss(kind),
    });
    releases.add("browsers", () => browsers.stop());
    await browsers.start();
    readinessChecks["browser"] = () => browsers.isReady();
    return browsers;
  }

  /** Starts to renew the lease (the proof in the database that this process lives). Without a lease, the process may not execute runs. */
  async startLease({ lease }: Operations): Promise<void> {
    this.startContext.stopRequested.throwIfAborted();
    await lease.start();
    this.startContext.releases.add("instance", () => lease.stop());
  }

  async startMediaStore({ media }: Operations): Promise<void> {
    const { config, releases, stopRequested } = this.startContext;
    stopRequested.throwIfAborted();
    releases.add("media", media.stop);
    if (config.roles.has("api") || config.roles.has("scheduler")) await media.start();
  }

  /** Builds the API. Returns a function that lets the API accept requests, which must be the last step of a start. */
  async startApi(operations: Operations, tracing: RequestTracing, baseUrl: string): Promise<() => void> {
    const { config, log, measures, releases, readinessChecks, server, httpEntryPoint } = this.startContext;
    if (!config.roles.has("api")) return () => undefined;
    const { credentials, accessChecks, rejectionDelay, tail, console, clients, actionFeed, store } = operations;
    const { clientFeed, sessions } = clients;
    const resolvers = createResolvers(operations);
    const { responseMemory, taskQueue } = this;
    const { publicUrl, runtimeUrl, graphqlDocuments } = config;
    const commonParts = {
      credentials,
      responseMemory,
      taskQueue,
      limiter: createRequestLimiter(),
      callers: createCallerReader(publicUrl),
      getClientAddress: createClientAddressGetter(config.trustProxy, operations.lease.reportIgnoredProxy),
      measures,
      tracing,
      graphqlDocuments,
      log,
    };
    const bodyBudgets = createRequestBodyBudgetsBySize();
    const { reports } = operations.messagingModules;
    const { scripts } = operations.packages;
    const { httpTriggers, toolCalls, oauth } = operations;
    const { openId } = operations.accounts;
    const apiParts = { openId, toolCalls, oauth, rejectionDelay, bodyBudgets, resolvers, sessions, reports, scripts };
    const { appExists } = accessChecks;
    const serviceUrls = { baseUrl, publicUrl, runtimeUrl };
    const { webhooks: gitWebhooks } = operations.git;
    const api = await createApi({ ...commonParts, ...apiParts, httpTriggers, gitWebhooks, ...serviceUrls, appExists });
    const { schema, documents, handleRequest } = api;
    releases.add("api", api.stop);
    const subscriptionSources = {
      accessChecks,
      tail,
      console,
      clientFeed,
      actionFeed,
      entries: store.entries,
      notificationModules: operations.notificationModules,
    };
    const isListedOrigin = (origin: string) => clients.visitors.isListed(origin);
    const readUpgradeToken = createWebsocketUpgradeTokenReader({
      callers: commonParts.callers,
      runtimeUrl,
      isListedOrigin,
    });
    const sockets = createSocketServer({
      ...commonParts,
      ...subscriptionSources,
      resolvers,
      runtimeUrl,
      readUpgradeToken,
      schema,
      documents,
    });
    this.sockets = sockets;
    releases.add("sockets", () => sockets.stop());
    // At a stop, the API ends only after all runs, because runs send requests to it.
    releases.add("API routing", () => httpEntryPoint.forwardRequestsTo(null));
    return () => {
      server.on("upgrade", sockets.upgrade);
      httpEntryPoint.forwardRequestsTo(handleRequest);
      readinessChecks["api"] = () => true;
      releases.add("new requests", () => {
        server.off("upgrade", sockets.upgrade);
        httpEntryPoint.startDraining();
      });
    };
  }

  /** Starts to execute queued runs. Looks for them at each notification, and at intervals, because a notification can be lost. */
  async startRuns(
    { notifications }: DatabaseConnections,
    { runs, dispatcher, admission }: Operations,
  ): Promise<RunnerState> {
    const { config, log, releases, readinessChecks, httpEntryPoint, gracePeriodEnded, stopRequested } =
      this.startContext;
    stopRequested.throwIfAborted();
    // Gives the callers of aborted runs a moment to receive their responses before the next release.
    releases.add("last responses", () =>
      Promise.race([httpEntryPoint.waitUntilIdle(), delay(LAST_RESPONSES_TIMEOUT_MS, undefined, { ref: false })]),
    );
    let longestWaitMs = 0;
    const claimRuns = async () => {
      longestWaitMs = await dispatcher.claimQueued();
      return null;
    };
    const ticker = createTicker({ work: claimRuns, msUntil: () => 0, log });
    const admissionTicker = createTicker({ work: admission.releaseDueRuns, msUntil: (time) => time - Date.now(), log });
    const gracePeriodEnd = new Promise((resolve) =>
      gracePeriodEnded.addEventListener("abort", resolve, { once: true }),
    );
    releases.add("runs", () =>
      Promise.all([
        ticker.stop(),
        admissionTicker.stop(),
        runs.drain(gracePeriodEnded),
        Promise.race([httpEntryPoint.waitUntilIdle(), gracePeriodEnd]),
      ]),
    );
    const isClaimingRuns = () => ticker.isHealthy() && longestWaitMs < UNCLAIMED_RUN_WAIT_MAX_MS;
    if (config.roles.has("runner")) {
      notifications.listen(QUEUED_RUN_CHANNEL, (appId) => dispatcher.onRunQueued(Number(appId)));
      notifications.onGap(ticker.wake);
      await ticker.start();
      notifications.listen(CONCURRENCY_LIMITS_CHANNEL, admissionTicker.wake);
      notifications.onGap(admissionTicker.wake);
      await admissionTicker.start();
      readinessChecks["runner"] = isClaimingRuns;
    }
    return { countSlots: () => dispatcher.getSlotUsage(), isClaimingRuns };
  }

  /** Starts the metrics of the whole service and of this process. Every process reports both. */
  publishMetrics(
    { db }: DatabaseConnections,
    { vitals }: Operations,
    runnerState: RunnerState,
    browsers: Browsers | null,
    getClockSkewMs: () => number,
  ): void {
    const { config, httpEntryPoint, measures, releases } = this.startContext;
    const runner = browsers && { ...runnerState, countBrowsers: browsers.countBrowsers };
    const countResponseBytes = config.roles.has("api") ? () => this.responseMemory.countHeldBytes() : null;
    const sockets = this.sockets?.countSockets ?? null;
    const countDatabaseConnections = () => countConnections(db);
    httpEntryPoint.publishMetrics(
      createMetrics({
        readVitalSigns: () => vitals.read(),
        countDatabaseConnections,
        countLostConnections,
        getClockSkewMs,
        isDiskFull,
        readFreeDataDirBytes: () => getFreeDiskBytes(config.dataDir),
        countResponseBytes,
        countSockets: sockets,
        measures,
        runner,
      }),
    );
    releases.add("metrics", () => httpEntryPoint.publishMetrics(null));
  }
}
