/**
 * A separate process that serves packages of this installation like npm's registry, so that no network is needed. Prints its URL once it
 * listens.
 */
import { readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { startRegistry } from "../../test/harness/npm-registry.js";
import { PACKAGES } from "./kinds.js";

const require = createRequire(import.meta.url);
/** Files that bundling reads. */
const READ = /\.(?:[cm]?js|json|md)$/i;

const registry = await startRegistry();
for (const { name } of PACKAGES) {
  const folder = dirname(require.resolve(`${name}/package.json`));
  const manifest = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const paths = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((path) => READ.test(path));
  const files = Object.fromEntries(paths.map((path) => [path, readFileSync(join(folder, path), "utf8")]));
  registry.publish({ name, version: manifest.version, files, manifest });
}
process.once("disconnect", () => process.exit(0));
process.send!(registry.url);
