/**
 * Where bytes lie that are too large for the database: in a folder, or in a bucket that speaks S3. Keeps blobs under random keys and
 * says nothing of what they are. Knows no app, no name and no right.
 */
import type { BlobStore, Bucket } from "./blob-store/blob.js";
import { createFolderStore } from "./blob-store/folder.js";

/**
 * Opens the store. `space` keeps apart what several databases put into one folder or bucket: a sweep sees its own alone.
 * @param folder absolute; used where `bucket` is null
 */
export async function openBlobStore(options: {
  folder: string;
  bucket: Bucket | null;
  space: string;
}): Promise<BlobStore> {
  const { folder, bucket, space } = options;
  if (bucket === null) return createFolderStore(folder, space);
  // Loaded where it is used: the client takes as long to load as all else together.
  const { createBucketStore } = await import("./blob-store/bucket.js");
  return createBucketStore(bucket, space);
}
