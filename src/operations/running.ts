/** Creates the modules that execute runs, and connects them. Does not start them. */
import type { SecretScannerCache } from "../engine/secret-scan.js";
import { createServiceRequestSender } from "../engine/service-requests.js";
import type { ReadAppSession } from "../rules/app-session.js";
import type { PackageCatalogue } from "../rules/packages.js";
import type { Credentials } from "./access/credentials.js";
import { QueuedRuns } from "./history/queued-runs.js";
import type { DependencyResolver } from "./packages/packages.js";
import type { ProcessDependencies } from "./process-dependencies.js";
import { ExecutionLogs } from "./records/execution-logs.js";
import { createLogTail } from "./records/log-tail.js";
import type { QueueLimits } from "./records/queue-limits.js";
import type { ReceivedDataLimiter } from "./records/received-data-limiter.js";
import { RunSearch } from "./records/run-words.js";
import type { RunRequestSender } from "./requests/run-requests.js";
import { RunConsole } from "./runs/console.js";
import { Dispatcher } from "./runs/dispatcher.js";
import { Enqueuer } from "./runs/enqueue.js";
import { type ExecutorOptions, RunExecution } from "./runs/executor.js";
import { PageScriptLoader } from "./runs/page-scripts.js";
import type { FindAppUser } from "./runs/run-access.js";
import { RunAdmission } from "./runs/run-admission.js";
import { RunRepository } from "./runs/run-repository.js";
import { SecretStore } from "./runs/run-secrets.js";
import type { RunRecord } from "./runs/run-types.js";
import { Runs } from "./runs/runs.js";
import type { Settings } from "./settings/settings.js";
import { Lease } from "./upkeep/lease.js";

interface RunComponentsOptions {
  credentials: Credentials;
  catalogue: PackageCatalogue;
  packages: DependencyResolver;
  queueLimits: QueueLimits;
  receivedDataLimiter: ReceivedDataLimiter;
  settings: Settings;
  readAppSession: ReadAppSession;
  findAppUser: FindAppUser;
  scannerCache: SecretScannerCache;
  requests: RunRequestSender;
  /** Called after each renewal of this process's lease. If `mayDeclareDead` is true, processes with an expired lease count as crashed. */
  onRenewal: (mayDeclareDead: boolean) => Promise<void>;
}

/**
 * Queues runs again that this process has claimed but is not executing. If `mayDeclareDead` is true, ends runs that no process executes any
 * more. Also ends browser runs that exceed their time limit, skips scheduled runs that are too late, and starts queued runs that other runs
 * wait for.
 */
async function settleRuns(
  { config, measures, log }: ProcessDependencies,
  { repository, dispatcher }: { repository: RunRepository; dispatcher: Dispatcher },
  mayDeclareDead: boolean,
): Promise<void> {
  const queuedAgain = await dispatcher.settleHeldRuns();
  if (queuedAgain > 0)
    log.warn({ queuedAgain }, "queued runs again, because this process did not receive the response to its claim");
  const lost = mayDeclareDead ? await repository.finishLost() : 0;
  if (lost > 0) log.warn({ lost }, "ended runs that no process was executing any more");
  measures.countLostRuns(lost);
  await repository.finishOverdueInBrowsers(config.clientTimeoutMs);
  measures.countTicks("late", await repository.skipLateRuns());
  await dispatcher.startQueuedChildRuns();
}

export function createRunComponents(processDependencies: ProcessDependencies, parts: RunComponentsOptions) {
  const { config, db, notifications, browsers, apiUrl, measures, tracing, log } = processDependencies;
  const { packages, queueLimits, requests } = parts;
  const logs = new ExecutionLogs(db);
  const secrets = new SecretStore(parts.settings.secretValues, parts.scannerCache);
  const repository = new RunRepository(db, (run) => secrets.maskPayloadOfRun(run));
  const lease: Lease = new Lease({
    db,
    roles: config.roles,
    isOnlyProcess: processDependencies.isOnlyProcess,
    onRenewal: async (mayDeclareDead) => {
      await settleRuns(processDependencies, { repository, dispatcher }, mayDeclareDead);
      await parts.onRenewal(mayDeclareDead);
    },
    onDatabaseReached: processDependencies.onDatabaseReached,
    log,
  });
  const { holder: processId } = lease;
  const executorOptions: ExecutorOptions = {
    db,
    repository,
    runPage: async (request) => browsers!.run(request),
    secrets,
    scripts: new PageScriptLoader({ ...parts, storedScripts: packages.scripts, apiUrl }),
    timeoutMs: config.serverTimeoutMs,
    measures,
    tracing,
    apiUrl,
    serviceRequests: createServiceRequestSender(apiUrl),
    requests,
    log,
  };
  const executeRun = async (run: RunRecord, holder: string, signal: AbortSignal) =>
    new RunExecution(executorOptions, run, holder, signal).execute();
  const concurrency = browsers ? config.runnerConcurrency : 0;
  const dispatcher = new Dispatcher({ repository, executeRun, processId, concurrency });
  const admission = new RunAdmission(db, repository, measures, log);
  const enqueuer = new Enqueuer({ db, repository, queueLimits, admission, dispatcher, tracing, processId });
  const runsOptions = {
    db,
    repository,
    enqueuer,
    dispatcher,
    logs,
    notifications,
    processId,
    isRunner: concurrency > 0,
  };
  return {
    logs,
    tail: createLogTail({ logs, notifications, log }),
    repository,
    lease,
    console: new RunConsole(db),
    dispatcher,
    enqueuer,
    runs: new Runs({ ...parts, ...runsOptions }),
    admission,
    runSearch: new RunSearch(db),
    backlogs: new QueuedRuns(db, queueLimits, (appId) => secrets.hasSecrets(appId)),
  };
}
