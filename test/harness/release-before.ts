/** Fetches the previous release from the project's history into a separate folder, and compiles it. Starts no service. */
import { execFileSync } from "node:child_process";
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { getSchemaVersion, PREVIOUS_RELEASE_LAST_MIGRATION } from "../../src/data/schema-guard.js";
import type { FirstCredentials } from "../../src/operations/access/bootstrap.js";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));

const git = (...args: string[]): string => execFileSync("git", args, { cwd: ROOT, encoding: "utf8" }).trim();

/** Returns the parent of the commit that added the first migration after `migration`. */
function commitBefore(migration: string): string {
  const files = readdirSync(join(ROOT, "migrations")).sort();
  const newer = files.find((file) => Number.parseInt(file, 10) > getSchemaVersion(migration));
  if (!newer) throw new Error(`the previous release cannot be found: no migration is newer than ${migration}`);
  const added = git("log", "--diff-filter=A", "--format=%H", "--", `migrations/${newer}`).split("\n").at(-1);
  return git("rev-parse", "--verify", `${added}^`);
}

/** Returns the last commit of the previous release. The variable RELEASE_BEFORE can name another commit or a tag. */
export function commitOfReleaseBefore(): string {
  const commit = process.env["RELEASE_BEFORE"];
  return commit ? git("rev-parse", "--verify", `${commit}^{commit}`) : commitBefore(PREVIOUS_RELEASE_LAST_MIGRATION);
}

interface Packages {
  dependencies: Record<string, string>;
  devDependencies: Record<string, string>;
}

/** Links node_modules of this checkout if package.json of the previous release names the same versions. Otherwise runs `npm ci`. */
function installPackages(folder: string, run: (program: string, ...args: string[]) => void): void {
  const read = (root: string) => JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as Packages;
  const all = ({ dependencies, devDependencies }: Packages) => ({ ...dependencies, ...devDependencies });
  const here = all(read(ROOT));
  const isSame = Object.entries(all(read(folder))).every(([name, version]) => here[name] === version);
  if (isSame) symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
  else run("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund");
}

export interface Release {
  /** Abbreviated commit hash. */
  commit: string;
  /** Folder with the files of the release. */
  root: string;
  /** Creates the first app and its tokens, by a program of the previous release. */
  createFirstCredentials(databaseUrl: string, dataDir: string): FirstCredentials;
  remove(): void;
}

/**
 * Fetches and compiles the previous release, or an older one. Takes about a minute.
 * @param last last migration of the release to fetch; by default, the function fetches the previous release
 * @throws Error in a shallow clone, which lacks the history
 */
export function checkOutReleaseBefore(last?: string): Release {
  const commit = last ? commitBefore(last) : commitOfReleaseBefore();
  const root = mkdtempSync(join(tmpdir(), "svc-release-"));
  // Processes of another user must be able to enter the folder.
  chmodSync(root, 0o755);
  const path = `${join(root, "node_modules/.bin")}${delimiter}${process.env["PATH"]}`;
  const run = (program: string, ...args: string[]) =>
    void execFileSync(program, args, {
      cwd: root,
      env: { ...process.env, PATH: path },
      stdio: ["ignore", "ignore", "inherit"],
    });
  const files = execFileSync("git", ["archive", commit], { cwd: ROOT, maxBuffer: 256 * 1024 * 1024 });
  execFileSync("tar", ["-x"], { cwd: root, input: files });
  installPackages(root, run);
  run("tsc", "-p", ".");
  run("node", "scripts/build-web.mjs");
  return {
    commit: commit.slice(0, 7),
    root,
    createFirstCredentials(databaseUrl, dataDir) {
      const bootstrap = ["--no-node-snapshot", "dist/src/cli/bootstrap.js"];
      const env = { ...process.env, DATABASE_URL: databaseUrl, DATA_DIR: dataDir };
      const printed = execFileSync(process.execPath, bootstrap, { cwd: root, env, encoding: "utf8" });
      const { credentials } = JSON.parse(printed.trim().split("\n").at(-1)!) as { credentials: string };
      return JSON.parse(readFileSync(credentials, "utf8")) as FirstCredentials;
    },
    remove: () => rmSync(root, { recursive: true, force: true }),
  };
}
