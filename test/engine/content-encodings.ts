/**
 * Defines tests of how outgoing requests decode the bodies of responses: each content encoding, its limit, and incomplete or damaged
 * bodies.
 */
import type { RequestListener } from "node:http";
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import { expect } from "chai";
import type { OutgoingError } from "../../src/engine/outgoing.js";
import { OUTGOING_RESPONSE_BODY_MAX_BYTES } from "../../src/limits.js";
import { longTest } from "../harness/samples.js";

/** Content encodings that the service can decode, each with a function that encodes a text. */
const ENCODINGS: [string, (text: string) => Buffer][] = [
  ["gzip", gzipSync],
  ["x-gzip", gzipSync],
  ["deflate", deflateSync],
  ["deflate", deflateRawSync],
  ["br", brotliCompressSync],
  ["zstd", zstdCompressSync],
  ["gzip, br", (text) => brotliCompressSync(gzipSync(text))],
  ["identity", Buffer.from],
];

interface Target {
  send: () => Promise<{ body: Buffer }>;
  sendHead: () => Promise<{ body: Buffer }>;
  failure: (sent: Promise<unknown>) => Promise<OutgoingError>;
  answerWith: (listener: RequestListener) => void;
  /** Returns the origin of the test's server. The server must be listening. */
  origin: () => string;
}

export function testContentEncodings({ send, sendHead, failure, answerWith, origin }: Target): void {
  /** Answers the next requests with this body. */
  const respond = (encoding: string, body?: Buffer | string) =>
    answerWith((_request, response) => response.setHeader("content-encoding", encoding).end(body));

  for (const [encoding, encode] of ENCODINGS) {
    it(`decode ${encoding} (${encode.name})`, async () => {
      const text = "grüße ".repeat(1_000);
      respond(encoding, encode(text));
      expect((await send()).body.toString()).to.equal(text);
      respond(encoding);
      expect((await sendHead()).body).to.have.length(0);
    });

    const testLimit = ["gzip", "zstd"].includes(encoding) ? it : longTest;
    testLimit(`end with LIMIT if ${encoding} (${encode.name}) decodes to more than 5 MB`, async () => {
      const bomb = encode("a".repeat(OUTGOING_RESPONSE_BODY_MAX_BYTES + 1));
      respond(encoding, bomb);
      expect(await failure(send())).to.include({ code: "LIMIT", origin: origin() });
      respond(encoding, encode("a".repeat(OUTGOING_RESPONSE_BODY_MAX_BYTES)));
      expect((await send()).body).to.have.length(OUTGOING_RESPONSE_BODY_MAX_BYTES);
    });

    if (encoding === "identity") continue;
    it(`end with TRANSPORT if ${encoding} (${encode.name}) is incomplete or damaged`, async () => {
      const whole = encode("some text that is long enough to be cut off somewhere");
      for (const part of [whole.subarray(0, whole.length - 5), Buffer.from("\u0007no such encoding")]) {
        respond(encoding, part);
        expect((await failure(send())).code).to.equal("TRANSPORT");
      }
    });
  }

  it("decode all frames of zstd and all members of gzip, also if several are in one part of the body", async () => {
    const skippable = Buffer.from([0x50, 0x2a, 0x4d, 0x18, 4, 0, 0, 0, 1, 2, 3, 4]);
    const long = "b".repeat(200_000);
    const frames = [
      skippable,
      zstdCompressSync("a"),
      zstdCompressSync(long),
      skippable,
      zstdCompressSync("c"),
      skippable,
    ];
    for (const [encoding, body] of [
      ["zstd", Buffer.concat(frames)],
      ["gzip", Buffer.concat(["a", long, "c"].map((text) => gzipSync(text)))],
      ["zstd, gzip", gzipSync(Buffer.concat(frames))],
    ] as const) {
      for (const partBytes of [body.length, 7, 1]) {
        answerWith((_request, response) => {
          response.setHeader("content-encoding", encoding);
          for (let at = 0; at < body.length; at += partBytes) response.write(body.subarray(at, at + partBytes));
          response.end();
        });
        const text = (await send()).body.toString();
        expect(text === `a${long}c`, `${encoding} in parts of ${partBytes} bytes: ${text.length} bytes`).to.equal(true);
      }
    }
  });

  longTest(
    "end with TRANSPORT for bytes after the last frame of zstd, and for too many frames; with LIMIT if all decode to more than 5 MB",
    async () => {
      const half = zstdCompressSync("a".repeat(OUTGOING_RESPONSE_BODY_MAX_BYTES / 2 + 1));
      for (const [parts, code] of [
        [[zstdCompressSync("a"), Buffer.from("no frame")], "TRANSPORT"],
        [[zstdCompressSync("a"), half.subarray(0, -1)], "TRANSPORT"],
        [Array(1_001).fill(zstdCompressSync("a")), "TRANSPORT"],
        [[half, half], "LIMIT"],
      ] as const) {
        respond("zstd", Buffer.concat(parts));
        expect((await failure(send())).code).to.equal(code);
      }
    },
  );

  it("end with UNSUPPORTED for other encodings and for long chains of them", async () => {
    for (const encoding of ["compress", "gzip, dcb", "gzip, gzip, gzip", "__proto__"]) {
      respond(encoding, "x");
      expect((await failure(send())).code).to.equal("UNSUPPORTED");
    }
  });
}
