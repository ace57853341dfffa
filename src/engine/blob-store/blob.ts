/** Interface of the blob stores, and valid keys of blobs. */
import { randomBytes } from "node:crypto";
import type { Readable } from "node:stream";

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
  /** Stores the file at `path` and removes it there. Afterwards the blob is complete and on disk, or acknowledged by the bucket. */
  put(key: string, path: string): Promise<void>;
  /** @throws BlobMissing */
  read(key: string, range?: ByteRange): Promise<Readable>;
  /** Removes the blob; does nothing if it does not exist. */
  remove(key: string): Promise<void>;
  /** Lists all blobs, in any order. */
  list(): AsyncIterable<BlobEntry>;
  /** Checks the store by writing and removing a blob. @throws the error of the store */
  check(): Promise<void>;
  /** Returns a text that identifies the store in all processes. The first call creates it. */
  identity(): Promise<string>;
  stop(): void;
}

/** A bucket and a folder in it. Credentials come from the usual AWS variables. */
export interface Bucket {
  bucket: string;
  /** Prefix of keys without slashes at both ends; "" for none. */
  prefix: string;
  /** URL of the server; null for Amazon's endpoint of the region. */
  endpoint: string | null;
  region: string;
}

/** Returns the identity of a bucket's store, which is the same in every process. */
export const bucketIdentity = ({ bucket, prefix, endpoint, region }: Bucket): string =>
  `s3:${endpoint ?? region}/${bucket}/${prefix}`;

/** Returns a random key, which does not depend on names of users. */
export const newBlobKey = (): string => randomBytes(16).toString("hex");

const KEY = /^[0-9a-f]{32}$/;

export const isBlobKey = (name: string): boolean => KEY.test(name);

/** Returns a valid key. Throws for other texts, because keys become parts of paths. */
export function checkBlobKey(key: string): string {
  if (isBlobKey(key)) return key;
  throw new Error("a blob's key must be 32 hexadecimal digits");
}

/** Error for a blob that is not in the store although the database has it. */
export class BlobMissing extends Error {
  override readonly name = "BlobMissing";
}
