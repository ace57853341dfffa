/**
 * `npm test` after the set-up: every check, then what failed once more, and one last line with the sum. The files are shared out between processes, each with a
 * database server of its own. Arguments: the test files to run instead of all.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "./setup/steps.mjs";

const NODE_FLAGS = ["--no-node-snapshot", "--enable-source-maps"];
/** More than cores: tests wait for browsers and clocks more than they compute. */
const PROCESSES = 3;
/** These start processes or drive a browser: they take longest, so they come first, and what is short levels the end. */
const LONG_KINDS = /^dist\/test\/(attacks|cli|engine\/browser|service|web)\//;
const LONG_FILES_AT_A_TIME = 12;
const SHORT_FILES_AT_A_TIME = 9;

/** The Node of node_modules; npm put that folder first on the path before anything was in it. */
function ownNode() {
  const path = join(ROOT, "node_modules/.bin/node");
  return existsSync(path) ? path : process.execPath;
}

/**
 * Runs a script by `node`. Resolves to the exit code, and to the figures when the script sends any. A quiet one's output is shown as a
 * whole when it has ended, so that it does not mix with that of the others.
 */
async function run(node, args, { quiet = false } = {}) {
  const output = quiet ? "pipe" : "inherit";
  const child = spawn(node, args, { cwd: ROOT, stdio: ["inherit", output, output, "ipc"] });
  let figures = null;
  const said = [];
  for (const stream of [child.stdout, child.stderr]) stream?.on("data", (chunk) => said.push(chunk));
  child.on("message", (message) => {
    figures = message;
  });
  // The channel may still hold the figures when the process is gone.
  const [[code]] = await Promise.all([once(child, "close"), once(child, "disconnect")]);
  process.stdout.write(Buffer.concat(said));
  return { code: code ?? 1, figures };
}

/** Shares the files out between chunks of about this size. */
function deal(files, size) {
  const count = Math.ceil(files.length / size);
  // Neighbours in the list are alike in what they cost, so they go to different chunks.
  return Array.from({ length: count }, (_, chunk) => files.filter((_file, at) => at % count === chunk));
}

/** As many at a time as balance the processes and still share a database server's start and the loading of the service. */
function chunksOf(files) {
  const isLong = (file) => LONG_KINDS.test(file);
  return [
    ...deal(files.filter(isLong), LONG_FILES_AT_A_TIME),
    ...deal(
      files.filter((file) => !isLong(file)),
      SHORT_FILES_AT_A_TIME,
    ),
  ];
}

/** Every test that is not a long one. */
function gateFiles() {
  const names = readdirSync(join(ROOT, "dist/test"), { recursive: true }).sort();
  return names
    .filter((name) => name.endsWith(".test.js") && !name.startsWith("long/"))
    .map((name) => `dist/test/${name}`);
}

/**
 * Runs the files in several processes. Resolves to the sum, to each failure, and to the number of processes that ended badly without a
 * failed test.
 */
async function runTests(node, files) {
  const chunks = chunksOf(files);
  const ended = [];
  const worker = async () => {
    for (let chunk = chunks.shift(); chunk; chunk = chunks.shift()) {
      ended.push(await run(node, [...NODE_FLAGS, "node_modules/mocha/bin/mocha.js", ...chunk], { quiet: true }));
    }
  };
  await Promise.all(Array.from({ length: PROCESSES }, worker));
  const sum = (key) => ended.reduce((total, { figures }) => total + (figures?.[key] ?? 0), 0);
  const broken = ended.filter(({ code, figures }) => code !== 0 && !figures?.failures).length;
  const failures = ended.flatMap(({ figures }) => figures?.failed ?? []);
  return { passed: sum("passes"), failed: sum("failures"), failures, broken };
}

/** So that nobody looks for it in thousands of lines. */
function repeat({ title, file, message }) {
  process.stdout.write(`failed: ${title}\n  in ${file}\n  ${message.replaceAll("\n", "\n  ")}\n`);
}

async function main() {
  const files = process.argv.slice(2);
  const setUp = await run(process.execPath, ["scripts/setup.mjs"]);
  if (setUp.code !== 0) return { passed: 0, failed: 1 };
  const node = ownNode();
  const lint = await run(node, ["node_modules/@biomejs/biome/bin/biome", "check", "--error-on-warnings", "."]);
  const { passed, failed, failures, broken } = await runTests(node, files.length > 0 ? files : gateFiles());
  for (const failure of failures) repeat(failure);
  const beside = Array(broken).fill("mocha itself");
  if (lint.code !== 0) beside.push("biome check");
  for (const check of beside) process.stdout.write(`failed beside the tests: ${check}, see its output above\n`);
  return { passed, failed: failed + beside.length };
}

const { passed, failed } = await main();
process.stdout.write(`${passed} passed, ${failed} failed\n`);
process.exitCode = failed === 0 ? 0 : 1;
