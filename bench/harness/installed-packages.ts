/**
 * A local npm registry, run as a separate process: serves packages from node_modules, so that the benchmark needs no network. Sends its URL
 * to the parent.
 */
import { readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { startRegistry } from "../../test/harness/npm-registry.js";
import { NPM_PACKAGE_KINDS } from "./kinds.js";

const require = createRequire(import.meta.url);
/** Names of the files that the service's bundler reads. */
const BUNDLED_FILE_PATTERN = /\.(?:[cm]?js|json|md)$/i;

const registry = await startRegistry();
for (const { name } of NPM_PACKAGE_KINDS) {
  const folder = dirname(require.resolve(`${name}/package.json`));
  const manifest = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const paths = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((path) =>
    BUNDLED_FILE_PATTERN.test(path),
  );
  const files = Object.fromEntries(paths.map((path) => [path, readFileSync(join(folder, path), "utf8")]));
  registry.publish({ name, version: manifest.version, files, manifest });
}
process.once("disconnect", () => process.exit(0));
process.send!(registry.url);
