/** Selects the files of packages that the build and the service need. The other ones are more than a third of all bytes. */
import { readdirSync, rmSync } from "node:fs";
import { join, relative } from "node:path";

/**
 * Files that the build and the service do not need: headers of Node, builds of packages for other module systems and other platforms, types
 * and sources in TypeScript, source maps, and an archive in isolated-vm that contains the package a second time. The build of the service
 * does not check types.
 */
const UNNEEDED = [
  /^node-linux-(?:x64|arm64)\/include\//,
  /^typeorm\/browser\//,
  /^monaco-editor\/dev\//,
  /^monaco-editor\/min\/.*\.js$/,
  /^@opentelemetry\/[^/]+\/build\/(?:esm|esnext)\//,
  new RegExp(`^isolated-vm/prebuilds/(?!${process.platform}-${process.arch}/)`),
  /^(?!@?typescript\/).*\.[cm]?ts$/,
  /\.(?:map|tgz)$/,
];

/** True if the build or the service needs the file with this path in `node_modules`. */
export const isNeededByService = (path) => !UNNEEDED.some((pattern) => pattern.test(path));

/** Removes the unneeded files from the folder `packages`. */
export function prunePackages(packages) {
  for (const entry of readdirSync(packages, { recursive: true, withFileTypes: true })) {
    const file = join(entry.parentPath ?? entry.path, entry.name);
    if (entry.isFile() && !isNeededByService(relative(packages, file))) rmSync(file);
  }
}
