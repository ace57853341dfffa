/** Stores blobs as objects in an S3 bucket. Each blob is uploaded in one request. */
import { createReadStream } from "node:fs";
import { rm, stat } from "node:fs/promises";
import type { Readable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import {
  DeleteObjectCommand,
  GetObjectCommand,
  HeadBucketCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  S3Client,
  S3ServiceException,
} from "@aws-sdk/client-s3";
import { MediaStoreUnavailableError } from "../../errors.js";
import {
  type BlobEntry,
  BlobMissingError,
  type BlobStore,
  type Bucket,
  type ByteRange,
  createBucketIdentity,
  isBlobKey,
  requireValidBlobKey,
} from "./blob.js";

const CONNECT_TIMEOUT_MS = 5_000;
const IDLE_TIMEOUT_MS = 30_000;
/** Maximum attempts of an upload. The S3 client repeats other requests itself, but cannot repeat an upload, whose body is a stream. */
const PUT_ATTEMPTS_MAX = 3;
const PUT_RETRY_MS = 200;
const TOO_MANY_REQUESTS = 429;
/** Matches the codes of connection errors, and of failed lookups of the server's name. */
const CONNECTION_ERROR_CODE_PATTERN = /^E(?:CONN|PIPE|HOST|NET|TIMEDOUT|SOCKETTIMEDOUT|AI_AGAIN|NOTFOUND)/;

function isNotFound(error: unknown): boolean {
  return error instanceof S3ServiceException && (error.name === "NoSuchKey" || error.$metadata.httpStatusCode === 404);
}

/** True if the server was not reachable, did not answer in time, or could not process the request at the moment. */
function isTemporary(error: unknown): boolean {
  const status = error instanceof S3ServiceException ? error.$metadata.httpStatusCode : undefined;
  if (status !== undefined) return status >= 500 || status === TOO_MANY_REQUESTS;
  const { name, code = "" } = error as NodeJS.ErrnoException;
  return name === "TimeoutError" || CONNECTION_ERROR_CODE_PATTERN.test(code);
}

const convertStoreError = (error: unknown): unknown =>
  isTemporary(error) ? new MediaStoreUnavailableError(error) : error;

const ignoreLine = () => undefined;
/** Without a logger, the client writes warnings to the console. Then the service's log would have lines that are not JSON. */
const SILENT_LOGGER = { trace: ignoreLine, debug: ignoreLine, info: ignoreLine, warn: ignoreLine, error: ignoreLine };

function createClient({ endpoint, region }: Bucket): S3Client {
  return new S3Client({
    region,
    ...(endpoint !== null && { endpoint, forcePathStyle: true }),
    // By default, the client sends checksums in trailers, which most servers other than Amazon's reject.
    requestChecksumCalculation: "WHEN_REQUIRED",
    responseChecksumValidation: "WHEN_REQUIRED",
    logger: SILENT_LOGGER,
    requestHandler: { connectionTimeout: CONNECT_TIMEOUT_MS, socketTimeout: IDLE_TIMEOUT_MS },
  });
}

export function createBucketBlobStore(bucket: Bucket, space: string): BlobStore {
  const client = createClient(bucket);
  const { bucket: Bucket } = bucket;
  const prefix = [bucket.prefix, space, ""].filter((part, index) => part !== "" || index === 2).join("/");
  const getObjectLocation = (key: string) => ({ Bucket, Key: prefix + requireValidBlobKey(key) });

  return {
    async put(key, path) {
      const { size } = await stat(path);
      for (let attempt = 1; ; attempt += 1) {
        const Body = createReadStream(path);
        try {
          await client.send(new PutObjectCommand({ ...getObjectLocation(key), Body, ContentLength: size }));
          break;
        } catch (error) {
          if (attempt === PUT_ATTEMPTS_MAX || !isTemporary(error)) throw convertStoreError(error);
        } finally {
          Body.destroy();
        }
        await delay(PUT_RETRY_MS * attempt);
      }
      await rm(path, { force: true });
    },

    async read(key: string, range?: ByteRange): Promise<Readable> {
      const Range = range && `bytes=${range.start}-${range.end}`;
      const answer = await client
        .send(new GetObjectCommand({ ...getObjectLocation(key), Range }))
        .catch((error: unknown) => {
          throw isNotFound(error)
            ? new BlobMissingError("the bucket of the media store has no object with this key")
            : convertStoreError(error);
        });
      return answer.Body as Readable;
    },

    async remove(key) {
      await client.send(new DeleteObjectCommand(getObjectLocation(key))).catch((error: unknown) => {
        if (!isNotFound(error)) throw error;
      });
    },

    async *list(): AsyncIterable<BlobEntry> {
      let ContinuationToken: string | undefined;
      do {
        const page = await client.send(new ListObjectsV2Command({ Bucket, Prefix: prefix, ContinuationToken }));
        for (const { Key = "", LastModified } of page.Contents ?? []) {
          const key = Key.slice(prefix.length);
          if (isBlobKey(key)) yield { key, modifiedAt: LastModified?.getTime() ?? Date.now() };
        }
        ContinuationToken = page.NextContinuationToken;
      } while (ContinuationToken !== undefined);
    },

    async check() {
      await client.send(new HeadBucketCommand({ Bucket }));
    },

    readStoreId: async () => createBucketIdentity(bucket),

    stop: () => client.destroy(),
  };
}
