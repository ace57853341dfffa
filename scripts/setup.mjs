/**
 * Prepares a fresh machine for `npm start` and `npm test`: installs packages, Node and Chromium, and builds. Must run on Node 20 without
 * any package.
 */
import { build } from "./setup/build.mjs";
import { ensureChromium } from "./setup/chromium.mjs";
import { withLock } from "./setup/lock.mjs";
import { ensureNode, ensurePackages } from "./setup/packages.mjs";
import { ROOT, SetupError, waitForAll } from "./setup/steps.mjs";

const wantsBrowser = !process.argv.includes("--no-browser");
/** True to prepare only the service, without development packages and tests. */
const isServiceOnly = process.argv.includes("--service");

async function setUp() {
  const packages = ensurePackages(ROOT, isServiceOnly);
  const built = packages.then(() => {
    ensureNode(ROOT);
    return build(ROOT, isServiceOnly);
  });
  // Installing Chromium takes 20 s, so it runs at the same time as the other steps.
  await waitForAll([built, wantsBrowser && ensureChromium(ROOT, process.env, packages)]);
}

try {
  await withLock(ROOT, setUp);
} catch (error) {
  if (!(error instanceof SetupError)) throw error;
  process.stderr.write(`set-up failed: ${error.message}\n`);
  process.exitCode = 1;
}
