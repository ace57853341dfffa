/** What every store of blobs offers, and what a blob's key may be. Knows no store. */
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
  /** The same in every process that uses this store, and in no process that uses another one. Made at the first call. */
  identity(): Promise<string>;
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

/** Identity of a bucket's store, the same in every process. */
export const bucketIdentity = ({ bucket, prefix, endpoint, region }: Bucket): string =>
  `s3:${endpoint ?? region}/${bucket}/${prefix}`;

/** A blob's name: random, so that nobody who names things for people has a say in it. */
export const newBlobKey = (): string => randomBytes(16).toString("hex");

const KEY = /^[0-9a-f]{32}$/;

export const isBlobKey = (name: string): boolean => KEY.test(name);

/** Nothing else becomes part of a path. */
export function checkBlobKey(key: string): string {
  if (isBlobKey(key)) return key;
  throw new Error("a blob's key must be 32 hexadecimal digits");
}

/** The bytes are not in the store, whatever the database says. */
export class BlobMissing extends Error {
  override readonly name = "BlobMissing";
}
