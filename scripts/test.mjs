/**
 * Command `npm test`: set-up and tests, then a line with the totals. `npm test -- test/x.test.ts --grep text` runs only this file, with
 * options of mocha. `TEST_SHARD=2/4` runs the second of every four files.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { createMemoryFolder } from "./memory-folder.mjs";
import { ROOT } from "./setup/steps.mjs";

const NODE_FLAGS = ["--no-node-snapshot", "--enable-source-maps"];
/**
 * Number of test processes: one more than cores, because tests wait for browsers and timers. Each process loads and compiles all code, so
 * with more processes, time limits expire. On 2 slow cores, 30 tests failed with 5 processes; all passed in 1,111 s with 3.
 */
const PROCESSES = Math.min(8, availableParallelism() + 1);
/**
 * Folders and files with the longest tests, which run first, the longest of them first. The short files that remain keep all processes busy
 * until the end.
 */
const LONG_FOLDERS = [
  ...["service", "docs", "cli", "source", "git", "web", "engine", "attacks", "backup", "packages", "stages"],
  ...["schema.test.js", "regular-expressions.test.js"],
];

/**
 * Returns the path of Node in node_modules, or else of the current Node. They can differ, because node_modules may have been empty when npm
 * started this process.
 */
function ownNode() {
  const path = join(ROOT, "node_modules/.bin/node");
  return existsSync(path) ? path : process.execPath;
}

/** Runs a script by `node`. Resolves to its exit code, and to the totals if the script sends any. */
async function run(node, args) {
  const child = spawn(node, args, { cwd: ROOT, stdio: ["inherit", "inherit", "inherit", "ipc"] });
  let figures = null;
  child.on("message", (message) => {
    figures = message;
  });
  // The totals may arrive after the process has ended, so this also waits until the IPC channel is closed.
  const [[code]] = await Promise.all([once(child, "close"), once(child, "disconnect")]);
  return { code: code ?? 1, figures };
}

/** Returns a filter for the files of this shard: every n-th file, so that long test files are spread over the shards. */
function shardFilter(shard = "1/1") {
  const [part, parts] = shard.split("/").map(Number);
  if (!(part >= 1 && part <= parts)) throw new Error(`TEST_SHARD must be like 2/4 (got ${shard})`);
  return (_file, index) => index % parts === part - 1;
}

function rankOf(name) {
  const rank = LONG_FOLDERS.indexOf(name.split("/")[0]);
  return rank === -1 ? LONG_FOLDERS.length : rank;
}

function gateFiles() {
  const names = readdirSync(join(ROOT, "dist/test"), { recursive: true }).sort();
  return names
    .filter((name) => name.endsWith(".test.js") && !name.startsWith("long/"))
    .sort((a, b) => rankOf(a) - rankOf(b))
    .map((name) => `dist/test/${name}`)
    .filter(shardFilter(process.env["TEST_SHARD"]));
}

/** Separates test files from options of mocha. Files can be paths of sources or of compiled files. */
function parseCommandLine(all) {
  const isFile = (argument) => /\.test\.[jt]s$/.test(argument);
  const compiled = (file) => (file.startsWith("test/") ? `dist/${file.replace(/\.ts$/, ".js")}` : file);
  return { files: all.filter(isFile).map(compiled), options: all.filter((argument) => !isFile(argument)) };
}

/** Runs the files in several processes. Resolves to the totals, the failures, and whether mocha itself failed. */
async function runTests(node, files, options) {
  const mocha = [...NODE_FLAGS, "node_modules/mocha/bin/mocha.js", "--parallel", "--jobs", PROCESSES];
  const { code, figures } = await run(node, [...mocha, ...options, ...files]);
  const { passes = 0, failures = 0, failed = [] } = figures ?? {};
  return { passed: passes, failed: failures, failures: failed, broken: code !== 0 && failures === 0 };
}

/** Prints a failure again at the end of the output. */
function repeat({ title, file, message }) {
  process.stdout.write(`failed: ${title}\n  in ${file}\n  ${message.replaceAll("\n", "\n  ")}\n`);
}

async function main() {
  const { files, options } = parseCommandLine(process.argv.slice(2));
  const setUp = await run(process.execPath, ["scripts/setup.mjs"]);
  if (setUp.code !== 0) return { passed: 0, failed: 1 };
  const node = ownNode();
  // The test processes share V8's compile cache. It is in this checkout, where no other account can write.
  process.env["NODE_COMPILE_CACHE"] ??= join(ROOT, "node_modules/.cache/compiled");
  process.env["TMPDIR"] = createMemoryFolder() ?? tmpdir();
  const chosen = files.length > 0 ? files : gateFiles();
  const { passed, failed, failures, broken } = await runTests(node, chosen, options);
  for (const failure of failures) repeat(failure);
  if (broken) process.stdout.write("failed beside the tests: mocha itself, see its output above\n");
  return { passed, failed: failed + (broken ? 1 : 0) };
}

const { passed, failed } = await main();
process.stdout.write(`${passed} passed, ${failed} failed\n`);
process.exitCode = failed === 0 ? 0 : 1;
