/** Tests access to an app's media: each caller, each permission, each kind of rule, and signed links. */
import { createHmac, hkdfSync, randomBytes } from "node:crypto";
import { expect } from "chai";
import type { CredentialKind } from "../../src/data/credential.js";
import { POOL_CONNECTIONS, rows } from "../../src/data/database.js";
import type { MediaFile } from "../../src/data/media-types.js";
import { createKeyRing } from "../../src/engine/key-ring.js";
import { generateToken, hashToken } from "../../src/operations/access/tokens.js";
import { SignedMediaUrls } from "../../src/operations/media/links.js";
import { lockApp } from "../../src/operations/settings/app-lock.js";
import type { MediaRight } from "../../src/rules/media-access.js";
import { countLockWaits, untilLockWait } from "../harness/lock-waits.js";
import { startTestService, type TestService } from "../harness/service.js";
import { issueTaskToken } from "../harness/task-token.js";
import { until } from "../harness/until.js";
import { type Media, mediaOf } from "./support.js";

type Who = CredentialKind | "visitor without a name" | "nobody";

/** Sends one request for each permission on media, for a file in a folder, without lasting changes. */
const CALLS: Record<MediaRight, (media: Media, at: { folderId: number; fileId: number }) => Promise<number>> = {
  read: async (media, { fileId }) => (await media.contents(fileId)).status,
  create: async (media, { folderId }) =>
    (await media.send([{ name: "new", bytes: "x" }], { folderId: String(folderId) })).http,
  update: async (media, { fileId }) => (await media.rest("PUT", `/files/${fileId}`, { name: "renamed" })).http,
  delete: async (media, { fileId }) => (await media.rest("DELETE", `/files/${fileId}`)).http,
};
const RIGHTS = Object.keys(CALLS) as MediaRight[];

describe("media: access", () => {
  let service: TestService;
  let editor: Media;
  const tokens = new Map<Who, string | null>();
  let email: string;

  before(async () => {
    service = await startTestService({ ROLES: "api", ALLOW_PRIVATE_NETWORK: "1" });
    editor = mediaOf(service);
    for (const [kind, token] of Object.entries(service.tokens)) tokens.set(kind as Who, token);
    tokens.set("task", await issueTaskToken(service.db, service.appId));
    tokens.set("nobody", null);
    const nameless = generateToken("live");
    await service.db.query("INSERT INTO credential (kind, hash, app_id) VALUES ('live', $1, $2)", [
      hashToken(nameless),
      service.appId,
    ]);
    tokens.set("visitor without a name", nameless);
    const [person] = await rows<{ email: string }>(
      service.db,
      "SELECT email FROM person JOIN credential ON person_id = person.id WHERE hash = $1",
      [hashToken(service.tokens.live)],
    );
    email = person!.email;
  });
  after(() => service.stop());

  const caller = (who: Who) => mediaOf(service, tokens.get(who) ?? null);
  const refused = (who: Who) => (who === "nobody" ? 401 : 403);
  const CALLERS_WITH_RULES: readonly Who[] = ["viewer", "live", "visitor without a name", "nobody"];
  const TRUSTED_CALLERS: readonly Who[] = ["editor", "admin", "api", "task"];

  async function folderWith(rules: unknown): Promise<{ folderId: number; fileId: number }> {
    const folderId = await editor.folder(`f${Math.random()}`);
    const { http, body } = await editor.rest("PUT", `/folders/${folderId}/accessRules`, { accessRules: rules });
    expect(http, JSON.stringify(body)).to.equal(200);
    return { folderId, fileId: (await editor.upload("f.txt", "x", { folderId: String(folderId) })).id };
  }

  const FORMS: Record<string, { rule: (right: MediaRight) => object[] | null; granted: readonly Who[] }> = {
    "no rules": { rule: () => null, granted: [] },
    "an empty list": { rule: () => [], granted: [] },
    all: { rule: (right) => [{ type: [right], allow: "all" }], granted: CALLERS_WITH_RULES },
    loggedIn: { rule: (right) => [{ type: [right], allow: "loggedIn" }], granted: ["viewer", "live"] },
    "a user by a column": {
      rule: (right) => [{ type: [right], allow: { user: { email: { equals: email } } } }],
      granted: ["viewer", "live"],
    },
    "a user by a part of a column": {
      rule: (right) => [{ type: [right], allow: { user: { email: { contains: "@" } } } }],
      granted: ["viewer", "live"],
    },
    "a user unlike a value": {
      rule: (right) => [{ type: [right], allow: { user: { email: { notequals: email } } } }],
      granted: [],
    },
    "a column that nobody has": {
      rule: (right) => [{ type: [right], allow: { user: { Role: { notequals: "guest" } } } }],
      granted: [],
    },
    "a rule that is switched off": { rule: (right) => [{ type: [right], allow: "all", enabled: false }], granted: [] },
    "the other rights": {
      rule: (right) => [{ type: RIGHTS.filter((one) => one !== right), allow: "all" }],
      granted: [],
    },
  };

  for (const [form, { rule, granted }] of Object.entries(FORMS)) {
    it(`grants each right by ${form} to ${granted.join(", ") || "nobody"}`, async () => {
      for (const right of RIGHTS) {
        const place = await folderWith(rule(right));
        for (const who of CALLERS_WITH_RULES) {
          const fileId =
            right === "delete"
              ? (await editor.upload("d", "x", { folderId: String(place.folderId) })).id
              : place.fileId;
          const http = await CALLS[right](caller(who), { ...place, fileId });
          const expected = granted.includes(who) ? (right === "create" ? 201 : 200) : refused(who);
          expect([right, who, http]).to.deep.equal([right, who, expected]);
        }
      }
    });
  }

  it("tests the columns of the entry that is signed in to the page", async () => {
    const { folderId, fileId } = await folderWith([{ type: ["read"], allow: { user: { Role: { equals: "staff" } } } }]);
    const root = `/v1/apps/${service.appId}`;
    const source = await service.rest("POST", `${root}/data-sources`, {
      body: {
        name: "people",
        isUsers: true,
        hooks: [{ type: "operations", runOn: ["insert", "update"], fields: { Password: ["hash"] } }],
      },
    });
    const { id } = source.body.dataSource;
    const entry = { Email: "ann@example.com", Password: "a password", Role: "staff" };
    expect((await service.rest("POST", `${root}/data-sources/${id}/entries`, { body: entry })).http).to.equal(201);
    const visitor = caller("visitor without a name");
    expect((await visitor.contents(fileId)).status, "not signed in").to.equal(403);
    const as = tokens.get("visitor without a name")!;
    const where = { Email: entry.Email, Password: entry.Password };
    const signIn = await service.rest("POST", `${root}/session`, { as, body: { dataSourceId: id, where } });
    expect(signIn.http, JSON.stringify(signIn.body)).to.equal(200);
    expect((await visitor.contents(fileId)).status, "signed in").to.equal(200);
    expect((await visitor.rest("GET", `?folderId=${folderId}`)).body.files).to.have.length(1);
    await service.rest("DELETE", `${root}/session`, { as });
    expect((await visitor.contents(fileId)).status, "signed out").to.equal(403);
  });

  it("lets the app itself do everything without a rule", async () => {
    for (const who of TRUSTED_CALLERS) {
      const { folderId, fileId } = await folderWith([]);
      for (const right of RIGHTS) {
        expect([who, right, (await CALLS[right](caller(who), { folderId, fileId })) < 300]).to.deep.equal([
          who,
          right,
          true,
        ]);
      }
    }
  });

  it("uses a file's own rules, otherwise those of the nearest folder that has any", async () => {
    const { folderId } = await folderWith([{ type: ["read"], allow: "all" }]);
    const inner = await editor.folder("inner", folderId);
    const file = await editor.upload("f", "x", { folderId: String(inner) });
    const nobody = caller("nobody");
    expect((await nobody.contents(file.id)).status, "the outer folder's").to.equal(200);
    await editor.rest("PUT", `/folders/${inner}/accessRules`, []);
    expect((await nobody.contents(file.id)).status, "the inner folder's").to.equal(401);
    await editor.rest("PUT", `/files/${file.id}/accessRules`, { accessRules: [{ type: ["read"], allow: "all" }] });
    expect((await nobody.contents(file.id)).status, "its own").to.equal(200);
    expect((await editor.rest("GET", `/files/${file.id}/accessRules`)).body).to.deep.equal({
      accessRules: [{ type: ["read"], allow: "all" }],
    });
    await editor.rest("PUT", `/files/${file.id}/accessRules`, { accessRules: null });
    expect((await nobody.contents(file.id)).status, "none of its own").to.equal(401);
  });

  it("rejects a move that gives a right that the file or folder did not grant before", async () => {
    const source = await folderWith([{ type: ["update", "create"], allow: "all" }]);
    const target = await folderWith([{ type: ["create", "read", "delete"], allow: "all" }]);
    const alike = await folderWith([{ type: ["create", "update"], allow: "all" }]);
    const inner = await editor.folder("inner", source.folderId);
    for (const who of CALLERS_WITH_RULES) {
      const { rest } = caller(who);
      const move = async (path: string, body: object) => (await rest("PUT", path, body)).http;
      expect(await move(`/files/${source.fileId}`, { folderId: target.folderId }), who).to.equal(refused(who));
      expect(await move(`/folders/${inner}`, { parentId: target.folderId }), who).to.equal(refused(who));
      expect(await move(`/files/${source.fileId}`, { folderId: alike.folderId }), who).to.equal(200);
      expect(await move(`/files/${source.fileId}`, { folderId: source.folderId }), who).to.equal(200);
    }
    await editor.rest("PUT", `/files/${source.fileId}/accessRules`, [{ type: ["update"], allow: "all" }]);
    const own = await caller("nobody").rest("PUT", `/files/${source.fileId}`, { folderId: target.folderId });
    expect(own.http, "its own rules go along").to.equal(200);
    expect((await caller("nobody").contents(source.fileId)).status).to.equal(401);
  });

  it("lists what may be read, without revealing the number of others", async () => {
    const { folderId, fileId } = await folderWith([{ type: ["read"], allow: "all" }]);
    const hidden = await editor.upload("hidden", "x", { folderId: String(folderId) });
    await editor.rest("PUT", `/files/${hidden.id}/accessRules`, []);
    const { body } = await caller("nobody").rest("GET", `?folderId=${folderId}`);
    expect(body.files.map(({ id }: { id: number }) => id)).to.deep.equal([fileId]);
    expect(body.pagination).to.deep.equal({ total: 1, hasMore: false });
    const search = (await caller("nobody").rest("GET", "?name=hidden")).body;
    expect(search.status).to.equal("UNAUTHORIZED");
  });

  it("gives the same rejection whether or not a file or folder exists", async () => {
    const { folderId, fileId } = await folderWith([]);
    for (const who of CALLERS_WITH_RULES) {
      const answers = await Promise.all(
        [
          `/files/${fileId}`,
          "/files/999999",
          `?folderId=${folderId}`,
          "?folderId=999999",
          `/files/${fileId}/contents`,
          "/files/999999/contents",
        ].map((path) => caller(who).rest("GET", path)),
      );
      const bodies = answers.map(({ http, body }) => JSON.stringify([http, body]));
      expect(new Set(bodies).size, who).to.equal(1);
      expect(answers[0]!.http).to.equal(refused(who));
    }
  });

  it("lets pages and app users neither read nor write rules", async () => {
    const { folderId, fileId } = await folderWith([{ type: [...RIGHTS], allow: "all" }]);
    for (const who of CALLERS_WITH_RULES) {
      for (const path of [`/files/${fileId}/accessRules`, `/folders/${folderId}/accessRules`]) {
        expect((await caller(who).rest("GET", path)).http).to.equal(refused(who));
        expect((await caller(who).rest("PUT", path, [])).http).to.equal(refused(who));
      }
    }
  });

  it("changes rules if If-Match has the current state, also with more waiting requests than connections", async () => {
    const { folderId, fileId } = await folderWith([]);
    for (const path of [`/folders/${folderId}/accessRules`, `/files/${fileId}/accessRules`]) {
      const tag = (await editor.rest("GET", path)).headers.get("etag")!;
      const put = () =>
        service.rest("PUT", editor.root + path, { body: { accessRules: [] }, headers: { "if-match": tag } });
      const answers = await service.db.transaction(async (manager) => {
        await lockApp(manager, service.appId);
        const sent = Array.from({ length: POOL_CONNECTIONS }, put);
        await until(async () => (await countLockWaits(manager)) === POOL_CONNECTIONS);
        return sent;
      });
      const statuses = (await Promise.all(answers)).map(({ http }) => http).sort();
      expect(statuses).to.deep.equal([200, ...Array.from({ length: POOL_CONNECTIONS - 1 }, () => 409)]);
    }
  });

  it("lets no caller delete a folder with a file that its own rules protect", async () => {
    const { folderId, fileId } = await folderWith([{ type: [...RIGHTS], allow: "all" }]);
    await editor.rest("PUT", `/files/${fileId}/accessRules`, [{ type: ["read"], allow: "all" }]);
    expect((await caller("live").rest("DELETE", `/folders/${folderId}`)).http).to.equal(403);
    await editor.rest("PUT", `/files/${fileId}/accessRules`, { accessRules: null });
    expect((await caller("live").rest("DELETE", `/folders/${folderId}`)).http).to.equal(200);
  });

  it("creates nothing if the right was removed while the file arrived", async () => {
    const { folderId } = await folderWith([{ type: ["create"], allow: "all" }]);
    const sent = await service.db.transaction(async (manager) => {
      await lockApp(manager, service.appId);
      const upload = caller("live").send([{ name: "late", bytes: "x" }], { folderId: String(folderId) });
      await until(async () => (await countLockWaits(manager)) > 0);
      await rows(manager, "UPDATE media_folder SET access_rules = '[]' WHERE id = $1", [folderId]);
      return [upload];
    });
    expect((await sent[0])!.http).to.equal(403);
    expect(
      (await editor.rest("GET", `?folderId=${folderId}`)).body.files.map(({ name }: MediaFile) => name),
    ).to.not.include("late");
  });

  const CHANGES: Record<string, (media: Media, at: { folderId: number; fileId: number }) => Promise<{ http: number }>> =
    {
      "renames a file": (media, { fileId }) => media.rest("PUT", `/files/${fileId}`, { name: "renamed" }),
      "moves a file": (media, { fileId, folderId }) => media.rest("PUT", `/files/${fileId}`, { folderId }),
      "deletes a file": (media, { fileId }) => media.rest("DELETE", `/files/${fileId}`),
      "creates a folder": (media, { folderId }) => media.rest("POST", "/folders", { name: "new", parentId: folderId }),
      "renames a folder": (media, { folderId }) => media.rest("PUT", `/folders/${folderId}`, { name: "renamed" }),
      "deletes a folder": (media, { folderId }) => media.rest("DELETE", `/folders/${folderId}`),
    };
  for (const [title, send] of Object.entries(CHANGES)) {
    it(`rejects a request that ${title} if another request removes the right at the same time`, async () => {
      const target = await folderWith([{ type: [...RIGHTS], allow: "all" }]);
      const { sent } = await service.db.transaction(async (manager) => {
        await lockApp(manager, service.appId);
        const sent = send(caller("live"), target);
        await untilLockWait(manager, sent);
        await rows(manager, "UPDATE media_folder SET access_rules = '[]' WHERE id = $1", [target.folderId]);
        return { sent };
      });
      expect((await sent).http).to.equal(403);
      expect((await editor.rest("GET", `?folderId=${target.folderId}`)).body.files).to.have.length(1);
    });
  }

  it("ends a signed link at its time, although its signature is right", async () => {
    const master = randomBytes(32);
    const ring = createKeyRing({ keys: [master], path: "" });
    const grants = { requireRight: () => undefined };
    const createdAt = new Date(Date.now() - 3_600_000);
    const file = { id: 2, createdAt, rules: [] };
    const links = new SignedMediaUrls({
      ring,
      mediaRights: { grantsFor: async () => grants },
      files: { findOrThrow: async () => file },
      baseUrl: "http://127.0.0.1",
    } as unknown as ConstructorParameters<typeof SignedMediaUrls>[0]);
    const { url, expiresAt } = await links.create({} as Parameters<SignedMediaUrls["create"]>[0], 1, 2, 60);
    const { searchParams } = new URL(url);
    const claim = { expires: searchParams.get("expires")!, signature: searchParams.get("signature")! };
    expect(links.isValid(1, file, claim)).to.equal(true);
    expect([links.isValid(1, { ...file, id: 3 }, claim), links.isValid(2, file, claim)]).to.deep.equal([false, false]);
    // After a restore from a backup, another file can get the same ID.
    expect(links.isValid(1, { id: 2, createdAt: new Date() }, claim)).to.equal(false);
    // Links of release 0.1 stay valid if they were certainly signed after the file was created.
    const key = Buffer.from(hkdfSync("sha256", master, "", "svc media link 1", 32));
    const oldSignature = createHmac("sha256", key).update(`1/2/${claim.expires}`).digest("base64url");
    const oldClaim = { ...claim, signature: oldSignature };
    expect(links.isValid(1, file, oldClaim)).to.equal(false);
    const weekBefore = Date.parse(expiresAt) - 7 * 86_400_000;
    expect(links.isValid(1, { id: 2, createdAt: new Date(weekBefore) }, oldClaim)).to.equal(false);
    expect(links.isValid(1, { id: 2, createdAt: new Date(weekBefore - 1) }, oldClaim)).to.equal(true);
    const now = Date.now;
    const held = [-1, 0].map((ms) => {
      Date.now = () => new Date(expiresAt).getTime() + ms;
      return links.isValid(1, file, claim);
    });
    Date.now = now;
    expect(held).to.deep.equal([true, false]);
  });

  it("lets a file be moved only to a folder where it may be created", async () => {
    const { fileId } = await folderWith([{ type: ["update"], allow: "all" }]);
    const closed = await folderWith([{ type: ["read"], allow: "all" }]);
    const move = (folderId: number | null) => caller("live").rest("PUT", `/files/${fileId}`, { folderId });
    expect((await move(closed.folderId)).http).to.equal(403);
    expect((await move(null)).http).to.equal(403);
    await editor.rest("PUT", `/folders/${closed.folderId}/accessRules`, [{ type: ["create"], allow: "all" }]);
    expect((await move(closed.folderId)).http).to.equal(200);
  });

  it("rejects invalid rules, each with its position", async () => {
    const { folderId } = await folderWith([]);
    const faults: [unknown, RegExp][] = [
      [[{ type: ["read"], allow: "everyone" }], /^accessRules\[0\]\.allow must be/],
      [[{ type: ["select"], allow: "all" }], /^accessRules\[0\]\.type must be/],
      [[{ type: [], allow: "all" }], /^accessRules\[0\]\.type must be/],
      [[{ type: ["read"], allow: "all", exclude: [] }], /^accessRules\[0\]\.exclude is not a known field/],
      [[{ type: ["read"], allow: { user: { a: { $ne: 1 } } } }], /^accessRules\[0\]\.allow\.user\.a\.\$ne is not/],
      [[{ type: ["read"], allow: { user: {} } }], /^accessRules\[0\]\.allow\.user must be/],
      [
        [{ type: ["read"], allow: { user: { a: { equals: [] } } } }],
        /^accessRules\[0\]\.allow\.user\.a\.equals must be/,
      ],
      [Array.from({ length: 51 }, () => ({ type: ["read"], allow: "all" })), /^accessRules must be null, or/],
      ["all", /^accessRules must be/],
    ];
    for (const [rules, message] of faults) {
      const { http, body } = await editor.rest("PUT", `/folders/${folderId}/accessRules`, { accessRules: rules });
      expect([http, body.status]).to.deep.equal([400, "REQUEST_INVALID"]);
      expect(body.error).to.match(message);
    }
  });

  describe("signed links", () => {
    let fileId: number;
    before(async () => {
      ({ fileId } = await folderWith([]));
    });
    const link = async (body: object = {}) => editor.rest("POST", `/files/${fileId}/link`, body);

    it("return one file's contents to everyone who has them, without a token in the URL", async () => {
      const before = Date.now();
      const { body } = await link();
      const after = Date.now();
      const secrets = [...tokens.values()].filter((token) => token !== null);
      expect(secrets.some((token) => body.url.includes(token))).to.equal(false);
      const answer = await fetch(body.url);
      expect([answer.status, await answer.text()]).to.deep.equal([200, "x"]);
      expect(answer.headers.get("cache-control")).to.equal("private, no-cache");
      expect(Date.parse(body.expiresAt)).to.be.within(before + 3_599_000, after + 3_600_000);
    });

    it("end at their time", async () => {
      const { url } = (await link({ expiresIn: 1 })).body;
      await until(async () => (await fetch(url)).status === 401);
    });

    it("are valid only for what was signed", async () => {
      const { url } = (await link({ expiresIn: 100 })).body;
      const other = await editor.upload("other", "y");
      const later = Number(new URL(url).searchParams.get("expires")) + 1;
      const forged = [
        url.replace(`/files/${fileId}/`, `/files/${other.id}/`),
        url.replace(/expires=\d+/, `expires=${later}`),
        url.replace(/signature=./, (text: string) => `signature=${text.endsWith("A") ? "B" : "A"}`),
        url.replace(/signature=.*/, "signature="),
        url.replace(/signature=.*/, `signature=${"A".repeat(43)}`),
        url.replace(`/apps/${service.appId}/`, "/apps/999/"),
        url.replace("/contents", ""),
      ];
      for (const address of forged) expect((await fetch(address)).status, address).to.equal(401);
      expect((await fetch(url, { method: "DELETE" })).status).to.be.greaterThan(400);
    });

    it("end with the file", async () => {
      const file = await editor.upload("short-lived", "x");
      const { url } = (await editor.rest("POST", `/files/${file.id}/link`)).body;
      expect((await fetch(url)).status).to.equal(200);
      await editor.rest("DELETE", `/files/${file.id}`);
      expect((await fetch(url)).status).to.equal(401);
    });

    it("are made by callers who may read, for a week at most", async () => {
      for (const expiresIn of [0, -1, 604_801, 1.5, "1h", {}]) {
        const { http, body } = await link({ expiresIn });
        expect([http, body.status]).to.deep.equal([400, "REQUEST_INVALID"]);
        expect(body.error).to.match(/^expiresIn must be/);
      }
      for (const who of CALLERS_WITH_RULES) {
        expect((await caller(who).rest("POST", `/files/${fileId}/link`)).http).to.equal(refused(who));
      }
    });
  });
});
