/** Unpacks the archive of an npm package into memory. Rejects links, devices, and paths outside of the package. */
import { gunzipSync } from "node:zlib";
import { Parser, type ReadEntry } from "tar";
import { PackageError } from "./fault.js";

/** Maximum total size in bytes of the unpacked content of one archive. ARCHIVE_FILES_MAX limits the number of its files. */
export const UNPACKED_ARCHIVE_MAX_BYTES = 64 * 1024 * 1024;
const ARCHIVE_FILES_MAX = 20_000;
const PATH_MAX_CHARACTERS = 512;

/** Contents of files by path. Paths are relative to the package and begin with a slash. */
export type PackageFiles = Map<string, Buffer>;

/**
 * Matches files that a build may read: JavaScript, JSON, stylesheets and other assets, type declarations, and the README. All other files,
 * such as source maps and TypeScript sources, are left out.
 */
const BUNDLED_FILE_PATTERN = /(?:\.(?:[cm]?js|json|es6|jsx|css|txt|svg|wasm|d\.[cm]?ts)|\/readme(?:\.\w+)?)$/i;

const FILE_ENTRY_TYPES = new Set(["File", "OldFile", "ContiguousFile"]);
/** Types of tar records that describe other records and are not files. */
const METADATA_ENTRY_TYPES = new Set([
  "GlobalExtendedHeader",
  "ExtendedHeader",
  "NextFileHasLongPath",
  "OldExtendedHeader",
]);

function unzipArchive(archive: Buffer): Buffer {
  try {
    return gunzipSync(archive, { maxOutputLength: UNPACKED_ARCHIVE_MAX_BYTES });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ERR_BUFFER_TOO_LARGE")
      throw new PackageError(`the package unpacks to more than ${UNPACKED_ARCHIVE_MAX_BYTES / 2 ** 20} MB`);
    throw new PackageError("the archive of the package cannot be unpacked");
  }
}

/** Returns the path of an archive entry relative to the package, with a leading slash. Drops the first folder, which can have any name. */
function getPathInPackage({ path }: ReadEntry): string {
  // Removes `.` from the path, because some programs write `package/./index.js`.
  const segments = path.split("/").filter((segment) => segment !== ".");
  while (segments.length > 1 && segments.at(-1) === "") segments.pop();
  const isUnsafe = segments.some((segment) => segment === "" || segment === ".." || /[\\\0]/.test(segment));
  if (isUnsafe || path.length > PATH_MAX_CHARACTERS)
    throw new PackageError(
      `the archive of the package contains a file with an unsafe path, or with more than ${PATH_MAX_CHARACTERS} characters in its path (got ${JSON.stringify(path.slice(0, 100))})`,
    );
  return `/${segments.slice(1).join("/")}`;
}

/**
 * Returns the files of an archive that a bundle needs.
 * @throws PackageError if the archive is damaged or too large, has no package.json, or has entries that are not files or folders of the
 * package
 */
export function unpackPackageFiles(archive: Buffer): PackageFiles {
  const files: PackageFiles = new Map();
  let count = 0;
  let fault: Error | null = null;
  const extractEntry = (entry: ReadEntry) => {
    count += 1;
    if (count > ARCHIVE_FILES_MAX) throw new PackageError(`the package contains more than ${ARCHIVE_FILES_MAX} files`);
    if (entry.type === "Directory" || METADATA_ENTRY_TYPES.has(entry.type)) return;
    if (!FILE_ENTRY_TYPES.has(entry.type))
      throw new PackageError(`the archive of the package contains a link or a device (${entry.type})`);
    const path = getPathInPackage(entry);
    if (!BUNDLED_FILE_PATTERN.test(path)) return;
    const chunks: Buffer[] = [];
    entry.on("data", (chunk: Buffer) => chunks.push(chunk));
    entry.on("end", () => files.set(path, Buffer.concat(chunks)));
  };
  const parser = new Parser({
    maxDecompressionRatio: Number.POSITIVE_INFINITY,
    onReadEntry(entry) {
      try {
        if (fault === null) extractEntry(entry);
      } catch (error) {
        fault = error as Error;
      }
      entry.resume();
    },
  });
  parser.on("error", (error: Error) => {
    fault ??= error;
  });
  parser.end(unzipArchive(archive));
  if (fault !== null) throw fault;
  if (!files.has("/package.json")) throw new PackageError("the archive of the package contains no package.json");
  return files;
}
