import { expect } from "chai";
import { rows } from "../../src/data/database.js";
import type { TestService } from "../harness/service.js";
import { useSharedService } from "../harness/shared-service.js";

describe("promotions and manifests with secret bindings", () => {
  let service: TestService;
  before(async () => {
    service = await useSharedService("api");
  });
  after(() => service.stop());

  const appPath = (id: number) => `/v1/apps/${id}`;
  const newStage = async (name: string): Promise<number> =>
    (await service.rest("POST", `${appPath(service.appId)}/stages`, { body: { name } })).body.app.id;
  const promote = (to: number, fromAppId: number, query = "") =>
    service.rest("POST", `${appPath(to)}/promotions${query}`, { body: { fromAppId } });

  it("copy secret bindings without values, name missing values, and send no sealed value elsewhere", async () => {
    const [from, to] = [await newStage("bind-from"), await newStage("bind-to")];
    const bindings = (id: number) => `${appPath(id)}/secret-bindings`;
    const bind = (id: number, ...list: object[]) =>
      service.rest("PUT", bindings(id), { body: { bindings: list.map((binding) => ({ in: "header", ...binding })) } });
    const of = async (id: number) =>
      (await service.rest("GET", bindings(id))).body.bindings.map(
        (binding: { key: string; origin: string; sealed: boolean }) => [
          ...[binding.key, binding.origin, binding.sealed],
        ],
      );
    const [firstOrigin, secondOrigin] = ["https://one.example", "https://two.example"];
    const item = (origin: string) => ({ kind: "secretBinding", name: `__pay ${origin}` });
    await bind(from, { key: "__pay", origin: firstOrigin, sealed: true, value: "value-of-from" });
    const first = (await promote(to, from, "?plan=true")).body.plan;
    expect([first.created, first.missing]).to.deep.equal([
      [{ kind: "setting", name: "__pay" }, item(firstOrigin)],
      [item(firstOrigin)],
    ]);
    expect((await promote(to, from)).body.promotion.plan.missing).to.deep.equal([item(firstOrigin)]);
    expect(await of(to)).to.deep.equal([["__pay", firstOrigin, true]]);
    const stored = "SELECT FROM setting WHERE app_id = $1 AND key = '__pay'";
    expect(await rows(service.db, stored, [to])).to.deep.equal([]);
    await service.rest("POST", `${appPath(to)}/settings`, { body: { __pay: "value-of-to" } });
    expect((await promote(to, from, "?plan=true")).body.plan).not.to.have.property("missing");
    // The target stage has a value for `__pay`, sealed to one origin. The source stage's binding has another origin, or is not sealed.
    for (const sealed of [true, false]) {
      const changed = sealed ? { origin: secondOrigin } : { origin: firstOrigin };
      expect((await bind(from, { key: "__pay", ...changed, sealed, value: "value-of-from" })).http).to.equal(200);
      const { plan } = (await promote(to, from, "?plan=true")).body;
      expect(plan.missing, String(sealed)).to.deep.equal([item(changed.origin)]);
      const refused = await promote(to, from);
      expect([refused.http, refused.body.status], String(sealed)).to.deep.equal([403, "FORBIDDEN"]);
      expect(refused.body.error).to.match(/^the setting __pay is sealed, so its value must be sent again/);
      expect(await of(to)).to.deep.equal([["__pay", firstOrigin, true]]);
    }
    await bind(from, { key: "__pay", origin: secondOrigin, sealed: true, value: "value-of-from" });
    await bind(
      to,
      { key: "__pay", origin: firstOrigin, sealed: true, value: "value-of-to" },
      { key: "__pay", origin: secondOrigin, sealed: true },
    );
    expect((await promote(to, from)).http).to.equal(201);
    // The target keeps its own bindings.
    expect(await of(to)).to.deep.equal([
      ["__pay", firstOrigin, true],
      ["__pay", secondOrigin, true],
    ]);
    // A token that cannot write bindings can still write the other parts of a manifest.
    const body = { kind: "api", name: "ci", scopes: ["manage"] };
    const { token } = (await service.rest("POST", `${appPath(to)}/tokens`, { body })).body;
    const put = (secretBindings: object[]) =>
      service.rest("PUT", `${appPath(to)}/manifest`, { as: token, body: { version: 1, secretBindings } });
    const { secretBindings } = (await service.rest("GET", `${appPath(to)}/manifest`, { as: token })).body;
    expect((await put(secretBindings)).http).to.equal(200);
    expect((await put([{ ...secretBindings[0], origin: "https://three.example" }])).body.status).to.equal("FORBIDDEN");
  });

  it("keep the fields that a secret binding of a manifest omits, and unseal no key", async () => {
    const app = await newStage("omitted");
    const bindings = `${appPath(app)}/secret-bindings`;
    const put = (item: object) =>
      service.rest("PUT", `${appPath(app)}/manifest`, { body: { version: 1, secretBindings: [item] } });
    const read = async () => (await service.rest("GET", bindings)).body.bindings;
    const binding = { key: "__pay", origin: "https://one.example", in: "header" };
    const full = { ...binding, name: "X-Key", format: "Key {value}", sealed: true };
    expect((await service.rest("PUT", bindings, { body: { bindings: [full] } })).http).to.equal(200);
    const before = await read();
    expect(before[0]).to.deep.include(full);
    // In the first round, the binding has no value; in the second round, it has one.
    for (const value of [null, "value-of-pay"]) {
      if (value !== null) await service.rest("POST", `${appPath(app)}/settings`, { body: { __pay: value } });
      for (const origin of [binding.origin, "https://ONE.example:443/"]) {
        const same = await put({ ...binding, origin });
        expect([same.http, same.body.plan?.changed], `${value} ${origin}`).to.deep.equal([200, []]);
      }
      for (const unsealed of [
        { ...binding, sealed: false },
        { ...binding, in: "query", name: "key" },
      ]) {
        const refused = await put(unsealed);
        expect([refused.http, refused.body.status], `${value} ${unsealed.in}`).to.deep.equal([403, "FORBIDDEN"]);
      }
      expect(await read()).to.deep.equal(before);
    }
  });
});
