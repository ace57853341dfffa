/**
 * Stores bytes that are too large for the database: in a folder or in an S3 bucket, under random keys. Names, apps and rights are the
 * responsibility of the caller.
 */
import type { BlobStore, Bucket } from "./blob-store/blob.js";
import { createFolderStore } from "./blob-store/folder.js";

/**
 * Opens the store. `space` separates the blobs of several databases in one folder or bucket: a sweep sees only its own.
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
