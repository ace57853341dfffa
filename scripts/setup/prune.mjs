/** Selects the files of packages that the build and the service need. The others are more than a third of all bytes. */
import { readdirSync, rmSync } from "node:fs";
import { join, relative } from "node:path";

/** Files that neither the build of the service nor the service needs. This build checks no types, so it needs no .ts files. */
const UNNEEDED_FILE_PATTERNS = [
  /^node-linux-(?:x64|arm64)\/include\//,
  /^typeorm\/browser\//,
  /^monaco-editor\/dev\//,
  /^monaco-editor\/min\/.*\.js$/,
  /^@opentelemetry\/[^/]+\/build\/(?:esm|esnext)\//,
  new RegExp(`^isolated-vm/prebuilds/(?!${process.platform}-${process.arch}/)`),
  /^(?!@?typescript\/).*\.[cm]?ts$/,
  /\.(?:map|tgz)$/,
];

export const isNeededByService = (path) => !UNNEEDED_FILE_PATTERNS.some((pattern) => pattern.test(path));

export function prunePackages(packages) {
  for (const entry of readdirSync(packages, { recursive: true, withFileTypes: true })) {
    const file = join(entry.parentPath ?? entry.path, entry.name);
    if (entry.isFile() && !isNeededByService(relative(packages, file))) rmSync(file);
  }
}
