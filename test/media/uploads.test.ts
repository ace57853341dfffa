/** Tests uploads that end early, state wrong sizes, race, or exceed a limit: none leaves files or rows behind. */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { expect } from "chai";
import { rows } from "../../src/data/database.js";
import { longTest } from "../harness/samples.js";
import { startTestService, type TestService } from "../harness/service.js";
import { until } from "../harness/until.js";
import { filesUnder, type Media, mediaOf, noise } from "./support.js";

const MB = 2 ** 20;

describe("media: failing uploads", () => {
  let service: TestService;
  let media: Media;
  const stored = () => filesUnder(join(service.dataDir, "media"));
  const storedTotals = async () => {
    const [row] = await rows<{ blobs: number; files: number; used: number }>(
      service.db,
      `SELECT (SELECT count(*) FROM media_blob) AS blobs, (SELECT count(*) FROM media_file) AS files,
              (SELECT coalesce(sum(bytes), 0)::float8 FROM media_usage) AS used`,
    );
    return row!;
  };

  before(async () => {
    service = await startTestService({ ROLES: "api", MEDIA_MAX_MB: "2", MEDIA_QUOTA_MB: "10" });
    media = mediaOf(service);
  });
  after(() => service.stop());
  afterEach(async () => {
    const { files } = (await media.rest("GET", "/files?limit=1000")).body;
    for (const { id } of files) await media.rest("DELETE", `/files/${id}`);
    expect(stored()).to.deep.equal([]);
    expect(await storedTotals()).to.deep.equal({ blobs: 0, files: 0, used: 0 });
  });

  /** Sends the header of a request as raw text, so that it can be invalid. Returns the socket. */
  async function open(head: readonly string[], token = service.tokens.editor): Promise<Socket> {
    const { hostname, port } = new URL(service.url);
    const socket = connect(Number(port), hostname).on("error", () => undefined);
    await once(socket, "connect");
    const lines = [`POST ${media.root}/files HTTP/1.1`, "Host: x", `Auth-token: ${token}`, ...head];
    socket.write(`${lines.join("\r\n")}\r\n\r\n`);
    return socket;
  }
  const FORM = "Content-Type: multipart/form-data; boundary=cut";
  const FORM_PART = '--cut\r\nContent-Disposition: form-data; name="file"; filename="a.bin"\r\n\r\n';
  const answerOf = async (socket: Socket): Promise<string> => String((await once(socket, "data"))[0]);

  it("leave nothing when the connection is cut, with or without a length", async () => {
    for (const length of [["Content-Length: 2000000"], ["Transfer-Encoding: chunked"]]) {
      const socket = await open([FORM, ...length]);
      const bytes = `${FORM_PART}${"x".repeat(200_000)}`;
      socket.write(length[0]!.includes("chunked") ? `${bytes.length.toString(16)}\r\n${bytes}\r\n` : bytes);
      await until(() => stored().length === 1);
      expect((await storedTotals()).used).to.be.greaterThan(0);
      socket.destroy();
      await until(() => stored().length === 0);
      await until(async () => (await storedTotals()).blobs === 0);
    }
  });

  it("of one app leave capacity for those of another, however many of them are slow", async () => {
    const other = await service.rest("POST", "/v1/admin/apps", { as: "admin", body: { name: "Other" } });
    let refused = 0;
    const trickling: Socket[] = [];
    for (let at = 0; at < 270; at += 1) {
      const socket = await open([FORM, "Content-Length: 1000"]);
      trickling.push(socket.once("data", () => (refused += 1)));
      socket.write(FORM_PART);
    }
    await until(() => refused >= 270 - 128);
    const form = new FormData();
    form.append("file", new Blob(["small"]), "small.txt");
    const headers = { "auth-token": service.tokens.admin };
    const files = `${service.url}/v1/apps/${other.body.app.id}/media/files`;
    const answer = await fetch(files, { method: "POST", headers, body: form });
    expect([answer.status, refused]).to.deep.equal([201, 270 - 128]);
    for (const socket of trickling) socket.destroy();
    const { files: made } = (await answer.json()) as { files: { id: number }[] };
    await service.rest("DELETE", `/v1/apps/${other.body.app.id}/media/files/${made[0]!.id}`, { as: "admin" });
    await until(async () => (await storedTotals()).blobs === 0 && stored().length === 0);
  });

  it("are rejected if the form ends before its last boundary, or has none", async () => {
    for (const body of [`${FORM_PART}text without an end`, "--cut", "no form at all", `${FORM_PART}text\r\n--cut`]) {
      const socket = await open([FORM, `Content-Length: ${body.length}`, "Connection: close"]);
      socket.write(body);
      expect(await answerOf(socket), body).to.match(/^HTTP\/1\.1 400 [\s\S]*REQUEST_INVALID/);
      socket.destroy();
    }
  });

  it("are rejected with a text field or a file name that is not UTF-8", async () => {
    const disposition = (rest: Buffer) =>
      Buffer.concat([Buffer.from("--cut\r\nContent-Disposition: form-data; "), rest]);
    const other = Buffer.from([0xe9]);
    const bodies = [
      [disposition(Buffer.from('name="name"\r\n\r\ncaf')), other, Buffer.from("\r\n--cut--\r\n")],
      [disposition(Buffer.from('name="file"; filename="caf')), other, Buffer.from('.txt"\r\n\r\ntext\r\n--cut--\r\n')],
    ].map((parts) => Buffer.concat(parts));
    for (const body of bodies) {
      const headers = { "content-type": "multipart/form-data; boundary=cut", "auth-token": service.tokens.editor };
      const answer = await fetch(`${service.url}${media.root}/files`, { method: "POST", headers, body });
      const { status, error } = (await answer.json()) as { status: string; error: string };
      expect([answer.status, status], body.toString()).to.deep.equal([400, "REQUEST_INVALID"]);
      expect(error).to.match(/^the form field (name|file) must be UTF-8/);
    }
  });

  it("are rejected as no form with any invalid boundary, like imports of entries", async () => {
    const source = await service.rest("POST", `/v1/apps/${service.appId}/data-sources`, { body: { name: "rows" } });
    const imports = `/v1/apps/${service.appId}/data-sources/${source.body.dataSource.id}/import`;
    for (const boundary of ["", "; boundary=", '; boundary=""', `; boundary=${"b".repeat(300)}`]) {
      const form = { body: `--b\r\n`, headers: { "content-type": `multipart/form-data${boundary}` } };
      for (const path of [`${media.root}/files`, imports]) {
        const { http, body } = await service.rest("POST", path, form);
        expect([http, body.status], `${path} ${boundary}`).to.deep.equal([400, "REQUEST_INVALID"]);
      }
    }
  });

  it("are rejected with an unknown field or too many files, like imports of entries", async () => {
    const source = await service.rest("POST", `/v1/apps/${service.appId}/data-sources`, { body: { name: "forms" } });
    const path = `/v1/apps/${service.appId}/data-sources/${source.body.dataSource.id}`;
    const send = async (to: string, parts: readonly [string, string | Blob][]) => {
      const form = new FormData();
      for (const [name, value] of parts) form.append(name, value);
      const headers = { "auth-token": service.tokens.editor };
      const answer = await fetch(service.url + to, { method: "POST", headers, body: form });
      const { status, error } = (await answer.json()) as { status: string; error: string };
      return [answer.status, status, error];
    };
    const file: [string, Blob] = ["file", new Blob(["a\n1\n"], { type: "text/csv" })];
    const refusal = (reason: string) => [400, "REQUEST_INVALID", reason];
    const misspelt = 'folderid is not a known field; the nearest known field is "folderId"';
    for (const parts of [
      [["folderid", "1"] as const, file],
      [file, ["folderid", "1"] as const],
    ] as [string, string][][])
      expect(await send(`${media.root}/files`, parts)).to.deep.equal(refusal(misspelt));
    const option =
      'the form of an import must contain only its file (got the field "append"); send options as query parameters';
    expect(await send(`${path}/import`, [["append", "true"], file])).to.deep.equal(refusal(option));
    expect(await send(`${path}/import`, [file, ["append", "true"]])).to.deep.equal(refusal(option));
    expect(await send(`${path}/import`, [file, file])).to.deep.equal(
      refusal("the form contains too many files; send fewer files in one request"),
    );
    expect((await service.rest("POST", `${path}/query`, { body: { type: "select" } })).body.entries).to.deep.equal([]);
    await until(async () => (await storedTotals()).blobs === 0 && stored().length === 0);
  });

  it("are rejected above the maximum size of a file, also if the request states no length", async () => {
    const { http, body } = await media.send([{ name: "big", bytes: noise(2 * MB + 1) }]);
    expect([http, body.status]).to.deep.equal([413, "PAYLOAD_TOO_LARGE"]);
    expect(body.error).to.include("2 MB");
    expect((await media.send([{ name: "fits", bytes: noise(2 * MB) }])).http).to.equal(201);
    const socket = await open([FORM, "Transfer-Encoding: chunked"]);
    const bytes = `${FORM_PART}${"x".repeat(3 * MB)}`;
    socket.write(`${bytes.length.toString(16)}\r\n${bytes}\r\n`);
    expect(await answerOf(socket)).to.match(/^HTTP\/1\.1 413 /);
    socket.destroy();
  });

  it("above the maximum size of a file are rejected for this reason, also if they would exceed the quota", async () => {
    const fillers: number[] = [];
    for (let count = 0; count < 4; count += 1) {
      const { body } = await media.send([{ name: "filler", bytes: noise(2 * MB) }]);
      fillers.push(body.files[0].id);
    }
    const { http, body } = await media.send([{ name: "big", bytes: noise(2 * MB + 1) }]);
    expect([http, body.error]).to.deep.equal([413, "an uploaded file can have at most 2 MB"]);
    for (const id of fillers) await service.rest("DELETE", `${media.root}/files/${id}`);
  });

  longTest("never exceed the app's quota, also when many arrive at once", async () => {
    const answers = await Promise.all(Array.from({ length: 20 }, () => media.send([{ name: "m", bytes: noise(MB) }])));
    const made = answers.filter(({ http }) => http === 201).length;
    expect(made).to.be.within(8, 10);
    expect(
      answers.filter(({ http }) => http !== 201).every(({ body }) => body.status === "PAYLOAD_TOO_LARGE"),
    ).to.equal(true);
    const bytes = (await storedTotals()).used;
    expect(bytes)
      .to.equal(made * MB)
      .and.at.most(10 * MB);
  });

  it("count small files by the block that each takes", async () => {
    await media.upload("tiny", "x");
    expect((await storedTotals()).used).to.equal(4_096);
  });

  it("are stored completely or not at all: one bad file of three leaves nothing of the others", async () => {
    const good = { name: "good", bytes: noise(1_000) };
    const bad = { name: "bad.jpg", bytes: new Uint8Array([0xff, 0xd8, 0xff, 0xe1, 0xff, 0xff, ...noise(100)]) };
    const { http, body } = await media.send([good, bad, good]);
    expect([http, body.status]).to.deep.equal([400, "REQUEST_INVALID"]);
    expect(body.error).to.match(/image\/jpeg/);
    expect(stored()).to.deep.equal([]);
  });

  it("leave nothing when the database rejects the last step", async () => {
    await service.db.query("ALTER TABLE media_file ADD CONSTRAINT refused CHECK (name <> 'refused')");
    try {
      const { http, body } = await media.send([{ name: "refused", bytes: "x" }]);
      expect([http, body.status]).to.deep.equal([500, "INTERNAL_ERROR"]);
      expect([stored().length, (await storedTotals()).blobs]).to.deep.equal([0, 0]);
    } finally {
      await service.db.query("ALTER TABLE media_file DROP CONSTRAINT refused");
    }
  });

  it("keep the bytes of a file whose commit got no response", async () => {
    const file = await media.upload("kept", "kept");
    const [row] = await rows<{ key: string }>(service.db, "SELECT blob_key AS key FROM media_file WHERE id = $1", [
      file.id,
    ]);
    const { MediaBlobs } = await import("../../src/operations/media/blobs.js");
    const { pino } = await import("pino");
    const blobs = new MediaBlobs({ db: service.db, quotaBytes: 0, log: pino({ level: "silent" }) });
    const removed: string[] = [];
    await blobs.removeUnlessUsed(row!.key, async (key) => void removed.push(key));
    expect(removed).to.deep.equal([]);
    expect(String(await media.bytes(file.id))).to.equal("kept");
  });

  it("are rejected for missing rights before a byte is stored", async () => {
    const socket = await open([FORM, "Content-Length: 1000000"], service.tokens.live);
    socket.write(`${FORM_PART}x`);
    expect(await answerOf(socket)).to.match(/^HTTP\/1\.1 403 /);
    expect(stored()).to.deep.equal([]);
    socket.destroy();
  });

  it("are rejected when the disk is nearly full, with Retry-After", async () => {
    const full = await startTestService({ ROLES: "api", DISK_FREE_MIN_MB: "1000000" });
    try {
      const { http, body, headers } = await mediaOf(full).send([{ name: "a", bytes: "x" }]);
      expect([http, body.status]).to.deep.equal([503, "OVERLOADED"]);
      expect(Number(headers.get("retry-after"))).to.be.greaterThan(0);
    } finally {
      await full.stop();
    }
  });
});
