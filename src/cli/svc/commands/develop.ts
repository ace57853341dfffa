/** svc dev and svc test: svc dev pushes drafts whenever a file is saved; svc test runs tests in the service's sandbox. */
import { readdirSync, watch } from "node:fs";
import { resolve } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { Command } from "commander";
import { runInBackground } from "../../../background.js";
import { ProjectError } from "../../../engine/bundler/fault.js";
import { ServiceResponseError } from "../client.js";
import { findProjectRoot, readServerAndApp } from "../config.js";
import { CliError, createUsageError, UnrecoverableError } from "../failure.js";
import {
  hasLocalServerData,
  isLocalProject,
  isServerResponding,
  type LocalServer,
  startLocalServer,
} from "../local-server.js";
import { Project } from "../project.js";
import type { CliSession, CommandRunner } from "../session.js";
import { runProjectTests } from "../tests.js";
import { checkProjectTypes } from "./check.js";
import { writeNewProjectFiles } from "./init.js";
import { followRuns } from "./run.js";
import { pushProject } from "./sync.js";

const CHANGE_POLL_MS = 60;
/** Signal that never aborts, for commands that run until their process ends. */
const NEVER_ABORTED = new AbortController().signal;
/** Process signals that end a command. The local service has its own process group, so it gets no SIGHUP when the terminal closes. */
const END_SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
const PROJECT_FILE_PATTERN = /^(?:actions|lib|data)[\\/]|^(?:settings|secret-bindings|alerts|app|tsconfig)\.json$/;

interface PendingWork {
  isDirty: boolean;
}

/** Calls `work` whenever `pending.isDirty` is true. Prints failures that a changed file could fix. @throws all other errors of `work` */
async function repeatWork(
  session: CliSession,
  pending: PendingWork,
  work: () => Promise<unknown>,
  stopSignal: AbortSignal,
): Promise<void> {
  while (!stopSignal.aborted) {
    if (pending.isDirty) {
      pending.isDirty = false;
      try {
        await work();
      } catch (error) {
        if (error instanceof ProjectError) session.output.writeFailure(error.message, {});
        else if (!(error instanceof CliError) || error instanceof UnrecoverableError) throw error;
        else session.output.writeFailure(error.message, error.details);
      }
    }
    await delay(CHANGE_POLL_MS);
  }
}

/** Calls `work` once at the start and after each burst of file changes, one call at a time, until `stopSignal` aborts. */
async function runOnChanges(session: CliSession, work: () => Promise<unknown>, stopSignal: AbortSignal): Promise<void> {
  const pending: PendingWork = { isDirty: true };
  const watcher = watch(session.target.root, { recursive: true }, (_event, file) => {
    if (file !== null && PROJECT_FILE_PATTERN.test(file)) pending.isDirty = true;
  });
  watcher.on("error", (error) => session.output.writeNote(error.message));
  try {
    await repeatWork(session, pending, work, stopSignal);
  } finally {
    watcher.close();
  }
}

/** Returns the port if the URL is an address of this machine; otherwise null. */
function getLocalPort(url: string): number | null {
  const { hostname, port, protocol } = new URL(url);
  return protocol === "http:" && ["127.0.0.1", "localhost"].includes(hostname) ? Number(port || 80) : null;
}

const isEmpty = (folder: string): boolean => readdirSync(folder).every((name) => name.startsWith("."));

/**
 * Starts the project's service on this machine. If the folder is empty, then creates a project for this service in it. Starts nothing and
 * returns null if `SVC_URL` is set, if the service already responds, or if this folder has no local project.
 */
async function startServerIfNeeded(
  session: CliSession,
  isThrowAway: boolean,
  stopController: AbortController,
): Promise<LocalServer | null> {
  const { output, environment, store } = session;
  const { cwd, env } = environment;
  if (env["SVC_URL"] !== undefined) return null;
  const root = findProjectRoot(cwd);
  if (root === null && !isEmpty(cwd)) return null;
  const target = root === null ? null : readServerAndApp(cwd, env);
  const port = target && getLocalPort(target.url);
  if (target && (port === null || !isLocalProject(target.root) || (await isServerResponding(target.url)))) return null;
  const folder = root ?? resolve(cwd);
  const isNewServer = !hasLocalServerData(folder);
  if (isThrowAway && !isNewServer)
    throw createUsageError(
      "--throw-away is not possible, because .svc/server has the data of an earlier service; delete this folder, or omit the option",
    );
  let server: LocalServer | null = null;
  const handleEndSignal = () => {
    if (stopController.signal.aborted && server !== null) runInBackground(server.stop());
    stopController.abort();
  };
  for (const signal of END_SIGNALS) process.on(signal, handleEndSignal);
  // Prints the note after the signal handlers are set, because a reader of the note may send a signal at once.
  output.writeNote("Starting a service …");
  server = await startLocalServer(folder, { isThrowAway, port, env }, stopController.signal);
  if (target === null) {
    writeNewProjectFiles(folder, server.url, server.app);
    output.writeLine(`Created a project in ${folder}`, "green");
  }
  // Removes the record of the last pull: it describes the data of an earlier service at the same address.
  if (isNewServer) new Project(folder).removeLastSync({ url: server.url, app: server.app, root: folder });
  // Saves the sign-in, so that other `svc` commands in this folder can use the new service.
  store.set({ url: server.url, app: server.app }, { token: server.token });
  output.writeLine(`Studio: ${server.url}/studio`);
  return server;
}

/** Prints new runs until `stopSignal` aborts, if the token has permission to read runs. */
async function showRuns(session: CliSession, stopSignal: AbortSignal): Promise<void> {
  try {
    await followRuns(session, { withConsole: true, stopSignal });
  } catch (error) {
    if (!(error instanceof ServiceResponseError && error.http === 403)) throw error;
    session.output.writeNote("This token does not permit reading runs, so svc dev shows no runs.");
  }
}

async function watchAndPush(session: CliSession, stopSignal: AbortSignal): Promise<void> {
  const { url, app, root } = session.target;
  session.output.writeLine(`Pages: ${url}/apps/${app}/viewer`);
  session.output.writeNote(`Watching ${root}; end with Ctrl C`);
  // Each push requests a type check in a separate loop. So a type check, which takes longer than a push, does not delay the next push.
  const typeCheck: PendingWork = { isDirty: false };
  const pushChanges = async () => {
    await pushProject(session, {}, false);
    typeCheck.isDirty = true;
  };
  // If one of the three loops below fails, this controller aborts the other two loops.
  const failureController = new AbortController();
  const loopStopSignal = AbortSignal.any([stopSignal, failureController.signal]);
  try {
    await Promise.all([
      runOnChanges(session, pushChanges, loopStopSignal),
      repeatWork(session, typeCheck, () => checkProjectTypes(session, loopStopSignal), loopStopSignal),
      showRuns(session, loopStopSignal),
    ]);
  } finally {
    failureController.abort();
  }
}

async function runDevelopment(session: CliSession, isThrowAway: boolean): Promise<void> {
  const stopController = new AbortController();
  let server: LocalServer | null = null;
  try {
    server = await startServerIfNeeded(session, isThrowAway, stopController);
    if (server === null && isThrowAway)
      throw createUsageError(`--throw-away needs a service that svc dev starts (got ${session.target.url})`);
    await Promise.race([watchAndPush(session, stopController.signal), ...(server ? [server.failurePromise] : [])]);
  } catch (error) {
    // After Ctrl C, an error of the interrupted request or start is expected, so it is not reported.
    if (!stopController.signal.aborted) throw error;
  } finally {
    stopController.abort();
    await server?.stop();
    if (server !== null && isThrowAway) session.store.remove(server);
  }
}

export function addDevelopCommand(program: Command, run: CommandRunner): void {
  program
    .command("dev")
    .description("push the project whenever a file is saved, check types, and show runs with their console")
    .option("--throw-away", "with a service that this command starts: delete its data at the end")
    .action(({ throwAway = false }: { throwAway?: boolean }) => run((session) => runDevelopment(session, throwAway)));
  program
    .command("test")
    .argument("[actions...]", "names of actions; default: all actions that have a test")
    .description("run actions/<name>/action.test.ts in the service's sandbox")
    .option("--watch", "run again whenever a file is saved")
    .option("--service", "run in a service that this command starts, and deletes at the end")
    .action((names: string[], { watch: isWatching = false, service = false }: { watch?: boolean; service?: boolean }) =>
      run(async (session) => {
        if (isWatching && service)
          throw createUsageError("--watch cannot be used with --service; run svc dev in another terminal");
        const runOnce = () =>
          runProjectTests(session, names, { usesTemporaryService: service, isRepeated: isWatching });
        if (isWatching) await runOnChanges(session, runOnce, NEVER_ABORTED);
        else session.output.writeJson({ tests: await runOnce() });
      }),
    );
}
