/**
 * Stores bytes that are too large for the database, in a folder or an S3 bucket, under random keys. The caller decides
 * about names, apps and rights.
 */
import type { BlobStore, Bucket } from "./blob-store/blob.js";
import { createFolderStore } from "./blob-store/folder.js";

/**
 * Opens the store. `space` separates the blobs of several databases in one folder or bucket, so that each lists only
 * its own.
 * @param folder absolute path; used if `bucket` is null
 */
export async function openBlobStore(options: {
  folder: string;
  bucket: Bucket | null;
  space: string;
}): Promise<BlobStore> {
  const { folder, bucket, space } = options;
  if (bucket === null) return createFolderStore(folder, space);
  // Loaded only if needed, because the S3 client takes as long to load as the rest of the service.
  const { createBucketStore } = await import("./blob-store/bucket.js");
  return createBucketStore(bucket, space);
}
