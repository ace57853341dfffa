/** Tests media under load: memory for a large file, hundreds of uploads beside runs, hundreds of damaged pictures, and kill -9. */
import { fork } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { openDatabase, rows } from "../../src/data/database.js";
import { openBlobStore } from "../../src/engine/blob-store.js";
import { damagedFiles } from "../attacks/hostile-files.js";
import { type ServiceProcess, startProcess } from "../harness/process.js";
import { startS3 } from "../harness/s3.js";
import { startTestService } from "../harness/service.js";
import { until } from "../harness/until.js";
import { filesUnder, mediaOf } from "../media/support.js";

const MB = 2 ** 20;
const KILLED_UPLOADS = 6;
const S3_KEYS = { AWS_ACCESS_KEY_ID: "S3RVER", AWS_SECRET_ACCESS_KEY: "S3RVER" };
const UPLOAD_LOAD_PROGRAM = fileURLToPath(new URL("../harness/upload-load.js", import.meta.url));

const privateMegabytes = (pid: number): number =>
  Number(/RssAnon:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))![1]) / 1024;

/** Returns a form that contains one file of this size, as a stream. */
function createUploadForm(
  megabytes: number,
  piece = new Uint8Array(MB).fill(7),
): { body: ReadableStream; length: number; headers: Record<string, string> } {
  const text = new TextEncoder();
  const head = text.encode('--cut\r\nContent-Disposition: form-data; name="file"; filename="large.bin"\r\n\r\n');
  const tail = text.encode("\r\n--cut--\r\n");
  let sent = -1;
  const body = new ReadableStream({
    pull(controller) {
      sent += 1;
      if (sent === 0) controller.enqueue(head);
      else if (sent <= megabytes) controller.enqueue(piece);
      else {
        controller.enqueue(tail);
        controller.close();
      }
    },
  });
  const length = head.length + megabytes * MB + tail.length;
  return { body, length, headers: { "content-type": "multipart/form-data; boundary=cut" } };
}

async function sendLarge(url: string, appId: number, token: string, megabytes: number): Promise<number> {
  const { body, headers } = createUploadForm(megabytes);
  const init = { method: "POST", headers: { ...headers, "auth-token": token }, body, duplex: "half" } as RequestInit;
  const response = await fetch(`${url}/v1/apps/${appId}/media/files`, init);
  await response.text();
  return response.status;
}

const p95 = (times: number[]): number => times.sort((a, b) => a - b)[Math.floor(times.length * 0.95)]!;

describe("media under load", () => {
  let service: ServiceProcess;
  let url: string;
  let appId: number;
  let token: string;

  async function start(environment: Record<string, string> = {}): Promise<void> {
    service = startProcess(environment);
    url = await service.ready();
    ({
      appId,
      tokens: { editor: token },
    } = service.credentials());
  }
  before(() => {
    // The AWS client reads its keys from the environment.
    Object.assign(process.env, S3_KEYS);
  });
  after(() => {
    for (const name of Object.keys(S3_KEYS)) delete process.env[name];
  });
  afterEach(() => service?.clean());

  it("a file of 100 MB uses under 30 MB of memory", async () => {
    await start();
    expect(await sendLarge(url, appId, token, 5)).to.equal(201);
    const before = privateMegabytes(service.pid);
    let most = before;
    const watch = setInterval(() => (most = Math.max(most, privateMegabytes(service.pid))), 20);
    expect(await sendLarge(url, appId, token, 99)).to.equal(201);
    clearInterval(watch);
    process.stdout.write(`      100 MB cost ${(most - before).toFixed(1)} MB\n`);
    expect(most - before).to.be.below(30);
  });

  it("200 concurrent uploads make the p95 of runs at most one and a half times as long", async () => {
    await start();
    const api = `${url}/v3/apps/${appId}/actions`;
    const headers = { "auth-token": token, "content-type": "application/json" };
    const code = "async function execute() { return 1 }";
    const action = { name: "one", active: true, triggers: [{ trigger: "manual" }], code };
    await fetch(api, { method: "POST", headers, body: JSON.stringify(action) });
    const run = async () => {
      const startedAt = performance.now();
      const response = await fetch(`${api}/one/runWithResult`, { method: "POST", headers, body: "{}" });
      await response.text();
      expect(response.status).to.equal(200);
      return performance.now() - startedAt;
    };
    const measure = async (count: number) => {
      const times: number[] = [];
      for (let at = 0; at < count; at += 1) {
        times.push(await run());
        await delay(20);
      }
      return p95(times);
    };
    await measure(50);
    const alone = await measure(300);
    // A separate process sends the uploads, because this process measures the runs.
    const load = fork(UPLOAD_LOAD_PROGRAM, [`${url}/v1/apps/${appId}/media/files`, "5", "200"], {
      env: { TOKEN: token },
    });
    await until(() => filesUnder(join(service.dataDir, "media", "incoming")).length >= 150);
    const beside = await measure(300);
    load.kill("SIGKILL");
    await once(load, "close");
    process.stdout.write(
      `      p95 of a run: ${alone.toFixed(1)} ms alone, ${beside.toFixed(1)} ms beside 200 uploads\n`,
    );
    expect(beside / alone).to.be.below(1.5);
  });

  for (const kind of ["folder", "bucket"] as const) {
    it(`uploads into a ${kind} that kill -9 interrupts leave nothing, and show no partial file after the restart`, async () => {
      const s3 = kind === "bucket" ? await startS3() : null;
      const bucket = { bucket: "media", prefix: "", endpoint: s3?.url ?? null, region: "eu-west-1" };
      const environment = s3 ? { MEDIA_URL: `s3://media?endpoint=${s3.url}&region=eu-west-1`, ...S3_KEYS } : {};
      await start({ MEDIA_QUOTA_MB: "0", ...environment });
      const { dataDir } = service;
      const incoming = join(dataDir, "media", "incoming");
      const stored = () =>
        filesUnder(s3?.folder ?? join(dataDir, "media")).filter((path) => !path.includes("incoming"));
      let answeredUploadCount = 0;
      for (let turn = 0; turn < KILLED_UPLOADS; turn += 1) {
        const known = stored().length;
        let answerCount = 0;
        const sent = Array.from({ length: 20 }, async () => {
          const http = await sendLarge(url, appId, token, 4).catch(() => 0);
          if (http === 201) answerCount += 1;
          return http;
        });
        // Each turn kills the service at one of three moments: while files arrive, when one is stored, or after two successful responses.
        const killConditions = [() => true, () => stored().length > known, () => answerCount > 1];
        const half = () => filesUnder(incoming).length >= 5 && killConditions[turn % 3]!();
        await until(half);
        service.signal("SIGKILL");
        await service.ended;
        answeredUploadCount += (await Promise.all(sent)).filter((http) => http === 201).length;
        await start({ MEDIA_QUOTA_MB: "0", ...environment, DATA_DIR: dataDir });
      }
      const db = await openDatabase(service.databaseUrl(), 1);
      await db.query("UPDATE media_blob SET held_until = now() - interval '1 second' WHERE held_until IS NOT NULL");
      const left = async () =>
        (await rows<{ key: string }>(db, "SELECT key FROM media_blob WHERE held_until IS NOT NULL")).length;
      await until(async () => (await left()) === 0, 60_000);
      const files = await rows<{ id: number; key: string; bytes: number; checksum: string }>(
        db,
        "SELECT id, blob_key AS key, bytes, checksum FROM media_file",
      );
      // A killed service loses responses, so the test requires only one response for three kills. Each file with a response must exist.
      expect(answeredUploadCount, "files that were answered").to.be.at.least(KILLED_UPLOADS / 3);
      expect(files.length, "files that are there").to.be.within(answeredUploadCount, 20 * KILLED_UPLOADS - 1);
      const [used] = await rows<{ same: boolean; space: string }>(
        db,
        `SELECT (SELECT coalesce(sum(bytes), 0) FROM media_usage) = (SELECT coalesce(sum(bytes), 0) FROM media_blob) AS same,
                (SELECT space FROM media_store) AS space`,
      );
      expect(used!.same).to.equal(true);
      const store = await openBlobStore({
        folder: join(dataDir, "media"),
        bucket: s3 ? bucket : null,
        space: used!.space,
      });
      const keys: string[] = [];
      for await (const { key } of store.list()) keys.push(key);
      store.stop();
      expect(keys.sort()).to.deep.equal(files.map(({ key }) => key).sort());
      expect(filesUnder(incoming), "of what had come in when it was killed").to.deep.equal([]);
      for (const { id, bytes, checksum } of files) {
        const answer = await fetch(`${url}/v1/apps/${appId}/media/files/${id}/contents`, {
          headers: { "auth-token": token },
        });
        const contents = Buffer.from(await answer.arrayBuffer());
        expect([contents.length, createHash("sha256").update(contents).digest("hex")]).to.deep.equal([bytes, checksum]);
      }
      process.stdout.write(
        `      ${KILLED_UPLOADS} kills: ${files.length} files whole, ${answeredUploadCount} of them answered\n`,
      );
      await db.destroy();
      await s3?.stop();
    });
  }
});

describe("hundreds of damaged pictures", () => {
  it("are stored without metadata or rejected with an explanation: none kills the process, none reveals its location", async () => {
    const service = await startTestService({ ROLES: "api", MEDIA_QUOTA_MB: "0" });
    const media = mediaOf(service);
    const answers: Record<number, number> = {};
    try {
      for (const { name, bytes } of await damagedFiles(300, 20_261_121)) {
        const { http, body } = await media.send([{ name, bytes }]);
        answers[http] = (answers[http] ?? 0) + 1;
        expect([201, 400], `${name}: ${JSON.stringify(body)}`).to.include(http);
        if (http === 400) expect(body.error).to.match(/but cannot be read:/);
        if (http === 201 && body.files[0].size) {
          expect((await media.bytes(body.files[0].id)).includes("Somebody"), name).to.equal(false);
        }
      }
      expect((await service.rest("GET", "/health/ready")).http).to.equal(200);
      process.stdout.write(`      ${JSON.stringify(answers)}\n`);
    } finally {
      await service.stop();
    }
  });
});
