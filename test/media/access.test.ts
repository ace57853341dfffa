import { expect } from "chai";
import { DATABASE_POOL_CONNECTIONS, rows } from "../../src/data/database.js";
import type { MediaFile } from "../../src/data/media-types.js";
import { hashToken } from "../../src/operations/access/tokens.js";
import type { MediaRight } from "../../src/rules/media-access.js";
import { countLockWaits, untilLockWait } from "../harness/lock-waits.js";
import { startTestService, type TestService } from "../harness/service.js";
import { until } from "../harness/until.js";
import {
  CALLERS_WITH_RULES,
  createFolderWithRules,
  issueMediaTokens,
  type Media,
  type MediaCaller,
  type MediaTokens,
  mediaOf,
  refusalStatusOf,
} from "./support.js";

const LOCK_APP = "SELECT FROM app WHERE id = $1 FOR NO KEY UPDATE";

/** Functions that each send a request for one permission on media, and return its HTTP status. */
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
  let tokens: MediaTokens;
  let email: string;

  before(async () => {
    service = await startTestService({ ROLES: "api", ALLOW_PRIVATE_NETWORK: "1" });
    editor = mediaOf(service);
    tokens = await issueMediaTokens(service);
    const [person] = await rows<{ email: string }>(
      service.db,
      "SELECT email FROM person JOIN credential ON person_id = person.id WHERE hash = $1",
      [hashToken(service.tokens.live)],
    );
    email = person!.email;
  });
  after(() => service.stop());

  const caller = (who: MediaCaller) => mediaOf(service, tokens.get(who) ?? null);
  const TRUSTED_CALLERS: readonly MediaCaller[] = ["editor", "admin", "api", "task"];

  const folderWith = (rules: unknown) => createFolderWithRules(editor, rules);

  const FORMS: Record<string, { rule: (right: MediaRight) => object[] | null; granted: readonly MediaCaller[] }> = {
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
    "a column that no user has": {
      rule: (right) => [{ type: [right], allow: { user: { Role: { notequals: "guest" } } } }],
      granted: [],
    },
    "a rule that is switched off": { rule: (right) => [{ type: [right], allow: "all", enabled: false }], granted: [] },
    "the other rights": {
      rule: (right) => [{ type: RIGHTS.filter((candidate) => candidate !== right), allow: "all" }],
      granted: [],
    },
  };

  for (const [form, { rule, granted }] of Object.entries(FORMS)) {
    it(`grants each right by ${form} to ${granted.join(", ") || "no token"}`, async () => {
      for (const right of RIGHTS) {
        const place = await folderWith(rule(right));
        for (const who of CALLERS_WITH_RULES) {
          const fileId =
            right === "delete"
              ? (await editor.upload("d", "x", { folderId: String(place.folderId) })).id
              : place.fileId;
          const http = await CALLS[right](caller(who), { ...place, fileId });
          const expected = granted.includes(who) ? (right === "create" ? 201 : 200) : refusalStatusOf(who);
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
    const visitor = caller("unnamed live");
    expect((await visitor.contents(fileId)).status, "not signed in").to.equal(403);
    const as = tokens.get("unnamed live")!;
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
    const withoutToken = caller("no token");
    expect((await withoutToken.contents(file.id)).status, "the outer folder's").to.equal(200);
    await editor.rest("PUT", `/folders/${inner}/accessRules`, []);
    expect((await withoutToken.contents(file.id)).status, "the inner folder's").to.equal(401);
    await editor.rest("PUT", `/files/${file.id}/accessRules`, { accessRules: [{ type: ["read"], allow: "all" }] });
    expect((await withoutToken.contents(file.id)).status, "its own").to.equal(200);
    expect((await editor.rest("GET", `/files/${file.id}/accessRules`)).body).to.deep.equal({
      accessRules: [{ type: ["read"], allow: "all" }],
    });
    await editor.rest("PUT", `/files/${file.id}/accessRules`, { accessRules: null });
    expect((await withoutToken.contents(file.id)).status, "none of its own").to.equal(401);
  });

  it("rejects a move that gives a right that the file or folder did not grant before", async () => {
    const source = await folderWith([{ type: ["update", "create"], allow: "all" }]);
    const target = await folderWith([{ type: ["create", "read", "delete"], allow: "all" }]);
    const alike = await folderWith([{ type: ["create", "update"], allow: "all" }]);
    const inner = await editor.folder("inner", source.folderId);
    for (const who of CALLERS_WITH_RULES) {
      const { rest } = caller(who);
      const move = async (path: string, body: object) => (await rest("PUT", path, body)).http;
      expect(await move(`/files/${source.fileId}`, { folderId: target.folderId }), who).to.equal(refusalStatusOf(who));
      expect(await move(`/folders/${inner}`, { parentId: target.folderId }), who).to.equal(refusalStatusOf(who));
      expect(await move(`/files/${source.fileId}`, { folderId: alike.folderId }), who).to.equal(200);
      expect(await move(`/files/${source.fileId}`, { folderId: source.folderId }), who).to.equal(200);
    }
    await editor.rest("PUT", `/files/${source.fileId}/accessRules`, [{ type: ["update"], allow: "all" }]);
    const moved = await caller("no token").rest("PUT", `/files/${source.fileId}`, { folderId: target.folderId });
    expect(moved.http, "its own rules go along").to.equal(200);
    expect((await caller("no token").contents(source.fileId)).status).to.equal(401);
  });

  it("lists what may be read, without revealing the number of others", async () => {
    const { folderId, fileId } = await folderWith([{ type: ["read"], allow: "all" }]);
    const hidden = await editor.upload("hidden", "x", { folderId: String(folderId) });
    await editor.rest("PUT", `/files/${hidden.id}/accessRules`, []);
    const { body } = await caller("no token").rest("GET", `?folderId=${folderId}`);
    expect(body.files.map(({ id }: { id: number }) => id)).to.deep.equal([fileId]);
    expect(body.pagination).to.deep.equal({ total: 1, hasMore: false });
    const search = (await caller("no token").rest("GET", "?name=hidden")).body;
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
      expect(answers[0]!.http).to.equal(refusalStatusOf(who));
    }
  });

  it("lets pages and app users neither read nor write rules", async () => {
    const { folderId, fileId } = await folderWith([{ type: [...RIGHTS], allow: "all" }]);
    for (const who of CALLERS_WITH_RULES) {
      for (const path of [`/files/${fileId}/accessRules`, `/folders/${folderId}/accessRules`]) {
        expect((await caller(who).rest("GET", path)).http).to.equal(refusalStatusOf(who));
        expect((await caller(who).rest("PUT", path, [])).http).to.equal(refusalStatusOf(who));
      }
    }
  });

  it("changes rules if If-Match has the current state, also with as many waiting requests as connections", async () => {
    const { folderId, fileId } = await folderWith([]);
    for (const path of [`/folders/${folderId}/accessRules`, `/files/${fileId}/accessRules`]) {
      const tag = (await editor.rest("GET", path)).headers.get("etag")!;
      const put = () =>
        service.rest("PUT", editor.root + path, { body: { accessRules: [] }, headers: { "if-match": tag } });
      const answers = await service.db.transaction(async (manager) => {
        await rows(manager, LOCK_APP, [service.appId]);
        const sent = Array.from({ length: DATABASE_POOL_CONNECTIONS }, put);
        await until(async () => (await countLockWaits(manager)) > 1);
        return sent;
      });
      const statuses = (await Promise.all(answers)).map(({ http }) => http).sort();
      expect(statuses).to.deep.equal([200, ...Array.from({ length: DATABASE_POOL_CONNECTIONS - 1 }, () => 409)]);
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
      await rows(manager, LOCK_APP, [service.appId]);
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
        await rows(manager, LOCK_APP, [service.appId]);
        const sent = send(caller("live"), target);
        await untilLockWait(manager, sent);
        await rows(manager, "UPDATE media_folder SET access_rules = '[]' WHERE id = $1", [target.folderId]);
        return { sent };
      });
      expect((await sent).http).to.equal(403);
      expect((await editor.rest("GET", `?folderId=${target.folderId}`)).body.files).to.have.length(1);
    });
  }

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
      [[{ type: ["select"], allow: "all" }], /^accessRules\[0\]\.type\[0\] must be/],
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
});
