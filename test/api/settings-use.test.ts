/**
 * Tests data about settings that editors can read: the used space, the actions that read a setting, and the people who can edit the app.
 */
import { expect } from "chai";
import type { TestService } from "../harness/service.js";
import { useSharedService } from "../harness/shared-service.js";

describe("the use of settings", () => {
  let service: TestService;
  let path: string;

  before(async () => {
    service = await useSharedService("api");
    path = `/v1/apps/${service.appId}/settings`;
    for (const [name, read] of [
      ["by-property", "settings.__key"],
      ["by-index", 'settings["__key"]'],
      ["longer", "settings.__key2 + settings.x__key"],
      ["dotted", 'settings["_a.b"]'],
      ["not-dotted", "settings._axb"],
    ]) {
      const body = {
        name,
        code: `async function execute({ settings }) { return ${read}; }`,
        active: true,
        triggers: [],
      };
      await service.rest("POST", `/v3/apps/${service.appId}/actions`, { body });
    }
  });
  after(() => service.stop());

  const use = async (key?: string) =>
    (await service.rest("GET", `${path}/use${key === undefined ? "" : `?key=${encodeURIComponent(key)}`}`)).body;
  const readers = async (key: string) => (await use(key)).readers.map(({ name }: { name: string }) => name);

  it("returns the bytes that server actions receive, with protected settings and without public ones", async () => {
    expect(await use()).to.deep.equal({ underscoreBytes: 2, underscoreMaxBytes: 102_400, readers: [] });
    await service.rest("POST", path, { body: { open: "x".repeat(500), _a: "é", __b: [1] } });
    expect((await use()).underscoreBytes).to.equal(Buffer.byteLength('{"_a":"é","__b":[1]}'));
  });

  it("does not count settings that no code receives: sealed ones and the one of the AI provider", async () => {
    await service.rest("POST", path, { body: { __ai: { provider: "openai", key: "an AI key" } } });
    const binding = {
      key: "__sealed",
      origin: "https://a.example",
      in: "header",
      sealed: true,
      value: "a sealed value",
    };
    const bound = await service.rest("PUT", `/v1/apps/${service.appId}/secret-bindings`, {
      body: { bindings: [binding] },
    });
    expect(bound.http).to.equal(200);
    expect((await use()).underscoreBytes).to.equal(Buffer.byteLength('{"_a":"é","__b":[1]}'));
  });

  it("lists the actions whose code has the key as a whole word", async () => {
    expect(await readers("__key")).to.deep.equal(["by-index", "by-property"]);
    expect(await readers("_a.b")).to.deep.equal(["dotted"]);
    expect(await readers("none")).to.deep.equal([]);
  });

  it("reads every key as text, also one with special characters of regular expressions or the database", async () => {
    for (const key of ["(", "[", "\\", ".*", "a{2", "$", "^", "|", "é", "\u0000", "%_", "\\y"]) {
      expect(await use(key), JSON.stringify(key))
        .to.have.property("readers")
        .that.is.an("array");
      if (!/^[\w$]/.test(key)) expect(await readers(key), JSON.stringify(key)).not.to.include("by-property");
    }
    const { body, http } = await service.rest("GET", `${path}/use?key=${"x".repeat(600)}`);
    expect([http, body.status]).to.deep.equal([400, "SETTINGS_INVALID"]);
  });

  it("is only for authors of the app, and so is the list of its editors", async () => {
    for (const as of ["api", "viewer", "live"] as const) {
      for (const route of [`${path}/use?key=a`, `/v1/apps/${service.appId}/editors`]) {
        expect((await service.rest("GET", route, { as })).body.status, `${as} ${route}`).to.equal("FORBIDDEN");
      }
    }
    const { editors } = (await service.rest("GET", `/v1/apps/${service.appId}/editors`)).body;
    expect(editors).to.have.length(1);
    expect(editors[0]).to.have.keys("id", "organizationId", "firstName", "lastName", "email", "updatedAt");
  });
});
