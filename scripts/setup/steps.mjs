/** Runs the steps of the set-up. Prints a line at the start and end of each step, and the output of failed programs. */
import { spawn } from "node:child_process";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";

export const ROOT = fileURLToPath(new URL("../..", import.meta.url));

const PROGRESS_INTERVAL_MS = 15_000;

const ENDING_SIGNALS = ["SIGINT", "SIGTERM"];
let receivedSignal = null;

/** Expected failure of the set-up, reported in one line. Any other error is a bug in the set-up itself. */
export class SetupError extends Error {}

export function printProgress(line) {
  process.stderr.write(`set-up: ${line}\n`);
}

/**
 * Returns the environment with the project's own Node first in PATH. GOGC makes Go programs (compiler, bundler) collect garbage less often,
 * which saves 15 to 30 % of their processor time.
 */
export function createToolEnvironment(root) {
  const { GOGC = "400", PATH } = process.env;
  return { ...process.env, GOGC, PATH: `${join(root, "node_modules/.bin")}${delimiter}${PATH}` };
}

/**
 * Runs a program. Resolves to `{code, output}`, with code 127 if it cannot be started. Forwards SIGINT and SIGTERM to it; after such a
 * signal, this process starts no other program.
 */
export function run(command, args, { cwd = ROOT, env = createToolEnvironment(ROOT) } = {}) {
  return new Promise((resolve) => {
    if (receivedSignal) return resolve({ code: 1, output: `not started because of ${receivedSignal}` });
    const forwardSignal = (signal) => {
      receivedSignal = signal;
      process.exitCode = 1;
      // The compiler ignores signals, so it may still run for a minute.
      printProgress(`received ${signal}; waiting for \`${command}\` to end`);
      child.kill(signal);
    };
    const finish = (result) => {
      for (const signal of ENDING_SIGNALS) process.off(signal, forwardSignal);
      resolve(result);
    };
    // Listens before the start: on a busy machine, the program may run before `spawn` returns.
    for (const signal of ENDING_SIGNALS) process.on(signal, forwardSignal);
    const child = spawn(command, args, { cwd, env, stdio: ["ignore", "pipe", "pipe"] });
    const chunks = [];
    child.stdout.on("data", (chunk) => chunks.push(chunk));
    child.stderr.on("data", (chunk) => chunks.push(chunk));
    // Node also emits `error` if a signal cannot be sent to a running program, such as sudo.
    child.on("error", (error) => {
      if (child.pid === undefined) finish({ code: 127, output: error.message });
    });
    child.once("close", (code) => finish({ code: code ?? 1, output: Buffer.concat(chunks).toString() }));
  });
}

export async function step(title, action) {
  const began = performance.now();
  const elapsed = () => `${((performance.now() - began) / 1000).toFixed(1)} s`;
  printProgress(`${title} …`);
  const timer = setInterval(() => printProgress(`${title} … ${elapsed()}`), PROGRESS_INTERVAL_MS);
  try {
    const result = await action();
    printProgress(`${title}: done in ${elapsed()}`);
    return result;
  } catch (error) {
    printProgress(`${title}: failed after ${elapsed()}`);
    throw error;
  } finally {
    clearInterval(timer);
  }
}

/** @throws SetupError if a signal has asked this process to end */
export function throwIfSignalReceived() {
  if (receivedSignal) throw new SetupError(`ended by ${receivedSignal}`);
}

/** Runs a program that must succeed. Prints its output only if it fails. @throws SetupError */
export async function runOrThrow(command, args, options) {
  const { code, output } = await run(command, args, options);
  if (code === 0) return output;
  throwIfSignalReceived();
  process.stderr.write(output.endsWith("\n") ? output : `${output}\n`);
  throw new SetupError(`\`${[command, ...args].join(" ")}\` failed with exit code ${code}; its output is above`);
}

/** Waits for all promises, even if one fails, and then throws the error of the first failed one in the list. */
export async function waitForAll(promises) {
  const results = await Promise.allSettled(promises);
  const failed = results.find(({ status }) => status === "rejected");
  if (failed) throw failed.reason;
}
