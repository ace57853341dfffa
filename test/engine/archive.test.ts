/** Tests backup files. Reading a file returns the data that was written, or fails with a reason. */
import { randomBytes } from "node:crypto";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";
import { expect } from "chai";
import { Header } from "tar";
import { type BackupSecret, ENCRYPTION_HEADER_BYTES } from "../../src/engine/archive/encryption.js";
import type { ArchiveFile } from "../../src/engine/archive/tar.js";
import { readArchive, writeArchive } from "../../src/engine/archive.js";

const KEY: BackupSecret = { kind: "key", bytes: Buffer.alloc(32, 7) };
const CHUNK_BYTES = 64 * 1024 + 16;

async function* toAsyncIterable(parts: readonly ArchiveFile[]): AsyncGenerator<ArchiveFile> {
  yield* parts;
}

async function read(path: string, secret: BackupSecret | null): Promise<ArchiveFile[]> {
  const parts: ArchiveFile[] = [];
  for await (const part of readArchive(path, secret)) parts.push(part);
  return parts;
}

async function readFailure(path: string, secret: BackupSecret | null): Promise<string> {
  return read(path, secret).then(
    () => "nothing is wrong",
    (error: Error) => `${error.name}: ${error.message}`,
  );
}

/** Builds a tar file with arbitrary headers. */
function buildTar(entries: readonly { fields: object; content?: Buffer }[]): Buffer {
  const blocks = entries.flatMap(({ fields, content = Buffer.alloc(0) }) => {
    const header = Buffer.alloc(512);
    new Header({ size: content.length, type: "File", mode: 0o600, mtime: new Date(0), ...fields }).encode(header);
    return [header, content, Buffer.alloc((512 - (content.length % 512)) % 512)];
  });
  return Buffer.concat([...blocks, Buffer.alloc(1024)]);
}

describe("an archive", () => {
  const parts: ArchiveFile[] = [
    { name: "manifest.json", content: Buffer.from("{}") },
    { name: "tables/run/00000001", content: Buffer.from(randomBytes(300_000)) },
    { name: "tables/run/00000002", content: Buffer.alloc(0) },
    { name: "blobs/ab/00000001", content: Buffer.from(randomBytes(512)) },
  ];
  let folder: string;
  let sealed: Buffer;
  let plain: Buffer;
  let count = 0;
  const fresh = () => join(folder, String(++count));
  const put = (bytes: Buffer) => {
    const path = fresh();
    writeFileSync(path, bytes);
    return path;
  };

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), "svc-archive-"));
    const paths = [fresh(), fresh()] as const;
    await writeArchive(paths[0], toAsyncIterable(parts), KEY);
    await writeArchive(paths[1], toAsyncIterable(parts), null);
    [sealed, plain] = [readFileSync(paths[0]), readFileSync(paths[1])];
  });
  after(() => rmSync(folder, { recursive: true }));

  it("is restored unchanged, encrypted with a passphrase, with a key, or not encrypted", async () => {
    const passphrase: BackupSecret = { kind: "passphrase", text: "correct horse battery" };
    for (const secret of [passphrase, KEY, null]) {
      const path = fresh();
      await writeArchive(path, toAsyncIterable(parts), secret);
      expect(statSync(path).mode & 0o777, "its owner's alone").to.equal(0o600);
      expect(await read(path, secret)).to.deep.equal(parts);
    }
  });

  it("shows nothing of its content if it is encrypted", () => {
    expect(sealed.includes("manifest")).to.equal(false);
    expect(gunzipSync(plain).includes("manifest"), "a tar file where it is not").to.equal(true);
  });

  it("can be opened only with its own secret of the right kind", async () => {
    const path = put(sealed);
    expect(await readFailure(path, { kind: "key", bytes: Buffer.alloc(32, 8) })).to.contain("the key is wrong");
    for (const secret of [null, { kind: "passphrase", text: "correct horse battery" }] as const) {
      expect(await readFailure(path, secret)).to.contain(
        "the backup file is encrypted; to decrypt the file, pass a key file",
      );
    }
    expect(await readFailure(put(plain), KEY)).to.contain("the file is not encrypted");
  });

  it("is rejected if it is cut at any byte", async () => {
    const ends = [
      0,
      5,
      ENCRYPTION_HEADER_BYTES - 1,
      ENCRYPTION_HEADER_BYTES,
      ENCRYPTION_HEADER_BYTES + 8,
      ENCRYPTION_HEADER_BYTES + CHUNK_BYTES,
      ENCRYPTION_HEADER_BYTES + 2 * CHUNK_BYTES,
    ];
    for (const end of [...ends, sealed.length - 17, sealed.length - 1]) {
      expect(await readFailure(put(sealed.subarray(0, end)), KEY), `${end} bytes`).to.match(
        /^ArchiveError: the file is/,
      );
    }
    for (const end of [3, 100, 200_000, plain.length - 9, plain.length - 1]) {
      expect(await readFailure(put(plain.subarray(0, end)), null), `${end} bytes`).to.match(
        /^ArchiveError: the file is/,
      );
    }
  });

  it("is rejected if any bit is changed", async () => {
    for (const bytes of [sealed, plain]) {
      const secret = bytes === sealed ? KEY : null;
      // Bytes 4 to 9 of a gzip header (time and system) do not affect the content, so the test starts at byte 10.
      const first = bytes === sealed ? 0 : 10;
      for (let n = 0; n < 16; n += 1) {
        const at = first + Math.floor((n / 15) * (bytes.length - 1 - first));
        const changed = Buffer.from(bytes);
        changed[at] = changed[at]! ^ 4;
        expect(await readFailure(put(changed), secret), `byte ${at}`).to.match(/^ArchiveError: /);
      }
    }
  });

  it("is rejected if its chunks are in another order, repeated, or followed by more", async () => {
    const chunk = (n: number) =>
      sealed.subarray(ENCRYPTION_HEADER_BYTES + n * CHUNK_BYTES, ENCRYPTION_HEADER_BYTES + (n + 1) * CHUNK_BYTES);
    const head = sealed.subarray(0, ENCRYPTION_HEADER_BYTES);
    const rest = sealed.subarray(ENCRYPTION_HEADER_BYTES + 2 * CHUNK_BYTES);
    for (const pieces of [
      [head, chunk(1), chunk(0), rest],
      [head, chunk(0), chunk(0), chunk(1), rest],
      [head, chunk(0), rest],
      [sealed, chunk(0)],
      [sealed, Buffer.from("x")],
    ]) {
      expect(await readFailure(put(Buffer.concat(pieces)), KEY)).to.match(/^ArchiveError: the file is damaged/);
    }
    const again = gzipSync(buildTar([{ fields: { path: "tables/run/00000003" } }]));
    expect(await readFailure(put(Buffer.concat([plain, again])), null)).to.contain(
      "there are additional or missing bytes at the end of the archive",
    );
  });

  it("is rejected if it is a file of another format", async () => {
    for (const bytes of [
      Buffer.from("PGDMP"),
      Buffer.from("PK\x03\x04"),
      gzipSync("a text"),
      gzipSync(Buffer.alloc(4_096)),
    ]) {
      expect(await readFailure(put(bytes), null)).to.match(/^ArchiveError: the file is (not a backup|damaged)/);
    }
    expect(await readFailure(join(folder, "none"), null)).to.contain("cannot be read (ENOENT)");
    expect(await readFailure(folder, null)).to.contain("cannot be read (EISDIR)");
  });

  it("rejects a part whose name is a path, a link or an extension, or whose size is invalid", async () => {
    const content = Buffer.from("x");
    const hostile: { fields: object; content?: Buffer }[] = [
      ...[
        "../../etc/passwd",
        "/etc/passwd",
        "tables/../../x",
        "a//b",
        "A",
        "tables/run;drop",
        "a\nb",
        "tables/",
        ".",
      ].map((path) => ({ fields: { path }, content })),
      ...(["SymbolicLink", "Link"] as const).map((type) => ({ fields: { path: "a", type, linkpath: "/etc/passwd" } })),
      ...(["Directory", "CharacterDevice", "FIFO", "ContiguousFile", "GNUDumpDir"] as const).map((type) => ({
        fields: { path: "a", type },
      })),
      ...(["ExtendedHeader", "GlobalExtendedHeader", "NextFileHasLongPath"] as const).map((type) => ({
        fields: { path: "a", type },
        content: Buffer.from("18 path=../../x\n"),
      })),
      ...[2 ** 33, 9 * 2 ** 20, 2 ** 50].map((size) => ({ fields: { path: "a", size }, content })),
    ];
    for (const entry of hostile) {
      const received = await readFailure(put(gzipSync(buildTar([entry]))), null);
      expect(received, JSON.stringify(entry.fields)).to.match(
        /^ArchiveError: the file is damaged: (the archive contains a link, folder or file|the size of)/,
      );
    }
  });

  it("does not exist if writing failed, and never replaces another file", async () => {
    const path = fresh();
    const failing = async function* () {
      yield parts[1]!;
      throw new Error("the database is gone");
    };
    const before = readdirSync(folder).length;
    for (const [source, words] of [
      [failing(), "the database is gone"],
      [
        toAsyncIterable([{ name: "../x", content: Buffer.alloc(0) }]),
        "the archive cannot contain ../x: the name is not valid",
      ],
    ] as const) {
      const error = await writeArchive(path, source, KEY).catch((caught: Error) => caught.message);
      expect(error).to.contain(words);
    }
    expect([existsSync(path), readdirSync(folder).length]).to.deep.equal([false, before]);
    writeFileSync(path, "mine");
    const error = await writeArchive(path, toAsyncIterable(parts), KEY).catch((caught: Error) => caught.message);
    expect(error).to.contain("exists already");
    expect(readFileSync(path, "utf8")).to.equal("mine");
  });
});
