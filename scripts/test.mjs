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
/** Number of test processes: one more than cores, because tests wait for timers, but at most 8. With 5 on 2 cores, 30 tests timed out. */
const PROCESSES = Math.min(8, availableParallelism() + 1);
/** Folders and files with the longest tests, the longest first. They run first, so that short files fill the rest of the time. */
const LONG_FOLDERS = [
  ...["service", "docs", "cli", "source", "git", "web", "engine", "attacks", "backup", "packages", "stages"],
  ...["schema.test.js", "regular-expressions.test.js"],
];

/**
 * Returns the path of the project's Node, or of the current Node if the project has none. The current Node may be another version, because
 * npm started this process before the set-up.
 */
function findProjectNode() {
  const path = join(ROOT, "node_modules/.bin/node");
  return existsSync(path) ? path : process.execPath;
}

async function run(node, args) {
  const child = spawn(node, args, { cwd: ROOT, stdio: ["inherit", "inherit", "inherit", "ipc"] });
  let figures = null;
  child.on("message", (message) => {
    figures = message;
  });
  // Also waits until the IPC channel is closed, because the totals may arrive after the exit.
  const [[code]] = await Promise.all([once(child, "close"), once(child, "disconnect")]);
  return { code: code ?? 1, figures };
}

/** Returns a filter for every n-th file, so that long test files are spread over the shards. */
function createShardFilter(shard = "1/1") {
  const [part, parts] = shard.split("/").map(Number);
  if (!(part >= 1 && part <= parts))
    throw new Error(
      `TEST_SHARD must be the number of a shard and the number of all shards, such as 2/4 (got ${shard})`,
    );
  return (_file, index) => index % parts === part - 1;
}

function getRank(name) {
  const rank = LONG_FOLDERS.indexOf(name.split("/")[0]);
  return rank === -1 ? LONG_FOLDERS.length : rank;
}

function listGateFiles() {
  const names = readdirSync(join(ROOT, "dist/test"), { recursive: true }).sort();
  return names
    .filter((name) => name.endsWith(".test.js") && !name.startsWith("long/"))
    .sort((a, b) => getRank(a) - getRank(b))
    .map((name) => `dist/test/${name}`)
    .filter(createShardFilter(process.env["TEST_SHARD"]));
}

function parseCommandLine(all) {
  const isFile = (argument) => /\.test\.[jt]s$/.test(argument);
  const compiled = (file) => (file.startsWith("test/") ? `dist/${file.replace(/\.ts$/, ".js")}` : file);
  return { files: all.filter(isFile).map(compiled), options: all.filter((argument) => !isFile(argument)) };
}

/** Runs the test files in several processes. The result has `broken: true` if mocha itself failed. */
async function runTests(node, files, options) {
  const mocha = [...NODE_FLAGS, "node_modules/mocha/bin/mocha.js", "--parallel", "--jobs", PROCESSES];
  const { code, figures } = await run(node, [...mocha, ...options, ...files]);
  const { passes = 0, failures = 0, failed = [] } = figures ?? {};
  return { passed: passes, failed: failures, failures: failed, broken: code !== 0 && failures === 0 };
}

function printFailure({ title, file, message }) {
  process.stdout.write(`failed: ${title}\n  in ${file}\n  ${message.replaceAll("\n", "\n  ")}\n`);
}

async function main() {
  const { files, options } = parseCommandLine(process.argv.slice(2));
  const setUp = await run(process.execPath, ["scripts/setup.mjs"]);
  if (setUp.code !== 0) return { passed: 0, failed: 1 };
  const node = findProjectNode();
  // All test processes use this cache of V8. It is in the checkout, where no other account can write.
  process.env["NODE_COMPILE_CACHE"] ??= join(ROOT, "node_modules/.cache/compiled");
  process.env["TMPDIR"] = createMemoryFolder() ?? tmpdir();
  // The long tests run all generated cases (test/harness/samples.ts).
  if (files.some((file) => file.includes("test/long/"))) process.env["ALL_SAMPLES"] = "1";
  const chosen = files.length > 0 ? files : listGateFiles();
  const { passed, failed, failures, broken } = await runTests(node, chosen, options);
  for (const failure of failures) printFailure(failure);
  if (broken) process.stdout.write("mocha itself failed; its output is above\n");
  return { passed, failed: failed + (broken ? 1 : 0) };
}

const { passed, failed } = await main();
process.stdout.write(`${passed} passed, ${failed} failed\n`);
process.exitCode = failed === 0 ? 0 : 1;
