/** Compiles dist/ when a source has changed, and removes compiled files whose source was deleted. */
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { runOrThrow, step, waitForAll } from "./steps.mjs";

const SERVICE_INPUTS = [
  "src",
  "migrations",
  "ormconfig.ts",
  "tsconfig.json",
  "tsconfig.service.json",
  "package-lock.json",
  "scripts/build-web.mjs",
  "scripts/setup/web-bundles.mjs",
];
const INPUTS = [...SERVICE_INPUTS, "test", "bench"];
const COMPILED_FOLDERS = ["src", "test", "bench", "migrations"];
const OUTPUT_PATTERN = /\.(js|js\.map|d\.ts)$/;

function listFiles(path) {
  if (!existsSync(path)) return [];
  if (!statSync(path).isDirectory()) return [path];
  const entries = readdirSync(path, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath ?? entry.path, entry.name));
}

/** Returns a hash of the names, sizes and times of all source files. Reading their contents would take longer. */
export function hashBuildInputs(root, isServiceOnly = false) {
  const hash = createHash("sha256");
  const inputs = isServiceOnly ? SERVICE_INPUTS : INPUTS;
  for (const file of inputs.flatMap((input) => listFiles(join(root, input))).sort()) {
    const { size, mtimeMs } = statSync(file);
    hash.update(`${relative(root, file)}\0${size}\0${mtimeMs}\0`);
  }
  return hash.digest("hex");
}

/** Removes compiled files without a source. Otherwise mocha would still run a deleted test. */
export function removeOrphans(root) {
  for (const file of COMPILED_FOLDERS.flatMap((folder) => listFiles(join(root, "dist", folder)))) {
    if (!OUTPUT_PATTERN.test(file)) continue;
    const source = join(root, relative(join(root, "dist"), file)).replace(OUTPUT_PATTERN, ".ts");
    if (!existsSync(source)) rmSync(file, { force: true });
  }
}

const STAMP = ".stamp";
const SERVICE_STAMP = ".stamp-service";
/** The compiler's record of files that a complete build wrote. With it, the next complete build compiles only changed files. */
const COMPILER_STATE = ".tsbuildinfo";
/** The same record for builds of only the service. */
const SERVICE_COMPILER_STATE = ".tsbuildinfo-service";

const getStampPath = (root, isServiceOnly) => join(root, "dist", isServiceOnly ? SERVICE_STAMP : STAMP);

/**
 * Removes the records of earlier builds in dist, except `usedState`, which the compiler updates. Must be called before anything writes
 * compiled files. Otherwise, the records would be wrong after an interrupted build.
 */
export function discardBuildRecords(root, usedState = null) {
  for (const record of [STAMP, SERVICE_STAMP, COMPILER_STATE, SERVICE_COMPILER_STATE]) {
    if (record !== usedState) rmSync(join(root, "dist", record), { force: true });
  }
}

function isBuilt(root, isServiceOnly) {
  const stamp = getStampPath(root, isServiceOnly);
  return existsSync(stamp) && readFileSync(stamp, "utf8") === hashBuildInputs(root, isServiceOnly);
}

/** True if no complete build of the current sources exists. With `isServiceOnly`, a build of only the service is enough too. */
export function isBuildStale(root, isServiceOnly = false) {
  return !isBuilt(root, false) && !(isServiceOnly && isBuilt(root, true));
}

/** Compiles only changed files and those that depend on them. This takes a quarter of the processor time that all files would take. */
function compileAndCheck(root, project, state) {
  return runOrThrow("tsc", ["-p", project, "--incremental", "--tsBuildInfoFile", join(root, "dist", state)], {
    cwd: root,
  });
}

const buildPages = (root) => runOrThrow("node", ["scripts/build-web.mjs"], { cwd: root });

function buildAll(root) {
  return [
    compileAndCheck(root, root, COMPILER_STATE),
    compileAndCheck(root, join(root, "src/web"), ".tsbuildinfo-web"),
    buildPages(root),
  ];
}

/** Builds only what `npm start` needs, without a type check, in a fifth of the processor time of a complete build. */
function buildService(root) {
  const state = ["--incremental", "--tsBuildInfoFile", join(root, "dist", SERVICE_COMPILER_STATE)];
  return [runOrThrow("tsc", ["-p", "tsconfig.service.json", ...state], { cwd: root }), buildPages(root)];
}

/**
 * Checks the types of the service and the pages at the lowest priority, and writes no compiled file.
 * @throws SetupError if a type is wrong; the compiler's messages are then on standard error
 */
export function checkTypes(root) {
  const check = (project, state) =>
    runOrThrow("nice", ["-n", "19", "tsc", "-p", project, "--noEmit", "--incremental", "--tsBuildInfoFile", state], {
      cwd: root,
    });
  return waitForAll([
    check(root, join(root, "dist/.tsbuildinfo-check")),
    check(join(root, "src/web"), join(root, "dist/.tsbuildinfo-check-web")),
  ]);
}

const compile = (root, isServiceOnly) => waitForAll(isServiceOnly ? buildService(root) : buildAll(root));

export async function build(root, isServiceOnly = false) {
  if (!isBuildStale(root, isServiceOnly)) return;
  // Computes the hash before the build. If a file changes during the build, the next build compiles it.
  const stamp = hashBuildInputs(root, isServiceOnly);
  discardBuildRecords(root, isServiceOnly ? SERVICE_COMPILER_STATE : COMPILER_STATE);
  await step("building", () => compile(root, isServiceOnly));
  removeOrphans(root);
  mkdirSync(join(root, "dist"), { recursive: true });
  writeFileSync(getStampPath(root, isServiceOnly), stamp);
}
