/** Interface of the blob stores (a folder or an S3 bucket), and the format of their keys. */
import { randomBytes } from "node:crypto";
import type { Readable } from "node:stream";

export interface BlobEntry {
  key: string;
  /** Time of the blob's last change in Unix milliseconds. */
  modifiedAt: number;
}

/** Range of bytes from `start` to `end`, both included. */
export interface ByteRange {
  start: number;
  end: number;
}

export interface BlobStore {
  /**
   * Moves the file at `path` into the store. Resolves when the blob is on disk, or the S3 server has confirmed it.
   * @throws MediaStoreUnavailableError if the S3 server is temporarily unavailable; other errors of the store
   */
  put(key: string, path: string): Promise<void>;
  /**
   * Opens a stream of the blob, or of a range of its bytes.
   * @throws BlobMissingError; MediaStoreUnavailableError if the S3 server is temporarily unavailable; other errors of the store
   */
  read(key: string, range?: ByteRange): Promise<Readable>;
  remove(key: string): Promise<void>;
  list(): AsyncIterable<BlobEntry>;
  /** Checks that the store is available: writes and removes a file in the folder, or requests the bucket. @throws the error of the store */
  check(): Promise<void>;
  /** Returns the ID of the store, which is the same in all processes. For a folder, the first call creates the ID. */
  readStoreId(): Promise<string>;
  stop(): void;
}

/** An S3 bucket and a folder in it. Credentials come from the standard environment variables of AWS. */
export interface Bucket {
  bucket: string;
  /** Folder in the bucket, as the common prefix of all keys, without a slash at its start and end; "" for no folder. */
  prefix: string;
  /** URL of the S3 server; null for Amazon's server of the region. */
  endpoint: string | null;
  region: string;
}

export const createBucketIdentity = ({ bucket, prefix, endpoint, region }: Bucket): string =>
  `s3:${endpoint ?? region}/${bucket}/${prefix}`;

export const createBlobKey = (): string => randomBytes(16).toString("hex");

const KEY_PATTERN = /^[0-9a-f]{32}$/;

export const isBlobKey = (name: string): boolean => KEY_PATTERN.test(name);

/** Returns the key if it is valid. Throws otherwise, because stores use keys in file paths. */
export function requireValidBlobKey(key: string): string {
  if (isBlobKey(key)) return key;
  throw new Error(`a blob's key must be 32 hexadecimal digits in lower case (got ${JSON.stringify(key)})`);
}

/** Error if the store has no blob with the requested key, although the database contains this key. */
export class BlobMissingError extends Error {
  override readonly name = "BlobMissingError";
}
