/** A Chromium on this machine: found, or installed by the system's packages, or by Puppeteer's installer. */
import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { run, SetupError, step } from "./steps.mjs";

const PACKAGE = "chromium-headless-shell";

/** apt-get's prefix: none as root, sudo where it asks for no password, null where neither is given. */
async function privilege() {
  if (process.getuid?.() === 0) return [];
  return (await run("sudo", ["-n", "true"])).code === 0 ? ["sudo", "-n"] : null;
}

async function installByApt() {
  const prefix = existsSync("/usr/bin/apt-get") ? await privilege() : null;
  if (prefix === null) return "apt-get with root or sudo is not available";
  const apt = async (...args) => {
    const options = ["-q", "-o", "DPkg::Lock::Timeout=300"];
    const [command, ...rest] = [...prefix, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", ...options, ...args];
    return run(command, rest);
  };
  return step(`installing ${PACKAGE} by apt-get`, async () => {
    await apt("update");
    const { code, output } = await apt("install", "-y", "--no-install-recommends", PACKAGE);
    return code === 0 ? null : `apt-get: ${lastLine(output)}`;
  });
}

function lastLine(output) {
  return output.trim().split("\n").at(-1);
}

async function installByPuppeteer(root, cache) {
  return step("downloading chrome-headless-shell", async () => {
    const args = ["install", "chrome-headless-shell@stable", "--path", cache];
    const { code, output } = await run(join(root, "node_modules/.bin/browsers"), args, { cwd: root });
    return code === 0 ? null : `Puppeteer's installer: ${lastLine(output)}`;
  });
}

/** As root the browser goes where the unprivileged account it runs under can reach it. */
function cacheFor(environment, publicCache) {
  if (environment.PUPPETEER_CACHE_DIR) return environment.PUPPETEER_CACHE_DIR;
  return process.getuid?.() === 0 ? publicCache : join(homedir(), ".cache/puppeteer");
}

/** Goes through the installers until `find` finds something; resolves to the path, or to what each installer said. */
export async function installUntilFound(find, installers) {
  const complaints = [];
  for (const install of installers) {
    const complaint = await install();
    const path = find();
    if (path) return { path, complaints };
    if (complaint) complaints.push(complaint);
  }
  return { path: null, complaints };
}

export async function ensureChromium(root, environment) {
  // The very finder that the service uses: what satisfies the set-up satisfies the start.
  const finder = await import(pathToFileURL(join(root, "dist/src/engine/chromium-path.js")).href);
  const explicit = environment.CHROME_PATH || null;
  const find = () => finder.findChromium(explicit, finder.usualPlaces(environment.PUPPETEER_CACHE_DIR || null));
  if (find()) return;
  if (explicit) throw new SetupError(`CHROME_PATH names ${explicit}, which is no program that can be started`);
  const cache = cacheFor(environment, finder.PUBLIC_BROWSER_CACHE);
  const { path, complaints } = await installUntilFound(find, [installByApt, () => installByPuppeteer(root, cache)]);
  if (path) return;
  throw new SetupError(`no Chromium: install ${PACKAGE} or set CHROME_PATH (${complaints.join("; ")})`);
}
