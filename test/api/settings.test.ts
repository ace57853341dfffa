/** Tests the settings endpoints over REST and GraphQL, and their audit entries. */
import { expect } from "chai";
import { startTestService, type TestService } from "../harness/service.js";
import { issueTaskToken } from "../harness/task-token.js";

describe("settings", () => {
  let service: TestService;
  let path: string;
  before(async () => {
    service = await startTestService({ ROLES: "api" });
    path = `/v1/apps/${service.appId}/settings`;
  });
  after(() => service.stop());

  const readAllSettings = async (): Promise<Record<string, unknown>> => (await service.rest("GET", path)).body;
  const configured = async (...keys: string[]): Promise<Record<string, boolean>> =>
    (await service.rest("GET", `${path}/status?keys=${encodeURIComponent(JSON.stringify(keys))}`)).body.configured;
  it("are returned unchanged in any form, with and without a slash at the end of the URL", async () => {
    const body = {
      nothing: null,
      empty: "",
      zero: 0,
      no: false,
      nested: { _inner: { __deeper: [1, "two", null] } },
      "schlüssel 🗝": "ünï",
      toString: "own",
      hasOwnProperty: 1,
      constructor_: 2,
      "a\u0000b": "\u0000",
      "lone\ud800": "\udfff",
      "back\\slash\\0": 'q"uote',
      _private: { deep: { _x: 1 } },
    };
    const set = await service.rest("POST", path, { body });
    expect(set.http).to.equal(200);
    expect(set.body).to.deep.equal(body);
    expect(set.headers.get("cache-control")).to.equal("no-store");
    expect(await readAllSettings()).to.deep.equal(body);
    expect((await service.rest("GET", `${path}/`)).body).to.deep.equal(body);
    const { data } = await service.graphql(`{ settings(appId: ${service.appId}) }`);
    expect(data.settings).to.deep.equal(body);
    const removed = await service.rest("DELETE", path, { body: { keys: Object.keys(body) } });
    expect(removed.http).to.equal(200);
    expect(removed.body).to.deep.equal({});
  });

  it("accept keys of 512 characters of any kind, and reject longer ones", async () => {
    const keys = ["🗝", "\ud800", "\u0000", "\\", "\u0001", "ÿ"].map((character) => character.repeat(512));
    // These 512 characters are all different, so that the key can hardly be compressed.
    keys.push(Array.from({ length: 512 }, (_, index) => String.fromCodePoint(0x1f300 + index)).join(""));
    keys.push(Array.from({ length: 512 }, (_, index) => `${String.fromCharCode(0xd800 + index)}`).join(""));
    for (const key of keys) {
      const set = await service.rest("POST", path, { body: { [key]: 1 } });
      expect(set.http, JSON.stringify(key).slice(0, 20)).to.equal(200);
      expect(await readAllSettings()).to.deep.equal({ [key]: 1 });
      expect((await service.rest("POST", path, { body: { [`${key}x`]: 1 } })).body.status).to.equal("SETTINGS_INVALID");
      await service.rest("DELETE", path, { body: { keys: [key] } });
    }
  });

  it("merge at the top level only: a value is replaced as a whole, other keys stay", async () => {
    await service.rest("POST", path, { body: { a: { x: 1, y: 2 }, b: 1 } });
    const { body } = await service.rest("POST", path, { body: { a: { x: 3 } } });
    expect(body).to.deep.equal({ a: { x: 3 }, b: 1 });
    await service.rest("DELETE", path, { body: { keys: ["a", "b", "unknown"] } });
    expect(await readAllSettings()).to.deep.equal({});
  });

  it("never return the value of a protected key, only that it is set, the time and the person", async () => {
    await service.rest("POST", path, { body: { __secret: "s", _key: "k", open: 1 } });
    for (const as of ["editor", "admin", "api", await issueTaskToken(service.db, service.appId)]) {
      const { http, body } = await service.rest("GET", path, { as });
      expect(http).to.equal(200);
      expect(body).to.deep.equal({ _key: "k", open: 1 });
    }
    const statusPath = `${path}/status?keys=["__secret","__other"]`;
    for (const as of ["editor", "admin", "api", await issueTaskToken(service.db, service.appId)]) {
      const { body } = await service.rest("GET", statusPath, { as });
      expect(body).to.deep.equal({ configured: { __secret: true, __other: false } });
    }
    const { body: status } = await service.rest("GET", `${statusPath}&details=true`);
    expect(status.configured).to.deep.equal({ __secret: true, __other: false });
    expect(status.details).to.have.keys("__secret");
    expect(new Date(status.details.__secret.updatedAt).getTime()).to.be.closeTo(Date.now(), 60_000);
    expect(status.details.__secret.updatedBy).to.be.a("number");
    for (const as of ["viewer", "live"]) {
      expect((await service.rest("GET", path, { as })).body.status).to.equal("FORBIDDEN");
    }
    await service.rest("DELETE", path, { body: { keys: ["__secret", "_key", "open"] } });
    expect(await configured("__secret")).to.deep.equal({ __secret: false });
  });

  it("reject a protected key from a task token, with the whole request", async () => {
    await service.rest("POST", path, { body: { __kept: 1 } });
    const as = await issueTaskToken(service.db, service.appId);
    const write = await service.rest("POST", path, { as, body: { fine: 1, __kept: 2 } });
    expect([write.http, write.body.status]).to.deep.equal([403, "FORBIDDEN"]);
    const removal = await service.rest("DELETE", path, { as, body: { keys: ["fine", "__kept"] } });
    expect(removal.http).to.equal(403);
    expect(await readAllSettings()).to.deep.equal({});
    expect(await configured("__kept")).to.deep.equal({ __kept: true });
    expect((await service.rest("POST", path, { as, body: { _own: 1 } })).http).to.equal(200);
    await service.rest("DELETE", path, { body: { keys: ["_own", "__kept"] } });
  });

  it("name the error of a rejected request, and write nothing of it", async () => {
    const tooMany = Object.fromEntries(Array.from({ length: 201 }, (_, index) => [`k${index}`, 1]));
    const deep = `{"a": ${"[".repeat(20_000)}${"]".repeat(20_000)}}`;
    const bodies = [null, [], '"text"', "1", '{"__proto__": 1}', '{"constructor": 1}', '{"": 1}', tooMany, deep];
    for (const body of [...bodies, '{"fine": 1, "a": 1e999}', '{"fine": {"b": [-1e999]}}']) {
      const { http, body: answer } = await service.rest("POST", path, { body: body === null ? "null" : body });
      expect([http, answer.status], JSON.stringify(body).slice(0, 40)).to.deep.equal([400, "SETTINGS_INVALID"]);
    }
    for (const body of [{}, { keys: "a" }, { keys: [1] }, { keys: [""] }, { keys: null }]) {
      const { body: answer } = await service.rest("DELETE", path, { body });
      expect(answer.status).to.equal("SETTINGS_INVALID");
    }
    expect((await service.rest("POST", path, { body: "{" })).body.status).to.equal("REQUEST_INVALID");
    expect(await readAllSettings()).to.deep.equal({});
  });

  it("lose no key with concurrent writers of different keys, or of writers and deleters of the same key", async () => {
    const keys = Array.from({ length: 20 }, (_, index) => `${index % 2 ? "_" : ""}w${index}`);
    await Promise.all(keys.map((key) => service.rest("POST", path, { body: { [key]: key } })));
    expect(await readAllSettings()).to.deep.equal(Object.fromEntries(keys.map((key) => [key, key])));
    const both = Array.from({ length: 40 }, (_, index) => {
      const some = index % 3 ? keys : keys.toReversed();
      return index % 2
        ? service.rest("DELETE", path, { body: { keys: some } })
        : service.rest("POST", path, { body: Object.fromEntries(some.map((key) => [key, index])) });
    });
    expect((await Promise.all(both)).map(({ http }) => http)).to.deep.equal(both.map(() => 200));
    await service.rest("DELETE", path, { body: { keys } });
  });

  it("are encrypted in the database, and can be decrypted neither under another key nor in another app", async () => {
    await service.rest("POST", path, { body: { _a: "CANARY-a", _b: "other", __c: "CANARY-c" } });
    const [dump] = await service.db.query(
      `SELECT (SELECT string_agg(setting::text, ' ') FROM setting) || (SELECT string_agg(encode(sealed, 'escape'), ' ') FROM setting)
              || (SELECT string_agg(audit_entry::text, ' ') FROM audit_entry) AS text`,
    );
    expect(dump.text).to.include("_a");
    expect(dump.text).not.to.include("CANARY");
    await service.db.query(
      "UPDATE setting SET sealed = (SELECT sealed FROM setting WHERE key = '_a') WHERE key = '_b'",
    );
    expect((await service.rest("GET", path)).body.status).to.equal("INTERNAL_ERROR");
    await service.rest("DELETE", path, { body: { keys: ["_b"] } }).catch(() => undefined);
    expect(await readAllSettings()).to.deep.equal({ _a: "CANARY-a" });
    await service.rest("DELETE", path, { body: { keys: ["_a", "__c"] } });
  });

  it("store secure fields of the AI builder under their own private key", async () => {
    const secure = `${path}/secure`;
    const { http, body } = await service.rest("POST", secure, { body: { settingKey: "my key/é.v-1", value: "x" } });
    expect([http, body]).to.deep.equal([200, { key: "_aiartifact_my_key__.v-1" }]);
    const { data } = await service.graphql(
      'mutation($v: JSON!) { setSecureField(appId: 1, settingKey: "k", value: $v) }',
      {
        v: { a: 1 },
      },
    );
    expect(data.setSecureField).to.equal("_aiartifact_k");
    expect(await readAllSettings()).to.deep.equal({ "_aiartifact_my_key__.v-1": "x", _aiartifact_k: { a: 1 } });
    for (const settingKey of [undefined, "", 1, null, "x".repeat(501)]) {
      const refused = await service.rest("POST", secure, { body: { settingKey, value: 1 } });
      expect(refused.body.status).to.equal("SETTINGS_INVALID");
      expect(refused.body.error).to.include("settingKey");
    }
    expect((await service.rest("POST", secure, { body: { settingKey: "a" } })).body.status).to.equal(
      "SETTINGS_INVALID",
    );
    await service.rest("DELETE", path, { body: { keys: ["_aiartifact_my_key__.v-1", "_aiartifact_k"] } });
  });

  it("have an audit log of who changed which keys, without values, for editors and admins", async () => {
    const auditPath = `/v1/apps/${service.appId}/audit`;
    await service.rest("POST", path, { body: { __t: "CANARY-t" } });
    await service.rest("DELETE", path, { as: "api", body: { keys: ["__t"] } });
    const { body } = await service.rest("GET", `${auditPath}?limit=2`);
    expect(body.entries.map(({ type, data }: { type: string; data: unknown }) => [type, data])).to.deep.equal([
      ["app.settings.delete", { keys: ["__t"] }],
      ["app.settings.update", { keys: ["__t"] }],
    ]);
    expect(body.entries[0].userId).to.equal(null);
    expect(body.entries[0].credentialId).to.be.a("number");
    expect(body.entries[1].userId).to.be.a("number");
    expect(body.pagination).to.deep.include({ hasMore: true });
    const { data } = await service.graphql(`{ audit(appId: ${service.appId}, limit: 1) { entries { type } } }`);
    expect(data.audit.entries).to.deep.equal([{ type: "app.settings.delete" }]);
    for (const as of ["api", "viewer", "live", await issueTaskToken(service.db, service.appId)]) {
      expect((await service.rest("GET", auditPath, { as })).http).to.equal(403);
    }
  });

  describe("and PUT of an app", () => {
    it("ignores settings and fields of administrators on /v1/apps, and answers 200", async () => {
      const body = { name: "Renamed", settings: { a: 1, __b: 2 }, isHidden: "ignored, no admin" };
      const { http, body: answer } = await service.rest("PUT", `/v1/apps/${service.appId}`, { body });
      expect(http).to.equal(200);
      expect(answer.app).to.include({ name: "Renamed", isHidden: false });
      expect(answer.app).not.to.have.property("settings");
      expect(answer.warnings.map(({ path: field }: { path: string }) => field)).to.deep.equal(["isHidden"]);
      expect(await readAllSettings()).to.deep.equal({});
      for (const unchanged of [{ settings: 1 }, { isHidden: false, isSystemTemplate: false }]) {
        const { http: status, body: saved } = await service.rest("PUT", `/v1/apps/${service.appId}`, {
          body: unchanged,
        });
        expect([status, saved.warnings]).to.deep.equal([200, undefined]);
      }
    });

    it("accepts the specified fields, and names a field with a wrong type", async () => {
      const fields = {
        name: "Shop",
        startingPageId: 3,
        hooks: { a: ["\u0000"] },
        isTemplate: true,
        dependencies: ["x"],
        icon: null,
      };
      const { body } = await service.rest("PUT", `/v1/apps/${service.appId}`, { body: fields });
      expect(body.app).to.deep.include(fields);
      const deep = JSON.parse(`${"[".repeat(600)}${"]".repeat(600)}`);
      const wrong = { name: 1, startingPageId: "3", hooks: deep, isTemplate: "yes", dependencies: 4, icon: {} };
      for (const [field, value] of Object.entries(wrong)) {
        const refused = await service.rest("PUT", `/v1/apps/${service.appId}`, { body: { [field]: value } });
        expect([refused.http, refused.body.status], field).to.deep.equal([400, "REQUEST_INVALID"]);
        expect(refused.body.error).to.include(field);
      }
      for (const field of ["isSystemTemplate", "isHidden"]) {
        const call = { as: "admin" as const, body: { [field]: true } };
        expect((await service.rest("PUT", `/v1/apps/${service.appId}`, call)).body.app[field]).to.equal(true);
      }
    });

    it("is for editors and admins: api, task and runtime tokens get 403", async () => {
      for (const as of ["api", "viewer", "live", await issueTaskToken(service.db, service.appId)]) {
        const { http, body } = await service.rest("PUT", `/v1/apps/${service.appId}`, { as, body: { name: "x" } });
        expect([http, body.status]).to.deep.equal([403, "FORBIDDEN"]);
      }
      const asEditor = await service.rest("PUT", `/v1/admin/apps/${service.appId}`, { body: { name: "x" } });
      expect(asEditor.http).to.equal(403);
    });

    it("writes unprotected settings for administrators, together with the fields or not at all", async () => {
      const admin = `/v1/admin/apps/${service.appId}`;
      await service.rest("POST", path, { body: { __kept: "old" } });
      const trail = async () => (await service.rest("GET", `/v1/apps/${service.appId}/audit`)).body.pagination.total;
      const entries = await trail();
      for (const body of [
        { name: "", settings: { a: 1 } },
        { name: "New", settings: { a: 1, "": 2 } },
        { name: "New", settings: [] },
      ]) {
        expect((await service.rest("PUT", admin, { as: "admin", body })).http).to.equal(400);
      }
      expect(await readAllSettings()).to.deep.equal({});
      expect(await trail()).to.equal(entries);
      const body = { name: "New", settings: { a: 1, _b: 2, __kept: "new", __proto: 3 } };
      const { http, body: answer } = await service.rest("PUT", admin, { as: "admin", body });
      expect([http, answer.app.name]).to.deep.equal([200, "New"]);
      expect(await readAllSettings()).to.deep.equal({ a: 1, _b: 2 });
      expect(await configured("__kept", "__proto")).to.deep.equal({ __kept: true, __proto: false });
      const ignored = `{"settings": {"__proto__": {"polluted": 1}}}`;
      expect((await service.rest("PUT", admin, { as: "admin", body: ignored })).http).to.equal(200);
      expect(await readAllSettings()).to.deep.equal({ a: 1, _b: 2 });
      await service.rest("DELETE", path, { body: { keys: ["a", "_b", "__kept"] } });
    });
  });
});
