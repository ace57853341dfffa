/** Stores blobs as files in a folder. The file of a blob is either complete or does not exist. */
import { randomBytes, randomUUID } from "node:crypto";
import { mkdir, open, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Readable } from "node:stream";
import {
  type BlobEntry,
  BlobMissingError,
  type BlobStore,
  type ByteRange,
  isBlobKey,
  requireValidBlobKey,
} from "./blob.js";

const isNotFound = (error: unknown): boolean => (error as NodeJS.ErrnoException).code === "ENOENT";

/** Flushes a folder to disk. Without this, a new file could be missing after a power failure. */
async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

export const getBlobStoreIdPath = (root: string, space: string): string => join(root, space, "store-id");

export function createFolderBlobStore(root: string, space: string): BlobStore {
  const storeFolder = join(root, space);
  /** Returns the path of a blob. Blobs are spread over 256 folders, because large folders are slow. */
  const getBlobPath = (key: string) => join(storeFolder, requireValidBlobKey(key).slice(0, 2), key);

  async function put(key: string, path: string): Promise<void> {
    const target = getBlobPath(key);
    await mkdir(dirname(target), { recursive: true, mode: 0o700 });
    await rename(path, target);
    await syncFolder(dirname(target));
  }

  return {
    put,

    async read(key: string, range?: ByteRange): Promise<Readable> {
      const file = await open(getBlobPath(key), "r").catch((error: unknown) => {
        throw isNotFound(error)
          ? new BlobMissingError("the folder of the media store has no file with this key")
          : error;
      });
      return file.createReadStream(range ?? {});
    },

    remove: (key) => rm(getBlobPath(key), { force: true }),

    async *list(): AsyncIterable<BlobEntry> {
      // Before the first file, the folder does not exist, and the store is empty. Other errors must not look like an empty store.
      const names = await readdir(storeFolder).catch((error: unknown) => {
        if (isNotFound(error)) return [];
        throw error;
      });
      for (const name of names) {
        if (!/^[0-9a-f]{2}$/.test(name)) continue;
        for (const key of await readdir(join(storeFolder, name))) {
          // Skips a file that another process has removed since this process read the folder.
          const stats = isBlobKey(key) ? await stat(join(storeFolder, name, key)).catch(() => null) : null;
          if (stats) yield { key, modifiedAt: stats.mtimeMs };
        }
      }
    },

    async check() {
      await mkdir(storeFolder, { recursive: true, mode: 0o700 });
      const testPath = join(root, `check-${randomBytes(8).toString("hex")}`);
      const file = await open(testPath, "wx", 0o600);
      await file.close();
      await rm(testPath);
    },

    async readStoreId() {
      await mkdir(storeFolder, { recursive: true, mode: 0o700 });
      const path = getBlobStoreIdPath(root, space);
      // If several processes start at once, only the first one can create the file. The others ignore the error EEXIST.
      await writeFile(path, randomUUID(), { flag: "wx", mode: 0o600 }).catch((error: NodeJS.ErrnoException) => {
        if (error.code !== "EEXIST") throw error;
      });
      return (await readFile(path, "utf8")).trim();
    },

    stop: () => undefined,
  };
}
