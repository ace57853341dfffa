/** Finds Chromium on this machine, or installs it by apt-get or by Puppeteer's installer. */
import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { findChromium, getDefaultChromiumPaths, PUBLIC_BROWSER_CACHE } from "../../src/engine/chromium-path.mjs";
import { createToolEnvironment, run, SetupError, step } from "./steps.mjs";

const PACKAGE = "chromium-headless-shell";

/** Returns the prefix of apt-get: [] for root, sudo if it needs no password, null without either. */
async function findPrivilegePrefix() {
  if (process.getuid?.() === 0) return [];
  return (await run("sudo", ["-n", "true"])).code === 0 ? ["sudo", "-n"] : null;
}

function findReason(output) {
  const lines = output.split("\n").map((line) => line.trim());
  return lines.findLast((line) => /^E: |error/i.test(line)) ?? lines.findLast(Boolean) ?? "no output";
}

async function runInstaller(name, command, args, options) {
  const { code, output } = await run(command, args, options);
  if (code !== 0) throw new SetupError(`${name}: ${findReason(output)}`);
}

async function installByApt() {
  const prefix = existsSync("/usr/bin/apt-get") ? await findPrivilegePrefix() : null;
  if (prefix === null) throw new SetupError("apt-get: not available, or it needs root or sudo without a password");
  const apt = (...args) => {
    const options = ["-q", "-o", "DPkg::Lock::Timeout=300"];
    const [command, ...rest] = [...prefix, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", ...options, ...args];
    return runInstaller("apt-get", command, rest);
  };
  await step(`installing ${PACKAGE} by apt-get`, async () => {
    // Ignores a failure: an old package list may contain the package too.
    await apt("update").catch(() => {});
    await apt("install", "-y", "--no-install-recommends", PACKAGE);
  });
}

async function installByPuppeteer(root, cache) {
  const args = ["browsers", "install", "chrome-headless-shell"];
  const installer = join(root, "node_modules/.bin/puppeteer");
  const env = { ...createToolEnvironment(root), PUPPETEER_CACHE_DIR: cache };
  await step("downloading chrome-headless-shell", () =>
    runInstaller("Puppeteer's installer", installer, args, { cwd: root, env }),
  );
}

/** Returns the folder for the browser. If root installs the browser, another account runs it, so every account can read this folder. */
function chooseCacheFolder(environment, publicCache) {
  if (environment.PUPPETEER_CACHE_DIR) return environment.PUPPETEER_CACHE_DIR;
  return process.getuid?.() === 0 ? publicCache : join(homedir(), ".cache/puppeteer");
}

/**
 * Runs the installers in order until `find` returns a path. Resolves to `{path, failures}`: the path (null if none was found), and the
 * messages of failed installers.
 */
export async function installUntilFound(find, installers) {
  const failures = [];
  for (const install of installers) {
    await install().catch((error) => failures.push(error.message));
    const path = find();
    if (path) return { path, failures };
  }
  return { path: null, failures };
}

/** True if the service needs a browser on this machine: it has the role `runner`, and does not use browsers on other machines. */
export function needsChromium({ BROWSER_WS_ENDPOINTS = "", ROLES = "" }) {
  const isRunner = ROLES.trim() === "" || ROLES.split(",").some((role) => role.trim() === "runner");
  return isRunner && BROWSER_WS_ENDPOINTS.trim() === "";
}

/**
 * Installs Chromium unless this machine has it, or does not need it.
 * @param packages resolves when the npm packages are installed, which only Puppeteer's installer needs
 */
export async function ensureChromium(root, environment, packages) {
  if (!needsChromium(environment)) return;
  const explicit = environment.CHROME_PATH || null;
  const find = () => findChromium(explicit, getDefaultChromiumPaths(environment.PUPPETEER_CACHE_DIR || null));
  // CHROME_PATH is not checked here. The service checks it, and lists all invalid variables in one message.
  if (explicit || find()) return;
  const installWithPackages = async () => {
    await packages;
    await installByPuppeteer(root, chooseCacheFolder(environment, PUBLIC_BROWSER_CACHE));
  };
  const { path, failures } = await installUntilFound(find, [installByApt, installWithPackages]);
  if (path) return;
  throw new SetupError(
    `Chromium was not found, and could not be installed (${failures.join("; ")}); install ${PACKAGE}, or set CHROME_PATH`,
  );
}
