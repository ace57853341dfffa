/**
 * Command `npm run dev`: runs the service. After each change of a source file, builds and restarts it. If a change does not compile, the
 * service keeps running.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { watch } from "node:fs";
import { join } from "node:path";
import { build } from "./setup/build.mjs";
import { ensureChromium } from "./setup/chromium.mjs";
import { withLock } from "./setup/lock.mjs";
import { ensureNode, ensurePackages } from "./setup/packages.mjs";
import { ROOT, SetupError } from "./setup/steps.mjs";

/** Wait after a change, because editors save a file in several steps. */
const BUILD_DELAY_MS = 100;
const WATCHED_FOLDERS = ["src", "migrations"];
const SERVICE_ARGUMENTS = ["--no-node-snapshot", "--enable-source-maps", "dist/src/main.js"];
/** Maximum time in milliseconds in which running actions can end when the service restarts. */
const SHUTDOWN_GRACE_MS = "500";

function exitWithError(error) {
  process.stderr.write(`dev: ${error.stack}\n`);
  process.exit(1);
}

const printLine = (text) => process.stderr.write(`dev: ${text}\n`);
const programPath = (name) => join(ROOT, "node_modules/.bin", name);

/** The running service. There is at most one at a time. */
class Service {
  #child = null;
  #restarting = Promise.resolve();

  restart() {
    this.#restarting = this.#restarting.then(async () => {
      await this.#end();
      const env = { SHUTDOWN_GRACE_MS: SHUTDOWN_GRACE_MS, ...process.env };
      this.#child = spawn(programPath("node"), SERVICE_ARGUMENTS, { cwd: ROOT, env, stdio: "inherit" });
    });
    return this.#restarting;
  }

  async stop() {
    await this.#restarting;
    await this.#end();
  }

  async #end() {
    const child = this.#child;
    this.#child = null;
    if (child === null || child.exitCode !== null || child.signalCode !== null) return;
    child.kill("SIGTERM");
    await once(child, "exit");
  }
}

/** Compiles the changed files. Returns false if they do not compile; the terminal then shows the compiler's output. */
async function buildChangedFiles() {
  try {
    await withLock(ROOT, () => build(ROOT));
    return true;
  } catch (error) {
    if (!(error instanceof SetupError)) throw error;
    printLine(`${error.message}; the service is not restarted`);
    return false;
  }
}

/** Watches the sources and builds after each change, one build at a time. Calls `onBuilt` after each build that succeeds. */
function watchSources(onBuilt) {
  const state = { timer: null, isBuilding: false, hasChanged: false };
  const buildChanges = async () => {
    if (state.isBuilding) return;
    state.isBuilding = true;
    while (state.hasChanged) {
      state.hasChanged = false;
      if ((await buildChangedFiles()) && !state.hasChanged) onBuilt();
    }
    state.isBuilding = false;
  };
  const onChange = () => {
    state.hasChanged = true;
    clearTimeout(state.timer);
    state.timer = setTimeout(() => {
      buildChanges().catch(exitWithError);
    }, BUILD_DELAY_MS);
  };
  return WATCHED_FOLDERS.map((folder) => watch(join(ROOT, folder), { recursive: true }, onChange));
}

async function main() {
  await withLock(ROOT, async () => {
    await ensurePackages(ROOT);
    ensureNode(ROOT);
    await build(ROOT);
    await ensureChromium(ROOT, process.env);
  });
  const service = new Service();
  const watchers = watchSources(() => service.restart());
  await service.restart();
  for (const signal of ["SIGINT", "SIGTERM"]) {
    process.once(signal, () => {
      for (const watcher of watchers) watcher.close();
      service.stop().then(() => process.exit(0), exitWithError);
    });
  }
}

await main();
