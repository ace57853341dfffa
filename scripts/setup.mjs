/** What `npm start` and `npm test` need on a fresh machine: packages, Node, a build, a Chromium. Plain Node 20, no dependency. */
import { build } from "./setup/build.mjs";
import { ensureChromium } from "./setup/chromium.mjs";
import { withLock } from "./setup/lock.mjs";
import { ensureNode, ensurePackages } from "./setup/packages.mjs";
import { ROOT, SetupError } from "./setup/steps.mjs";

const wantsBrowser = !process.argv.includes("--no-browser");
/** For the service only: no packages and no compilation of tests and lint. */
const isService = process.argv.includes("--service");

async function setUp() {
  await ensurePackages(ROOT, isService);
  ensureNode(ROOT);
  await build(ROOT, isService);
  if (wantsBrowser) await ensureChromium(ROOT, process.env);
}

try {
  await withLock(ROOT, setUp);
} catch (error) {
  if (!(error instanceof SetupError)) throw error;
  process.stderr.write(`set-up failed: ${error.message}\n`);
  process.exitCode = 1;
}
