/** Tests folders and files of an app: what the service stores, lists, changes and deletes, over REST and GraphQL. */
import { createHash } from "node:crypto";
import { join } from "node:path";
import { expect } from "chai";
import { rows } from "../../src/data/database.js";
import { untilLockWait } from "../harness/lock-waits.js";
import { startTestService, type TestService } from "../harness/service.js";
import { filesUnder, type Media, mediaOf, noise, picture } from "./support.js";

describe("media: folders and files", () => {
  let service: TestService;
  let media: Media;
  const stored = () => filesUnder(join(service.dataDir, "media"));

  before(async () => {
    service = await startTestService({ ROLES: "api" });
    media = mediaOf(service);
  });
  after(() => service.stop());

  const usage = async () => {
    const [row] = await rows<{ bytes: number }>(
      service.db,
      "SELECT coalesce(sum(bytes), 0)::float8 AS bytes FROM media_usage",
    );
    return row!.bytes;
  };

  it("refuses a new name for a file that another request removes meanwhile", async () => {
    const { body } = await media.send([{ name: "gone.txt", bytes: "gone" }]);
    const { id } = body.files[0];
    // The transaction locks the row of the file, as a removal does. The rename finds the file, and then waits for this row.
    const renamed = await service.db.transaction(async (manager) => {
      await manager.query("DELETE FROM media_file WHERE id = $1", [id]);
      const answer = media.rest("PUT", `/files/${id}`, { name: "kept.txt" });
      await untilLockWait(manager, answer);
      return { answer };
    });
    const { http, body: refused } = await renamed.answer;
    expect([http, refused.status]).to.deep.equal([404, "FILE_NOT_FOUND"]);
    const audited = await rows(
      service.db,
      "SELECT FROM audit_entry WHERE type = 'media.file.update' AND data ->> 'fileId' = $1",
      [String(id)],
    );
    expect(audited).to.have.length(0);
  });

  it("returns a file unchanged, with checksum, length and type", async () => {
    const bytes = noise(300_000);
    const { http, body } = await media.send([{ name: "noise.png", bytes, type: "image/png" }]);
    expect(http).to.equal(201);
    expect(body).to.have.keys("files");
    const [file] = body.files;
    expect(file).to.have.keys(
      ...["id", "name", "contentType", "url", "thumbnail", "size", "bytes", "checksum", "folderId", "userId"],
      ...["createdAt", "updatedAt"],
    );
    expect(file).to.include({
      name: "noise.png",
      contentType: "application/octet-stream",
      bytes: 300_000,
      folderId: null,
    });
    expect(file).to.include({ thumbnail: null, size: null });
    expect(file.checksum).to.equal(createHash("sha256").update(bytes).digest("hex"));
    expect(file.url).to.equal(`${service.url}${media.root}/files/${file.id}/contents`);
    expect((await media.bytes(file.id)).equals(bytes)).to.equal(true);
    expect((await media.rest("GET", `/files/${file.id}`)).body).to.deep.equal({ file });
  });

  it("accepts several files and their folder in one form, all of them or none", async () => {
    const folderId = await media.folder("several");
    const parts = [1, 2, 3].map((n) => ({ name: `n${n}.txt`, bytes: `text ${n}` }));
    const { http, body } = await media.send(parts, { folderId: String(folderId) });
    expect(http).to.equal(201);
    expect(body.files.map(({ name }: { name: string }) => name)).to.deep.equal(["n1.txt", "n2.txt", "n3.txt"]);
    const before = stored().length;
    const refused = await media.send(Array.from({ length: 21 }, (_, n) => ({ name: `${n}`, bytes: `${n}` })));
    expect(refused.http).to.equal(400);
    expect(stored().length).to.equal(before);
    const listing = (await media.rest("GET", `?folderId=${folderId}`)).body;
    expect(listing.files).to.deep.equal(body.files);
    expect(listing.folder).to.include({ id: folderId, name: "several", parentId: null });
  });

  it("nests folders, finds by name, and rejects a folder inside itself", async () => {
    const outer = await media.folder("Outer");
    const inner = await media.folder("Inner", outer);
    const file = await media.upload("In_voice 100%.txt", "x", { folderId: String(inner) });
    const search = async (name: string) => (await media.rest("GET", `?name=${encodeURIComponent(name)}`)).body;
    expect((await search("INNER")).folders.map(({ id }: { id: number }) => id)).to.deep.equal([inner]);
    expect((await search("in_VOICE 100%")).files.map(({ id }: { id: number }) => id)).to.deep.equal([file.id]);
    expect((await search("in%voice")).files).to.deep.equal([]);
    for (const parentId of [outer, inner]) {
      const { http, body } = await media.rest("PUT", `/folders/${outer}`, { parentId });
      expect([http, body.status]).to.deep.equal([400, "REQUEST_INVALID"]);
    }
    const twice = await media.rest("POST", "/folders", { name: "Inner", parentId: outer });
    expect([twice.http, twice.body.status]).to.deep.equal([409, "NAME_ALREADY_EXISTS"]);
    const moved = await media.rest("PUT", `/folders/${inner}`, { name: "Moved", parentId: null });
    expect(moved.body.folder).to.include({ id: inner, name: "Moved", parentId: null });
  });

  it("names the folder if its name is taken where it is moved, also if the request does not rename it", async () => {
    const parentId = await media.folder("Parent");
    await media.folder("Taken", parentId);
    const moved = await media.folder("Taken");
    for (const change of [{ parentId }, { parentId, name: "Taken" }]) {
      const { http, body } = await media.rest("PUT", `/folders/${moved}`, change);
      expect([http, body.status]).to.deep.equal([409, "NAME_ALREADY_EXISTS"]);
      expect(body.error).to.equal('the parent folder already contains a folder named "Taken"; choose another name');
    }
  });

  it("rejects one of two concurrent moves of two folders into each other", async () => {
    const [left, right] = [await media.folder("left"), await media.folder("right")];
    const answers = await Promise.all([
      media.rest("PUT", `/folders/${left}`, { parentId: right }),
      media.rest("PUT", `/folders/${right}`, { parentId: left }),
    ]);
    expect(answers.map(({ http }) => http).sort()).to.deep.equal([200, 400]);
  });

  it("nests at most 50 deep", async () => {
    let parentId: number | undefined;
    for (let depth = 1; depth <= 50; depth += 1) parentId = await media.folder(`d${depth}`, parentId);
    const { http, body } = await media.rest("POST", "/folders", { name: "d51", parentId });
    expect([http, body.status]).to.deep.equal([400, "REQUEST_INVALID"]);
  });

  it("renames and moves a file; its bytes stay", async () => {
    const folderId = await media.folder("target");
    const file = await media.upload("a.txt", "hello");
    const { body } = await media.rest("PUT", `/files/${file.id}`, { name: "b.txt", folderId });
    expect(body.file).to.include({ id: file.id, name: "b.txt", folderId, checksum: file.checksum });
    expect(String(await media.bytes(file.id))).to.equal("hello");
    expect((await media.rest("PUT", `/files/${file.id}`, { folderId: null })).body.file.folderId).to.equal(null);
  });

  it("removes a deleted file from the store, and releases its quota", async () => {
    const [before, used] = [stored().length, await usage()];
    const file = await media.upload("gone.jpg", new Uint8Array(await picture(800, 600).jpeg().toBuffer()));
    expect(stored().length).to.equal(before + 2);
    expect(await usage()).to.be.greaterThan(used);
    const { http, body } = await media.rest("DELETE", `/files/${file.id}`);
    expect([http, body.status]).to.deep.equal([200, "FILE_DELETED"]);
    expect(stored().length).to.equal(before);
    expect(await usage()).to.equal(used);
    expect((await media.rest("GET", `/files/${file.id}`)).body.status).to.equal("FILE_NOT_FOUND");
    expect((await media.contents(file.id)).status).to.equal(404);
  });

  it("deletes a folder with all its content, at any depth", async () => {
    const [before, used] = [stored().length, await usage()];
    const outer = await media.folder("doomed");
    const inner = await media.folder("inner", outer);
    for (const id of [outer, inner]) await media.upload("f.bin", noise(5_000), { folderId: String(id) });
    expect((await media.rest("DELETE", `/folders/${outer}`)).body.status).to.equal("FOLDER_DELETED");
    expect([stored().length, await usage()]).to.deep.equal([before, used]);
    expect((await media.rest("GET", `?folderId=${inner}`)).body.status).to.equal("FOLDER_NOT_FOUND");
  });

  it("stores mediaFile.create with the file, and an entry in the audit log", async () => {
    const file = await media.upload("event.txt", "x");
    const [event] = await rows<{ data: object; user_id: number }>(
      service.db,
      "SELECT data, user_id FROM log_event WHERE type = 'mediaFile.create' ORDER BY id DESC LIMIT 1",
    );
    const { id: fileId, name, contentType, bytes, folderId, userId } = file;
    expect(event!.data).to.deep.include({ fileId, name, contentType, bytes, folderId });
    expect(event!.user_id).to.equal(userId);
    const { entries } = (await service.rest("GET", `/v1/apps/${service.appId}/audit?limit=1`)).body;
    expect(entries[0]).to.deep.include({ type: "media.file.create", data: { fileId, name } });
  });

  it("rejects names that are paths or misleading, by the field's name, and never stores under a name", async () => {
    for (const name of ["a/b", "a\\b", "..", ".", "", " ", "a\0b", "x\u202egpj.exe", "a".repeat(256), "a\nb"]) {
      const { http, body } = await media.rest("POST", "/folders", { name });
      expect([name, http, body.status]).to.deep.equal([name, 400, "REQUEST_INVALID"]);
      expect(body.error).to.match(
        name.includes("\0") ? /^name must not contain the character U\+0000/ : /^name must be/,
      );
    }
    for (const name of ["../../../etc/passwd", "..\\..\\boot.ini", "/abs/olute.txt"]) {
      const file = await media.upload(name, "x");
      expect(file.name).to.match(/^(passwd|boot\.ini|olute\.txt)$/);
    }
    expect(stored().every((path) => /\/media\/[0-9a-f]{16}\/[0-9a-f]{2}\/[0-9a-f]{32}$/.test(path))).to.equal(true);
  });

  it("gives no 5xx for an invalid body, and rejects an upload without a form, a file or an existing folder", async () => {
    const odd = [
      null,
      [],
      1,
      "text",
      { name: 1 },
      { folderId: "x" },
      { folderId: -1 },
      { name: {} },
      { parentId: 1.5 },
    ];
    for (const body of odd) {
      for (const path of [`/folders/1`, "/folders", "/files/1", "/files/1/link", "/files/1/accessRules"]) {
        const { http } = await media.rest(path === "/folders" || path.endsWith("link") ? "POST" : "PUT", path, body);
        expect(http, `${path} ${JSON.stringify(body)}`).to.be.within(200, 499);
      }
    }
    const noForm = await service.rest("POST", `${media.root}/files`, { body: { file: "x" } });
    expect([noForm.http, noForm.body.status]).to.deep.equal([400, "REQUEST_INVALID"]);
    const empty = await media.send([]);
    expect([empty.http, empty.body.status]).to.deep.equal([400, "REQUEST_INVALID"]);
    const nowhere = await media.send([{ name: "a", bytes: "a" }], { folderId: "999999" });
    expect([nowhere.http, nowhere.body.status]).to.deep.equal([404, "FOLDER_NOT_FOUND"]);
  });

  it("does everything except bytes over GraphQL too", async () => {
    const { appId: app } = service;
    const ask = async (text: string) => {
      const { data, errors } = await service.graphql(`${text}`, {});
      expect(errors).to.equal(undefined);
      return data;
    };
    const { createMediaFolder: folder } = await ask(
      `mutation { createMediaFolder(appId: ${app}, name: "gql") { id name parentId } }`,
    );
    expect(folder).to.deep.include({ name: "gql", parentId: null });
    const file = await media.upload("gql.txt", "x");
    const changed = await ask(`mutation { updateMediaFile(appId: ${app}, id: ${file.id}, folderId: ${folder.id},
      accessRules: [{type: [read], allow: user, user: {email: {contains: "@"}}}]) { folderId name bytes } }`);
    expect(changed.updateMediaFile).to.deep.equal({ folderId: folder.id, name: "gql.txt", bytes: 1 });
    const { mediaAccessRules } = await ask(
      `{ mediaAccessRules(appId: ${app}, fileId: ${file.id}) { type allow user enabled } }`,
    );
    expect(mediaAccessRules).to.deep.equal([
      { type: ["read"], allow: "user", user: { email: { contains: "@" } }, enabled: true },
    ]);
    const { mediaFolder } = await ask(
      `{ mediaFolder(appId: ${app}, folderId: ${folder.id}) { folder { id } folders { id } files { id size thumbnail } pagination { total hasMore } } }`,
    );
    expect(mediaFolder).to.deep.equal({
      folder: { id: folder.id },
      folders: [],
      files: [{ id: file.id, size: null, thumbnail: null }],
      pagination: { total: 1, hasMore: false },
    });
    const { mediaLink } = await ask(`{ mediaLink(appId: ${app}, id: ${file.id}, expiresIn: 60) { url expiresAt } }`);
    expect(String(await (await fetch(mediaLink.url)).text())).to.equal("x");
    await ask(`mutation { updateMediaFolder(appId: ${app}, id: ${folder.id}, name: "gql2") { id } }`);
    await ask(`mutation { deleteMediaFile(appId: ${app}, id: ${file.id}) }`);
    await ask(`mutation { deleteMediaFolder(appId: ${app}, id: ${folder.id}) }`);
    const { errors } = await service.graphql(`{ mediaFile(appId: ${app}, id: ${file.id}) { id } }`);
    expect(errors?.[0].extensions.status).to.equal("FILE_NOT_FOUND");
  });

  it("hides the files of one app from another app's callers, also from editors", async () => {
    const [other] = await rows<{ id: number }>(
      service.db,
      "INSERT INTO app (organization_id, name) VALUES ($1, 'other') RETURNING id",
      [service.organizationId],
    );
    const file = await media.upload("own.txt", "x");
    const foreign = `/v1/apps/${other!.id}/media/files/${file.id}`;
    for (const as of ["editor", "api", "viewer", "live"] as const) {
      for (const path of [foreign, `${foreign}/contents`]) {
        expect([as, (await service.rest("GET", path, { as })).http]).to.deep.equal([as, 403]);
      }
    }
    expect((await service.rest("GET", foreign, { as: "admin" })).body.status).to.equal("FILE_NOT_FOUND");
    expect(
      (await service.rest("PUT", `${media.root}/files/${file.id}`, { body: { folderId: 424_242 } })).body.status,
    ).to.equal("FOLDER_NOT_FOUND");
  });
});
