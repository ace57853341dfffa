/** Installs the npm packages and the Node version of the project, exactly as in package-lock.json. */
import {
  copyFileSync,
  existsSync,
  lstatSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { installCachedPackages } from "./cached-packages.mjs";
import { fitsPlatform, readPackages } from "./lock-file.mjs";
import { isNeededByService, prunePackages } from "./prune.mjs";
import { printProgress, runOrThrow, SetupError, step } from "./steps.mjs";

const NODE_MAJOR = 24;
const NODE_MINOR = 11;

/** True if npm may have skipped the package: it is optional, and it may not support this platform. */
function mayBeAbsent(entry, machine) {
  if (!entry.optional) return false;
  return !fitsPlatform(entry, machine) || Boolean(entry.libc) || (!entry.os && !entry.cpu);
}

/**
 * True if node_modules differs from the lock file, or if its installation was interrupted: npm writes its list of packages at the end. With
 * `isServiceOnly`, development packages may be missing.
 */
export function arePackagesStale(root, machine = process, isServiceOnly = false) {
  const locked = readPackages(join(root, "package-lock.json"));
  const installed = readPackages(join(root, "node_modules/.package-lock.json"));
  if (!locked || !installed) return true;
  const differs = ([path, entry]) => {
    if (path === "" || (isServiceOnly && entry.dev)) return false;
    const found = installed[path];
    if (!found) return !mayBeAbsent(entry, machine);
    return found.version !== entry.version || found.integrity !== entry.integrity;
  };
  return Object.entries(locked).some(differs) || Object.keys(installed).some((path) => !(path in locked));
}

const STAGE_PREFIX = ".setup.packages";
/** npm replaces this address by that of the configured registry. */
const REGISTRY_URL = "https://registry.npmjs.org";

/**
 * Returns the lock file with the address of each package's archive. Without addresses, npm requests descriptions of all packages, which
 * takes 16 of 55 seconds of processor time.
 */
export function addArchiveUrls(lock) {
  const withAddress = ([path, entry]) => {
    if (path === "" || entry.resolved || !entry.integrity) return [path, entry];
    const name = entry.name ?? path.slice(path.lastIndexOf("node_modules/") + "node_modules/".length);
    const archive = `${name.split("/").at(-1)}-${entry.version}.tgz`;
    return [path, { ...entry, resolved: `${REGISTRY_URL}/${name}/-/${archive}` }];
  };
  return { ...lock, packages: Object.fromEntries(Object.entries(lock.packages).map(withAddress)) };
}

/** Creates a temporary folder with a new name, because the npm of a killed set-up may still write to its folder. Removes old folders. */
function createStage(root) {
  for (const name of readdirSync(root)) if (name.startsWith(STAGE_PREFIX)) removeIfPossible(join(root, name));
  return mkdtempSync(join(root, `${STAGE_PREFIX}-`));
}

/** Removes the folder. If that fails, the next installation removes it. */
function removeIfPossible(folder) {
  try {
    rmSync(folder, { recursive: true, force: true });
  } catch {}
}

function moveAside(packages, aside) {
  try {
    renameSync(packages, aside);
  } catch (error) {
    // Removes the folder if it cannot be moved (EXDEV). This is so in a container, for a folder of the image.
    if (error.code !== "EXDEV") throw error;
    rmSync(packages, { recursive: true });
  }
}

function replacePackages(packages, stage) {
  const aside = join(stage, "replaced");
  if (existsSync(packages)) moveAside(packages, aside);
  try {
    renameSync(join(stage, "node_modules"), packages);
  } catch (error) {
    if (existsSync(aside)) renameSync(aside, packages);
    throw error;
  }
}

/** Installs the packages from npm's cache. Returns false, and leaves no files in `stage`, if this is not possible. */
async function installFromCache(root, stage, lock, isServiceOnly) {
  try {
    const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
    return await installCachedPackages(
      stage,
      { lock, manifest },
      isServiceOnly,
      isServiceOnly ? isNeededByService : () => true,
    );
  } catch (error) {
    if (error instanceof SetupError) throw error;
    printProgress(`installing again by npm: ${error.message}`);
    rmSync(join(stage, "node_modules"), { recursive: true, force: true });
    return false;
  }
}

async function installByNpm(root, stage, lock, isServiceOnly) {
  for (const file of ["package.json", ".npmrc"]) copyFileSync(join(root, file), join(stage, file));
  writeFileSync(join(stage, "package-lock.json"), JSON.stringify(addArchiveUrls(lock)));
  await runOrThrow("npm", ["ci", isServiceOnly ? "--omit=dev" : "--include=dev", "--include=optional"], { cwd: stage });
  if (isServiceOnly) prunePackages(join(stage, "node_modules"));
}

/** Installs the packages in a temporary folder, and then moves them to node_modules, so that it is never incomplete. */
async function installPackages(root, isServiceOnly) {
  const stage = createStage(root);
  const lock = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8"));
  if (!(await installFromCache(root, stage, lock, isServiceOnly))) await installByNpm(root, stage, lock, isServiceOnly);
  try {
    replacePackages(join(root, "node_modules"), stage);
  } catch (error) {
    throw new SetupError(`cannot replace node_modules: ${error.message}; if it is a mount, run \`npm ci\` yourself`);
  }
  removeIfPossible(stage);
}

export async function ensurePackages(root, isServiceOnly = false) {
  if (!arePackagesStale(root, process, isServiceOnly)) return;
  if (lstatSync(join(root, "node_modules"), { throwIfNoEntry: false })?.isSymbolicLink()) {
    throw new SetupError("node_modules is a link and does not match package-lock.json; run `npm ci` where it leads");
  }
  await step("installing npm packages", () => installPackages(root, isServiceOnly));
}

/**
 * Checks the version of the current Node if node_modules contains no Node, because npm offers none for this platform.
 * @throws SetupError if the service cannot run with this version
 */
export function ensureNode(root, version = process.versions.node) {
  if (existsSync(join(root, "node_modules/.bin/node"))) return;
  const [major, minor] = version.split(".").map(Number);
  if (major === NODE_MAJOR && minor >= NODE_MINOR) return;
  throw new SetupError(
    `Node ${NODE_MAJOR}.${NODE_MINOR} or a later ${NODE_MAJOR} is needed (got ${version}); install it and start again`,
  );
}
