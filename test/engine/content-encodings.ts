/** Content encodings that the service can decode in responses of other services, each with its encoder. */
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from "node:zlib";

export const ENCODINGS: [string, (text: string) => Buffer][] = [
  ["gzip", gzipSync],
  ["x-gzip", gzipSync],
  ["deflate", deflateSync],
  ["deflate", deflateRawSync],
  ["br", brotliCompressSync],
  ["zstd", zstdCompressSync],
  ["gzip, br", (text) => brotliCompressSync(gzipSync(text))],
  ["identity", Buffer.from],
];
