/** Installs packages from the archives in npm's cache, with a third of the processor time of `npm ci`. Can leave out files. */
import { createHash } from "node:crypto";
import { chmodSync, existsSync, mkdirSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, join, relative } from "node:path";
import { extractArchive } from "./archive.mjs";
import { describeCurrentMachine, selectPackages } from "./lock-file.mjs";
import { throwIfSignalReceived, waitForAll } from "./steps.mjs";

const CONCURRENCY = 4;
const SHA512_PATTERN = /^sha512-(\S+)$/;

/** Returns the path of a package's archive in npm's cache; null if there is none. */
function findCachedArchive(cache, { integrity }) {
  const [, base64] = SHA512_PATTERN.exec(integrity ?? "") ?? [];
  if (!base64) return null;
  const hash = Buffer.from(base64, "base64").toString("hex");
  const file = join(cache, "_cacache/content-v2/sha512", hash.slice(0, 2), hash.slice(2, 4), hash.slice(4));
  return existsSync(file) ? file : null;
}

/** Returns the folder of npm's cache. If npm started this process, the environment contains the folder. */
const getDefaultCache = () => process.env.npm_config_cache || join(homedir(), ".npm");

async function extractPackage(folder, { path, entry, file }, isWanted) {
  const archive = await readFile(file);
  const integrity = `sha512-${createHash("sha512").update(archive).digest("base64")}`;
  if (integrity !== entry.integrity) throw new Error(`npm's cache has a damaged archive of ${path}`);
  const inPackages = path.slice("node_modules/".length);
  await extractArchive(archive, join(folder, path), (name) => isWanted(`${inPackages}/${name}`));
}

function linkPrograms(folder, { path, entry }) {
  const bin = join(folder, path.slice(0, path.lastIndexOf("node_modules/")), "node_modules/.bin");
  for (const [name, target] of Object.entries(entry.bin ?? {})) {
    const program = join(folder, path, target);
    if (!existsSync(program)) continue;
    chmodSync(program, (statSync(program).mode & 0o777) | 0o111);
    const link = join(bin, name);
    mkdirSync(dirname(link), { recursive: true });
    if (!existsSync(link)) symlinkSync(relative(dirname(link), program), link);
  }
}

const DEPENDENCY_FIELDS = ["dependencies", "devDependencies", "optionalDependencies", "peerDependencies"];

/** True if the lock file has the same dependencies as package.json. If they differ, `npm ci` reports an error. */
function matchesManifest(lock, manifest) {
  const sorted = (list = {}) => JSON.stringify(Object.entries(list).sort());
  return DEPENDENCY_FIELDS.every((field) => sorted(lock.packages[""][field]) === sorted(manifest[field]));
}

/**
 * Installs the packages of a lock file. Returns false if npm's cache lacks an archive, or if the lock file does not match `manifest`
 * (package.json).
 * @param isWanted receives the path of a file in `node_modules`, and returns false to leave the file out
 * @throws if an archive is damaged or a file cannot be written
 */
export async function installCachedPackages(
  folder,
  { lock, manifest },
  isServiceOnly,
  isWanted,
  cache = getDefaultCache(),
) {
  if (!lock.packages[""] || !matchesManifest(lock, manifest)) return false;
  const paths = selectPackages(lock.packages, describeCurrentMachine(), isServiceOnly);
  const found = paths.map((path) => {
    const entry = lock.packages[path];
    return { path, entry, file: entry.link ? null : findCachedArchive(cache, entry) };
  });
  if (found.some(({ file }) => file === null)) return false;
  const pending = [...found];
  const extractPending = async () => {
    try {
      while (pending.length > 0) {
        throwIfSignalReceived();
        await extractPackage(folder, pending.pop(), isWanted);
      }
    } finally {
      // After a failure, prevents the extraction of further archives.
      pending.length = 0;
    }
  };
  await waitForAll(Array.from({ length: CONCURRENCY }, extractPending));
  for (const cached of found) linkPrograms(folder, cached);
  // npm writes the same list after an installation.
  const packages = Object.fromEntries(found.map(({ path, entry }) => [path, entry]));
  const record = { name: lock.name, version: lock.version, lockfileVersion: 3, requires: true, packages };
  writeFileSync(join(folder, "node_modules/.package-lock.json"), JSON.stringify(record, null, 2));
  return true;
}
