/**
 * Command `npm run schema`: generates schema/ and each src/web/…/documents.ts. Works even if the old generated files do not compile,
 * because it compiles only what it needs.
 */
import { join } from "node:path";
import { discardBuildRecords } from "./setup/build.mjs";
import { withLock } from "./setup/lock.mjs";
import { ensureNode, ensurePackages } from "./setup/packages.mjs";
import { ROOT, runOrThrow, SetupError, step } from "./setup/steps.mjs";

const NODE_FLAGS = ["--no-node-snapshot", "--enable-source-maps"];

async function writeAll() {
  await ensurePackages(ROOT);
  ensureNode(ROOT);
  const project = join(ROOT, "scripts/schema.tsconfig.json");
  discardBuildRecords(ROOT);
  await step("compiling what the schema is made of", () => runOrThrow("tsc", ["-p", project]));
  process.stdout.write(await runOrThrow("node", [...NODE_FLAGS, join(ROOT, "dist/src/cli/schema.js")]));
  process.stdout.write(await runOrThrow("node", [join(ROOT, "scripts/graphql-documents.mjs")]));
}

try {
  await withLock(ROOT, writeAll);
} catch (error) {
  if (!(error instanceof SetupError)) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
}
