/**
 * Where bytes lie that are too large for the database: in a folder, or in a bucket that speaks S3. Keeps blobs under random keys and
 * says nothing of what they are. Knows no app, no name and no right.
 */
import { randomBytes } from "node:crypto";
import type { Readable } from "node:stream";
import { createFolderStore } from "./blob-store/folder.js";

export interface BlobEntry {
  key: string;
  /** Unix time in milliseconds. */
  modifiedAt: number;
}

/** First and last byte, both included. */
export interface ByteRange {
  start: number;
  end: number;
}

export interface BlobStore {
  /** Takes the file at `path` over, whole or not at all: what is there afterwards is on the disk, or acknowledged by the bucket. */
  put(key: string, path: string): Promise<void>;
  /** @throws BlobMissing */
  read(key: string, range?: ByteRange): Promise<Readable>;
  /** What is not there counts as removed. */
  remove(key: string): Promise<void>;
  /** Every blob, in no order. */
  list(): AsyncIterable<BlobEntry>;
  /** Writes and removes a blob. @throws what keeps it from doing so */
  check(): Promise<void>;
  stop(): void;
}

/** A bucket and the folder in it; credentials come from the usual variables of AWS. */
export interface Bucket {
  bucket: string;
  /** Without slashes at its ends; "" for none. */
  prefix: string;
  /** null: Amazon's own, by region. */
  endpoint: string | null;
  region: string;
}

/** A blob's name: random, so that nobody who names things for people has a say in it. */
export const newBlobKey = (): string => randomBytes(16).toString("hex");

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
