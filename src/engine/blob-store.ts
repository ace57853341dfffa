/** Stores content that is too large for the database in a folder or an S3 bucket, under random keys. */
import type { BlobStore, Bucket } from "./blob-store/blob.js";
import { createFolderBlobStore } from "./blob-store/folder.js";

/**
 * Opens the blob store in `bucket` or, if that is null, in `folder` (absolute path). `space` is a subfolder, so that several databases can
 * share a folder or bucket.
 */
export async function openBlobStore(options: {
  folder: string;
  bucket: Bucket | null;
  space: string;
}): Promise<BlobStore> {
  const { folder, bucket, space } = options;
  if (bucket === null) return createFolderBlobStore(folder, space);
  // The S3 client is loaded only if it is needed, because loading it takes long.
  const { createBucketBlobStore } = await import("./blob-store/bucket.js");
  return createBucketBlobStore(bucket, space);
}
