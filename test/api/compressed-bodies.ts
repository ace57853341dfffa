/** Compressed bodies that contain a secret and are complete, truncated, damaged or too large; for tests of responses. */
import { brotliCompressSync, constants, deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import { OUTGOING_RESPONSE_BODY_MAX_BYTES } from "../../src/limits.js";

const CHECKSUM = { params: { [constants.ZSTD_c_checksumFlag]: 1 } };
const FAST_BROTLI = { params: { [constants.BROTLI_PARAM_QUALITY]: 5 } };
const FORMATS: [string, (content: string) => Buffer][] = [
  ["gzip", gzipSync],
  ["zlib", deflateSync],
  ["raw deflate", deflateRawSync],
  ["brotli", (content) => brotliCompressSync(content, FAST_BROTLI)],
  ["zstd", (content) => zstdCompressSync(content, CHECKSUM)],
];

/** Frame of zstd with 8 bytes of content that decoders skip. */
const SKIPPABLE_FRAME = Buffer.from([0x50, 0x2a, 0x4d, 0x18, 8, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]);

/** Returns varied text, which makes a body large even when it is compressed. */
const variedText = (words: number) =>
  Array.from({ length: words }, (_, at) => (at * at * 7_919).toString(36)).join(" ");

/** Inverts the bytes from this index on. */
const invertFrom = (bytes: Buffer, from: number) =>
  Buffer.concat([bytes.subarray(0, from), Buffer.from(bytes.subarray(from)).map((byte) => byte ^ 0xff)]);

/** Returns bodies whose start can be decompressed. This start contains the secret. */
function readableBodies(compress: (content: string) => Buffer, secret: string): [string, Buffer][] {
  const short = compress(`${secret} ${variedText(200)}`);
  // A zstd decoder reads whole blocks of up to 128 KB. The secret is in the first of several blocks.
  const long = compress(`${secret} ${variedText(60_000)}`);
  const most = Math.floor(long.length * 0.7);
  return [
    ["complete", short],
    ["complete and long", long],
    ["without the last byte", short.subarray(0, -1)],
    ["without the last 4 bytes", short.subarray(0, -4)],
    ["without the last third", long.subarray(0, most)],
    ["with another end", invertFrom(short, short.length - 4)],
    ["with another last third", invertFrom(long, most)],
    ["before text", Buffer.concat([short, Buffer.from("trailing text")])],
    ["before zeros", Buffer.concat([short, Buffer.alloc(20)])],
  ];
}

/** Returns compressed bodies: a name, the body, and what the code of an action receives (the masked text, or the code of an error). */
export function compressedBodies(secret: string, masked: string): [string, Buffer, string][] {
  const bodies = FORMATS.flatMap(([format, compress]): [string, Buffer, string][] => [
    ...readableBodies(compress, secret).map(([name, body]): [string, Buffer, string] => [
      `${format} ${name}`,
      body,
      masked,
    ]),
    [`${format} above the limit`, compress(`${secret}${" ".repeat(OUTGOING_RESPONSE_BODY_MAX_BYTES)}`), "LIMIT"],
  ]);
  const second = (compress: (content: string) => Buffer) =>
    Buffer.concat([compress(variedText(20)), compress(`${secret} ${variedText(200)}`)]);
  const hugeWindow = Buffer.concat([Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0, 19 << 3]), Buffer.from(variedText(20))]);
  return [
    ...bodies,
    ["gzip in the second member", second(gzipSync), masked],
    ["zstd in the second frame", second(FORMATS[4]![1]), masked],
    [
      "zstd after a skippable frame",
      Buffer.concat([SKIPPABLE_FRAME, FORMATS[4]![1](`${secret} ${variedText(200)}`)]),
      masked,
    ],
    ["zstd with a window above the memory limit", hugeWindow, "TRANSPORT"],
  ];
}
