/**
 * Tests that the media store has equal results in a folder and in a bucket of an S3 server (@20minutes/s3rver). Tests the sweep, which
 * removes files without a row in the database.
 */
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { expect } from "chai";
import { pino } from "pino";
import { ConfigError, readConfig } from "../../src/config.js";
import { rows } from "../../src/data/database.js";
import { type BlobStore, createBlobKey } from "../../src/engine/blob-store/blob.js";
import { openBlobStore } from "../../src/engine/blob-store.js";
import { FairSemaphore } from "../../src/engine/fair-semaphore.js";
import { UploadReceiver } from "../../src/engine/reception.js";
import { MediaBlobs } from "../../src/operations/media/blobs.js";
import { BACKUP_LOCK_KEY, MediaSweep } from "../../src/operations/media/sweep.js";
import { startS3 } from "../harness/s3.js";
import { startTestService } from "../harness/service.js";
import { filesUnder, mediaOf, noise, picture } from "./support.js";

const KEYS = { AWS_ACCESS_KEY_ID: "S3RVER", AWS_SECRET_ACCESS_KEY: "S3RVER" };

describe("media: the store", () => {
  let s3: Awaited<ReturnType<typeof startS3>>;
  const before_ = { ...process.env };
  before(async () => {
    s3 = await startS3();
    // The AWS client reads these variables from the environment.
    Object.assign(process.env, KEYS);
  });
  after(async () => {
    for (const name of Object.keys(KEYS)) {
      if (before_[name] === undefined) delete process.env[name];
      else process.env[name] = before_[name];
    }
    await s3.stop();
  });

  it("in a folder is empty before its first file, but not if the folder cannot be read", async () => {
    const folder = mkdtempSync(join(tmpdir(), "svc-store-"));
    const store = await openBlobStore({ folder, bucket: null, space: "a" });
    const list = async () => {
      const keys: string[] = [];
      for await (const { key } of store.list()) keys.push(key);
      return keys;
    };
    expect(await list()).to.deep.equal([]);
    rmSync(join(folder, "a"), { recursive: true, force: true });
    writeFileSync(join(folder, "a"), "not a folder");
    const fault = await list().catch((error: NodeJS.ErrnoException) => error.code);
    store.stop();
    rmSync(folder, { recursive: true });
    expect(fault).to.equal("ENOTDIR");
  });

  it("in a bucket repeats failed uploads, and otherwise answers 503 with the reason", async () => {
    let failures: (number | "cut")[] = [];
    const server = createServer((incoming, response) => {
      const isContent = incoming.method === "PUT" || incoming.method === "GET";
      const failure = isContent && !incoming.url!.includes("list-type") ? failures.shift() : undefined;
      if (failure === "cut") return void incoming.socket.destroy();
      if (failure !== undefined) {
        const body = "<Error><Code>SlowDown</Code><Message>slower</Message></Error>";
        return void incoming.resume().on("end", () => response.writeHead(failure).end(body));
      }
      const { method, url, headers } = incoming;
      const forwarded = request(`${s3.url}${url}`, { method: method!, headers }, (answer) => {
        response.writeHead(answer.statusCode!, answer.headers);
        answer.pipe(response);
      });
      incoming.pipe(forwarded);
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const MEDIA_URL = `s3://media/failing?endpoint=${endpoint}&region=eu-west-1`;
    const service = await startTestService({ ROLES: "api", MEDIA_URL });
    const media = mediaOf(service);
    failures = [503, "cut"];
    const { id } = await media.upload("a.txt", "hello");
    expect((await media.bytes(id)).toString()).to.equal("hello");
    const store = "the media store of the service is not available; try again shortly";
    for (const failure of ["cut", 503] as const) {
      failures = Array(9).fill(failure);
      const read = await media.contents(id, "", { range: "bytes=0-1" });
      expect([read.status, read.headers.get("retry-after")]).to.deep.equal([503, "5"]);
      expect(read.headers.get("content-range")).to.equal(null);
      expect(await read.json()).to.include({ status: "OVERLOADED", error: store });
    }
    failures = [];
    expect((await media.contents(id)).status).to.equal(200);
    await service.stop();
    server.close();
  });

  for (const kind of ["folder", "bucket"] as const) {
    describe(`in a ${kind}`, () => {
      let service: Awaited<ReturnType<typeof startTestService>>;
      let store: BlobStore;
      let space: string;
      const environment = (): Record<string, string> =>
        kind === "folder" ? {} : { MEDIA_URL: `s3://media/some/prefix?endpoint=${s3.url}&region=eu-west-1` };

      before(async () => {
        service = await startTestService({ ROLES: "api", ...environment() });
        const [storedRow] = await rows<{ space: string }>(service.db, "SELECT space FROM media_store");
        space = storedRow!.space;
        const folder = join(service.dataDir, "media");
        const bucket =
          kind === "folder" ? null : { bucket: "media", prefix: "some/prefix", endpoint: s3.url, region: "eu-west-1" };
        store = await openBlobStore({ folder, bucket, space });
      });
      after(async () => {
        store.stop();
        await service.stop();
      });

      const keysIn = async () => {
        const keys: string[] = [];
        for await (const { key } of store.list()) keys.push(key);
        return keys.sort();
      };

      it("stores uploads, returns them completely and in ranges, and deletes them", async () => {
        const media = mediaOf(service);
        const bytes = noise(3_000_000);
        const file = await media.upload("a.bin", bytes);
        expect((await media.bytes(file.id)).equals(bytes)).to.equal(true);
        const part = await media.contents(file.id, "", { range: "bytes=1000000-1000009" });
        expect(Buffer.from(await part.arrayBuffer()).equals(bytes.subarray(1_000_000, 1_000_010))).to.equal(true);
        const shown = await media.upload("p.jpg", new Uint8Array(await picture(500, 300).jpeg().toBuffer()));
        expect((await media.bytes(shown.id, "?width=50")).length).to.be.greaterThan(50);
        expect(await keysIn()).to.have.length(3);
        for (const { id } of [file, shown]) await media.rest("DELETE", `/files/${id}`);
        expect(await keysIn()).to.deep.equal([]);
        expect(
          filesUnder(join(service.dataDir, "media", "incoming")),
          "nothing is left where it came in",
        ).to.deep.equal([]);
      });

      it("rejects invalid keys", async () => {
        for (const key of ["../../etc/passwd", "", "a", "A".repeat(32), `${"a".repeat(31)}/`, `${"a".repeat(32)}\0`]) {
          const refusal = await store.read(key).then(
            () => "read",
            (error: Error) => error.message,
          );
          expect(refusal).to.match(/32 hexadecimal digits/);
        }
      });

      it("removes files that the database does not know; files that the store lost are reported, not removed", async () => {
        const log = pino({ level: "silent" });
        const blobs = new MediaBlobs({ db: service.db, quotaBytes: 0, log });
        const uploadReceiver = new UploadReceiver(join(service.dataDir, "media", "incoming"), new FairSemaphore(1, 1));
        const sweep = new MediaSweep({
          db: service.db,
          store,
          uploadReceiver,
          blobs,
          isOwnStore: async () => true,
          log,
        });
        const media = mediaOf(service);
        const [kept, lost] = [await media.upload("kept", "kept"), await media.upload("lost", "lost")];
        const keyOf = async (id: number) =>
          (await rows<{ key: string }>(service.db, "SELECT blob_key AS key FROM media_file WHERE id = $1", [id]))[0]!
            .key;
        const put = async (key: string) =>
          store.put(key, (await uploadReceiver.receive(key, oneChunk("orphan"), 100, 1)).path);
        const [orphan, young] = [createBlobKey(), createBlobKey()];
        await put(orphan);
        await put(young);
        age(orphan);
        await store.remove(await keyOf(lost.id));
        await service.db.query("UPDATE media_file SET created_at = created_at - interval '1 minute'");

        // While a backup runs, the sweep counts no orphan, because the backup may read the file.
        const duringBackup = await service.db.transaction(async (manager) => {
          await manager.query("SELECT pg_advisory_xact_lock($1)", [BACKUP_LOCK_KEY]);
          return sweep.compare();
        });
        expect(duringBackup.orphanCount).to.equal(0);
        expect((await sweep.compare()).orphanCount, "it was found first now").to.equal(0);
        expect(await keysIn()).to.include(orphan);
        await service.db.query("UPDATE media_orphan SET found_at = found_at - interval '5 hours'");
        const found = await sweep.compare();
        if (kind === "folder") expect(found.orphanCount).to.equal(1);
        if (kind === "folder") expect(await service.db.query("SELECT FROM media_orphan")).to.have.length(0);
        expect(found.missingFileIds).to.deep.equal([lost.id]);
        const keys = await keysIn();
        expect(keys).to.include(await keyOf(kept.id));
        expect(keys, "it may be of an upload under way").to.include(young);
        if (kind === "folder") expect(keys).not.to.include(orphan);
        expect((await media.rest("GET", `/files/${lost.id}`)).http).to.equal(200);
        expect((await media.contents(lost.id)).status).to.equal(404);
        await store.remove(orphan);
        await store.remove(young);
      });

      it("is compared with the database soon after the start of a process", async () => {
        const log = pino({ level: "silent" });
        const blobs = new MediaBlobs({ db: service.db, quotaBytes: 0, log });
        const uploadReceiver = new UploadReceiver(join(service.dataDir, "media", "incoming"), new FairSemaphore(1, 1));
        let time = 0;
        const options = {
          db: service.db,
          store,
          uploadReceiver,
          blobs,
          isOwnStore: async () => true,
          log,
          now: () => time,
        };
        const sweep = new MediaSweep(options);
        const lostAt = async () => (await service.db.query("SELECT count(lost_at)::int AS n FROM media_blob"))[0].n;
        await service.db.query("UPDATE media_blob SET lost_at = now()");
        const marked = await lostAt();
        expect(marked).to.be.above(0);
        await sweep.sweep();
        expect(await lostAt()).to.equal(marked);
        time = 600_000;
        await sweep.sweep();
        expect(await lostAt()).to.be.below(marked);
      });

      it("is compared again after a minute if it could not be listed, and then after six hours", async () => {
        const log = pino({ level: "silent" });
        const blobs = new MediaBlobs({ db: service.db, quotaBytes: 0, log });
        const uploadReceiver = new UploadReceiver(join(service.dataDir, "media", "incoming"), new FairSemaphore(1, 1));
        let time = 0;
        let listCount = 0;
        const list: BlobStore["list"] = () => {
          listCount += 1;
          if (listCount === 1) throw new Error("the store is away");
          return store.list();
        };
        const failingStore: BlobStore = { ...store, list };
        const isOwnStore = async () => true;
        const now = () => time;
        const sweep = new MediaSweep({
          db: service.db,
          store: failingStore,
          uploadReceiver,
          blobs,
          isOwnStore,
          log,
          now,
        });
        const listsAt = async (seconds: number) => {
          time = seconds * 1_000;
          const outcome = await sweep.sweep().then(
            () => "done",
            ({ message }: Error) => message,
          );
          return [listCount, outcome];
        };
        expect(await listsAt(600)).to.deep.equal([1, "the store is away"]);
        expect(await listsAt(659)).to.deep.equal([1, "done"]);
        expect(await listsAt(660)).to.deep.equal([2, "done"]);
        expect(await listsAt(660 + 6 * 3_600 - 1)).to.deep.equal([2, "done"]);
        expect(await listsAt(660 + 6 * 3_600)).to.deep.equal([3, "done"]);
      });

      it("releases files of a dead process, and their quota", async () => {
        const log = pino({ level: "silent" });
        const blobs = new MediaBlobs({ db: service.db, quotaBytes: 0, log });
        const uploadReceiver = new UploadReceiver(join(service.dataDir, "media", "incoming"), new FairSemaphore(1, 1));
        const sweep = new MediaSweep({
          db: service.db,
          store,
          uploadReceiver,
          blobs,
          isOwnStore: async () => true,
          log,
        });
        const incoming = join(service.dataDir, "media", "incoming");
        const [key, pendingKey] = [createBlobKey(), createBlobKey()];
        const used = await blobs.readUsedBytes(service.appId);
        for (const blobKey of [key, pendingKey]) await blobs.reserve(service.appId, blobKey, 10_000);
        await store.put(key, (await uploadReceiver.receive(key, oneChunk("half"), 100, 1)).path);
        await uploadReceiver.receive(pendingKey, oneChunk("half"), 100, 1);
        await sweep.sweep();
        expect(await keysIn(), "it is held").to.include(key);
        expect(filesUnder(incoming)).to.have.length(1);
        const expireHold = "UPDATE media_blob SET held_until = now() - interval '1 second' WHERE key = ANY ($1)";
        await service.db.query(expireHold, [[key, pendingKey]]);
        await sweep.sweep();
        expect(await keysIn()).not.to.include(key);
        expect(filesUnder(incoming)).to.deep.equal([]);
        expect(await blobs.readUsedBytes(service.appId)).to.equal(used);
        blobs.stop();
      });

      /** Sets the file's time to two hours ago. In a bucket, the server sets the times itself, so this function does nothing. */
      function age(key: string): void {
        const [path] = filesUnder(join(service.dataDir, "media", space)).filter((file) => file.endsWith(key));
        if (path) utimesSync(path, new Date(Date.now() - 7_200_000), new Date(Date.now() - 7_200_000));
      }
    });
  }

  it("sees only its own part of a folder that several databases share", async () => {
    const folder = mkdtempSync(join(tmpdir(), "svc-shared-"));
    const [store, otherStore] = await Promise.all(
      ["a", "b"].map((space) => openBlobStore({ folder, bucket: null, space: space.repeat(16) })),
    );
    const key = createBlobKey();
    const path = join(folder, "draft");
    writeFileSync(path, "x");
    mkdirSync(dirname(path), { recursive: true });
    await store!.put(key, path);
    const keys: string[] = [];
    for await (const entry of otherStore!.list()) keys.push(entry.key);
    expect(keys).to.deep.equal([]);
    expect(readdirSync(folder)).to.deep.equal(["a".repeat(16)]);
    rmSync(folder, { recursive: true });
  });

  it("stops the start and names the variable if an address is invalid or its bucket is not available", async () => {
    const wrong = [
      ...["https://bucket/x", "s3://", "s3://UPPER_case!", "s3://key:secret@bucket", "s3://bucket?endpoint=ftp://x"],
      ...["s3://bucket?region=a b", "s3://bucket?unknown=1", "s3://bucket:80/x", "s3://bucket/a\nb", "bucket"],
    ];
    for (const address of wrong) {
      expect(() => readConfig({ MEDIA_URL: address }), address).to.throw(ConfigError, /MEDIA_URL must be/);
    }
    for (const [name, value] of [
      ["MEDIA_MAX_MB", "0"],
      ["MEDIA_QUOTA_MB", "x"],
    ] as const) {
      expect(() => readConfig({ [name]: value })).to.throw(ConfigError, name);
    }
    const refusal = await startTestService({ MEDIA_URL: `s3://missing?endpoint=${s3.url}`, ROLES: "api" }).catch(
      (error: Error) => error,
    );
    expect(String(refusal)).to.match(/the bucket missing of MEDIA_URL cannot be used/);
  });
});

async function* oneChunk(text: string): AsyncGenerator<Buffer> {
  yield Buffer.from(text);
}
