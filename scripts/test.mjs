/** `npm test` after the set-up: every check, then one last line with the sum. Arguments: the test files to run instead of all. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "./setup/steps.mjs";

const NODE_FLAGS = ["--no-node-snapshot", "--enable-source-maps"];
const FILES = ["dist/test/**/*.test.js", "--ignore", "dist/test/long/**"];

/** The Node of node_modules; npm put that folder first on the path before anything was in it. */
function ownNode() {
  const path = join(ROOT, "node_modules/.bin/node");
  return existsSync(path) ? path : process.execPath;
}

/** Runs a script by `node`. Resolves to the exit code, and to the figures when the script sends any. */
async function run(node, args) {
  const child = spawn(node, args, { cwd: ROOT, stdio: ["inherit", "inherit", "inherit", "ipc"] });
  let figures = null;
  child.on("message", (message) => {
    figures = message;
  });
  // The channel may still hold the figures when the process is gone.
  const [[code]] = await Promise.all([once(child, "exit"), once(child, "disconnect")]);
  return { code: code ?? 1, figures };
}

async function main() {
  const files = process.argv.slice(2);
  const setUp = await run(process.execPath, ["scripts/setup.mjs"]);
  if (setUp.code !== 0) return { passed: 0, failed: 1 };
  const node = ownNode();
  const lint = await run(node, ["node_modules/@biomejs/biome/bin/biome", "check", "--error-on-warnings", "."]);
  const wanted = files.length > 0 ? files : FILES;
  const mocha = await run(node, [...NODE_FLAGS, "node_modules/mocha/bin/mocha.js", ...wanted]);
  const { passes = 0, failures = 0 } = mocha.figures ?? {};
  const beside = [];
  if (lint.code !== 0) beside.push("biome check");
  // mocha that ends badly without a failed test did not get as far as to count.
  if (mocha.code !== 0 && failures === 0) beside.push("mocha itself");
  for (const check of beside) process.stdout.write(`failed beside the tests: ${check}, see its output above\n`);
  return { passed: passes, failed: failures + beside.length };
}

const { passed, failed } = await main();
process.stdout.write(`${passed} passed, ${failed} failed\n`);
process.exitCode = failed === 0 ? 0 : 1;
