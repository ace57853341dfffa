/**
 * Command `npm run test:mutation`: adds small faults to compiled modules, one at a time, and runs their tests. Prints the faults that no
 * test detects. `MUTANTS=200` sets the number of faults, `SEED=2` selects others, `MODULE=rules/ticks` uses only this module.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { createMutants } from "./mutation/mutants.mjs";
import { TEST_GROUPS } from "./mutation/test-groups.mjs";

const ROOT = fileURLToPath(new URL("../", import.meta.url));
const HOOK_FILE = join(ROOT, "scripts/mutation/hook.mjs");
const SAMPLE_SIZE = Number(process.env.MUTANTS ?? 80);
const SEED = Number(process.env.SEED ?? 1);
const PROCESSES = 2;
const { MODULE } = process.env;
/** Time limit of the tests in milliseconds. If the tests exceed it, the fault counts as detected. */
const TEST_TIMEOUT_MS = 120_000;

/** Returns a generator of numbers from 0 to 1 that depends only on the seed (mulberry32). */
function createRandom(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** True if the tests fail with the fault `mutant` in the module `file`. An empty `file` means: without a fault. */
async function isDetected({ file, tests, mutant }) {
  const paths = tests.map((test) => join(ROOT, "dist/test", `${test}.test.js`));
  const flags = ["--no-node-snapshot", "--import", HOOK_FILE, join(ROOT, "node_modules/mocha/bin/mocha.js"), "--bail"];
  const env = { ...process.env, MUTANT: JSON.stringify({ file, ...mutant }) };
  const child = spawn(process.execPath, [...flags, ...paths], { cwd: ROOT, env, stdio: "ignore" });
  const timer = setTimeout(() => child.kill("SIGKILL"), TEST_TIMEOUT_MS);
  const [code] = await once(child, "exit");
  clearTimeout(timer);
  return code !== 0;
}

function getLineNumber(file, at) {
  const before = readFileSync(file, "utf8").slice(0, at);
  return before.split("\n").length;
}

function listMutants() {
  return TEST_GROUPS.flatMap(({ area, modules, tests }) =>
    modules.flatMap((name) => {
      if (MODULE !== undefined && MODULE !== name) return [];
      const file = join(ROOT, "dist/src", `${name}.js`);
      return createMutants(readFileSync(file, "utf8")).map((mutant) => ({ area, name, file, tests, mutant }));
    }),
  );
}

async function main() {
  for (const { tests, modules } of TEST_GROUPS) {
    if (MODULE !== undefined && !modules.includes(MODULE)) continue;
    if (await isDetected({ file: "", tests, mutant: { start: 0, end: 0, text: "" } }))
      throw new Error(`these tests fail without a fault: ${tests.join(", ")}`);
  }
  const random = createRandom(SEED);
  const all = listMutants();
  const sample = all
    .map((mutant) => [random(), mutant])
    .sort(([a], [b]) => a - b)
    .slice(0, SAMPLE_SIZE)
    .map(([, mutant]) => mutant);
  const queue = [...sample];
  const resultsByArea = new Map();
  async function testMutants() {
    for (let candidate = queue.pop(); candidate; candidate = queue.pop()) {
      const isDetectedMutant = await isDetected(candidate);
      const [hits, tries] = resultsByArea.get(candidate.area) ?? [0, 0];
      resultsByArea.set(candidate.area, [hits + Number(isDetectedMutant), tries + 1]);
      const { name, file, mutant } = candidate;
      if (!isDetectedMutant)
        console.log(`not detected: ${name}.js:${getLineNumber(file, mutant.start)} ${mutant.from} → ${mutant.text}`);
    }
  }
  await Promise.all(Array.from({ length: PROCESSES }, testMutants));
  for (const [area, [hits, tries]] of resultsByArea) console.log(`${area}: ${hits} of ${tries} detected`);
  const hits = [...resultsByArea.values()].reduce((sum, [areaHits]) => sum + areaHits, 0);
  console.log(`${hits} of ${sample.length} detected (${all.length} faults in all, seed ${SEED})`);
  process.exitCode = hits >= sample.length * 0.9 ? 0 : 1;
}

await main();
