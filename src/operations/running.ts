/** Makes the parts that runs pass through, and ties them to each other. Starts nothing. */
import type { SecretScans } from "../engine/secret-scan.js";
import { createServiceRequests } from "../engine/service-requests.js";
import type { SessionOf } from "../rules/env-script.js";
import { createCatalogue } from "../rules/packages.js";
import type { Credentials } from "./access/credentials.js";
import type { KeptScripts } from "./packages/kept-scripts.js";
import { createLogs } from "./records/execution-logs.js";
import type { Intake } from "./records/intake.js";
import { createLogTail } from "./records/log-tail.js";
import type { QueueRoom } from "./records/queue-room.js";
import { createRunWords } from "./records/run-words.js";
import type { Requests } from "./requests/run-requests.js";
import { createBacklogs } from "./runs/backlog.js";
import { CLIENT_LATE_MS, overdueEnding } from "./runs/browser-endings.js";
import { createRunConsole } from "./runs/console.js";
import { createExecution, lostEnding } from "./runs/execution.js";
import { createInstance, type OnBeat } from "./runs/instance.js";
import { createLedger } from "./runs/ledger.js";
import type { UserOf } from "./runs/run-access.js";
import { createRunScripts } from "./runs/run-scripts.js";
import { createRunTraces } from "./runs/run-traces.js";
import { createRuns } from "./runs/runs.js";
import { createSecrecy } from "./runs/secrecy.js";
import { createWaits } from "./runs/waits.js";
import { createSettings } from "./settings/settings.js";
import type { Surroundings } from "./surroundings.js";

/** The parts that runs are made of: the ledger, this process's hold on it, and their logs. */
export function createRunning(
  surroundings: Surroundings,
  parts: {
    credentials: Credentials;
    catalogue: ReturnType<typeof createCatalogue>;
    keptScripts: KeptScripts;
    queueRoom: QueueRoom;
    intake: Intake;
    settings: ReturnType<typeof createSettings>;
    sessionOf: SessionOf;
    userOf: UserOf;
    scans: SecretScans;
    requests: Requests;
    /** Further work of each heartbeat. */
    onBeat: OnBeat;
  },
) {
  const { config, db, notifications, browsers, apiUrl, alone, measures, tracing, log, onDatabaseReached } =
    surroundings;
  const {
    credentials,
    catalogue,
    keptScripts,
    queueRoom,
    intake,
    settings,
    sessionOf,
    userOf,
    scans,
    requests,
    onBeat,
  } = parts;
  const logs = createLogs(db);
  const tail = createLogTail({ logs, notifications, log });
  const ledger = createLedger(db);
  const instance = createInstance({
    db,
    roles: config.roles,
    alone,
    onBeat: async (mayDeclareDead) => {
      const settled = await runs.settleOrphans();
      const lost = (mayDeclareDead ? await ledger.endLost(lostEnding) : 0) + settled.lost;
      await ledger.endOverdueInBrowsers(config.clientTimeoutMs + CLIENT_LATE_MS, (run) =>
        overdueEnding(run, config.clientTimeoutMs),
      );
      if (lost > 0) log.warn({ lost }, "ended runs whose process had died");
      measures.runsLost(lost);
      const { queuedAgain } = settled;
      if (queuedAgain > 0) log.warn({ queuedAgain }, "queued runs again that had been taken and not begun");
      measures.ticks("late", await ledger.skipLate());
      await runs.lookForAwaited();
      await onBeat(mayDeclareDead);
    },
    onLateRenewal: () => runs.abandonTaken(),
    onDatabaseReached,
    log,
  });
  const console = createRunConsole({ db, notifications });
  const traces = createRunTraces({ db, tracing, apiUrl });
  const scripts = createRunScripts({ sessionOf, credentials, catalogue, keptScripts, apiUrl });
  const execution = createExecution({
    secrecy: createSecrecy({ settings, scans }),
    scripts,
    timeoutMs: config.serverTimeoutMs,
    db,
    ledger,
    runPage: async (request) => browsers!.run(request),
    console,
    measures,
    traces,
    serviceRequests: createServiceRequests(apiUrl),
    requests,
    log,
  });
  const concurrency = browsers ? config.runnerConcurrency : 0;
  const waits = createWaits({ db, ledger, measures });
  const rooms = { queueRoom, intake };
  const holder = instance.id;
  const runs = createRuns({
    db,
    ledger,
    ...rooms,
    logs,
    execution,
    traces,
    waits,
    notifications,
    userOf,
    holder,
    concurrency,
  });
  const runWords = createRunWords(db);
  return { logs, tail, ledger, instance, console, runs, waits, runWords, backlogs: createBacklogs({ db, queueRoom }) };
}
