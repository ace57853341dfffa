/**
 * Command `npm run dev`: runs the service. After each change of a source file, builds and restarts the service, and then checks the types.
 * If a change does not compile, the old service keeps running. A type error is only printed.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { watch } from "node:fs";
import { join } from "node:path";
import { build, checkTypes } from "./setup/build.mjs";
import { ensureChromium } from "./setup/chromium.mjs";
import { withLock } from "./setup/lock.mjs";
import { ensureNode, ensurePackages } from "./setup/packages.mjs";
import { ROOT, SetupError } from "./setup/steps.mjs";

/** Milliseconds between a change and the build, because editors save a file in several steps. */
const BUILD_DELAY_MS = 100;
const WATCHED_FOLDERS = ["src", "migrations"];
const SERVICE_ARGUMENTS = ["--no-node-snapshot", "--enable-source-maps", "scripts/setup/dev-service.mjs"];
/** Milliseconds that running actions have to end when the service restarts. */
const SHUTDOWN_GRACE_MS = "500";
/** Folder of V8's compile cache, which halves the time to load the service. Only this account can write to it. */
const NODE_COMPILE_CACHE = join(ROOT, "node_modules/.cache/compiled");

function exitWithError(error) {
  process.stderr.write(`dev: ${error.stack}\n`);
  process.exit(1);
}

const printLine = (text) => process.stderr.write(`dev: ${text}\n`);
const getProgramPath = (name) => join(ROOT, "node_modules/.bin", name);

const isRunning = (child) => child !== null && child.exitCode === null && child.signalCode === null;

async function endProcess(child) {
  if (!isRunning(child)) return;
  child.kill("SIGTERM");
  await once(child, "exit");
}

/** The running service, and the process that waits to become the next one. There is at most one of each. */
class Service {
  #current = null;
  #next = null;
  #restarting = Promise.resolve();

  /** Starts the process of the next service. It loads packages and then waits for the restart. */
  prepare() {
    if (isRunning(this.#next)) return;
    const env = { SHUTDOWN_GRACE_MS, NODE_COMPILE_CACHE, ...process.env };
    const stdio = ["inherit", "inherit", "inherit", "ipc"];
    this.#next = spawn(getProgramPath("node"), SERVICE_ARGUMENTS, { cwd: ROOT, env, stdio });
  }

  restart() {
    this.#restarting = this.#restarting.then(async () => {
      this.prepare();
      await endProcess(this.#current);
      this.#current = this.#next;
      this.#next = null;
      // Ignores errors: Ctrl C may have ended the child process already.
      this.#current.send("start", () => undefined);
    });
    return this.#restarting;
  }

  async stop() {
    await this.#restarting;
    await Promise.all([endProcess(this.#current), endProcess(this.#next)]);
  }
}

async function succeeds(step, consequence) {
  try {
    await step();
    return true;
  } catch (error) {
    if (!(error instanceof SetupError)) throw error;
    printLine(`${error.message}; ${consequence}`);
    return false;
  }
}

const buildChangedFiles = () => succeeds(() => withLock(ROOT, () => build(ROOT, true)), "the service is not restarted");

/** Returns a function that never calls `work` twice at the same time. Calls during `work` cause one more call afterwards. */
function coalesceCalls(work) {
  const state = { isRunning: false, isRequested: false };
  return async () => {
    state.isRequested = true;
    if (state.isRunning) return;
    state.isRunning = true;
    while (state.isRequested) {
      state.isRequested = false;
      await work();
    }
    state.isRunning = false;
  };
}

function watchSources(onChange) {
  let timer = null;
  const restartTimer = () => {
    clearTimeout(timer);
    timer = setTimeout(onChange, BUILD_DELAY_MS);
  };
  return WATCHED_FOLDERS.map((folder) => watch(join(ROOT, folder), { recursive: true }, restartTimer));
}

async function main() {
  await withLock(ROOT, async () => {
    await ensurePackages(ROOT);
    ensureNode(ROOT);
    await build(ROOT, true);
    await ensureChromium(ROOT, process.env);
  });
  const service = new Service();
  const check = coalesceCalls(() => succeeds(() => checkTypes(ROOT), "the service runs with this code"));
  const buildAndRestart = coalesceCalls(async () => {
    service.prepare();
    if (!(await buildChangedFiles())) return;
    await service.restart();
    check()
      .then(() => service.prepare())
      .catch(exitWithError);
  });
  const watchers = watchSources(() => buildAndRestart().catch(exitWithError));
  await service.restart();
  for (const signal of ["SIGINT", "SIGTERM"]) {
    process.once(signal, () => {
      for (const watcher of watchers) watcher.close();
      service.stop().then(() => process.exit(0), exitWithError);
    });
  }
}

await main();
