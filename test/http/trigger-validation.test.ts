import { expect } from "chai";
import type { TestService } from "../harness/service.js";
import { useSharedService } from "../harness/shared-service.js";
import { ECHO, makeAction, publishApp } from "./support.js";

const NONE = { type: "none" } as const;

describe("the validation of HTTP triggers", () => {
  let service: TestService;
  let actions: string;
  const create = (name: string, triggers: unknown[], more: object = {}) =>
    service.rest("POST", actions, { body: { name, code: ECHO, active: true, triggers, ...more } });

  before(async () => {
    service = await useSharedService("api");
    actions = `/v3/apps/${service.appId}/actions`;
    await publishApp(service);
  });
  after(() => service.stop());

  const http = (where: unknown) => [{ trigger: "http", where }];
  const FAULTS: [title: string, where: unknown, path: string][] = [
    ["no where", undefined, "where"],
    ["no path", { auth: NONE }, "where.path"],
    ["an empty path", { path: "", auth: NONE }, "where.path"],
    ["a slash at the start", { path: "/a", auth: NONE }, "where.path"],
    ["a slash at the end", { path: "a/", auth: NONE }, "where.path"],
    ["nine segments", { path: "a/b/c/d/e/f/g/h/i", auth: NONE }, "where.path"],
    ["draft first", { path: "draft/a", auth: NONE }, "where.path"],
    ["a repeated parameter", { path: ":a/:a", auth: NONE }, "where.path"],
    ["a space", { path: "a b", auth: NONE }, "where.path"],
    ["dots", { path: "a/..", auth: NONE }, "where.path"],
    ["a percent sign", { path: "a%2Fb", auth: NONE }, "where.path"],
    ["an unknown method", { path: "a", method: "TRACE", auth: NONE }, "where.method"],
    ["no auth", { path: "a" }, "where.auth"],
    ["an unknown kind of auth", { path: "a", auth: { type: "digest" } }, "where.auth.type"],
    ["basic without a setting", { path: "a", auth: { type: "basic" } }, "where.auth.setting"],
    ["a public setting", { path: "a", auth: { type: "basic", setting: "key" } }, "where.auth.setting"],
    ["a setting without use", { path: "a", auth: { type: "none", setting: "__key" } }, "where.auth.setting"],
    [
      "an unknown scheme",
      { path: "a", auth: { type: "signature", scheme: "md5", setting: "__k" } },
      "where.auth.scheme",
    ],
    [
      "hmac without a header",
      { path: "a", auth: { type: "signature", scheme: "hmac", setting: "__k" } },
      "where.auth.header",
    ],
    [
      "tolerance without a time",
      { path: "a", auth: { type: "signature", scheme: "github", setting: "__k", toleranceSeconds: 5 } },
      "where.auth.toleranceSeconds",
    ],
    [
      "a header for another scheme",
      { path: "a", auth: { type: "signature", scheme: "github", setting: "__k", header: "x" } },
      "where.auth.header",
    ],
    [
      "origins with a path",
      { path: "a", auth: NONE, cors: { origins: ["https://a.example/"] } },
      "where.cors.origins[0]",
    ],
    ["every origin", { path: "a", auth: NONE, cors: { origins: ["*"] } }, "where.cors.origins[0]"],
    ["an unknown way to respond", { path: "a", auth: NONE, respond: "later" }, "where.respond"],
    ["a faulty header", { path: "a", auth: NONE, idempotencyHeader: "a b" }, "where.idempotencyHeader"],
  ];
  it("names each error of a trigger by its path", async () => {
    for (const [title, where, path] of FAULTS) {
      const { http: code, body } = await create("faulty", http(where));
      expect([code, body.status], title).to.deep.equal([400, "TRIGGERS_INVALID"]);
      expect(body.error, title).to.include(`triggers[0].${path} `);
    }
    const unknown = await create("faulty", http({ path: "a", auth: NONE, metod: "GET" }));
    expect(unknown.body).to.include({ status: "REQUEST_INVALID" });
    expect(unknown.body.error).to.include("triggers[0].where.metod").and.to.include('"method"');
  });

  it("allows them only on server actions", async () => {
    for (const environment of ["client", "any"]) {
      const { body } = await create("elsewhere", http({ path: "elsewhere", auth: NONE }), { environment });
      expect(body.status, environment).to.equal("TRIGGER_NOT_ALLOWED");
    }
  });

  it("rejects two triggers with one pattern and method, with any names of parameters, before later errors", async () => {
    const twice = [...http({ path: "one/:a", auth: NONE }), ...http({ path: "one/:b", auth: NONE })];
    expect((await create("twice", twice)).body.status).to.equal("TRIGGERS_INVALID");
    await makeAction(service, { method: "POST", path: "clash/:a", auth: NONE });
    const clash = await create("clash", http({ method: "POST", path: "clash/:b", auth: NONE }));
    expect(clash.body.status).to.equal("TRIGGERS_INVALID");
    expect(clash.body.error)
      .to.include("triggers[0].where")
      .and.to.match(/hook-\d+ answers POST clash\/:b/);
    const later = await create("clash", http({ method: "POST", path: "clash/:b", auth: NONE }), {
      dependencies: ["svc-none"],
    });
    expect(later.body.status).to.equal("TRIGGERS_INVALID");
    for (const where of [
      { path: "clash/:a", auth: NONE },
      { method: "GET", path: "clash/:a", auth: NONE },
    ]) {
      expect((await create(`no-clash-${Object.keys(where).length}`, http(where))).http).to.equal(201);
    }
  });

  it("rejects one of two concurrent saves, and at publish a path that another live version has", async () => {
    for (let round = 0; round < 5; round += 1) {
      const where = { path: `race/${round}`, auth: NONE };
      const both = await Promise.all(["a", "b"].map((side) => create(`race-${round}-${side}`, http(where))));
      expect(both.map(({ body }) => body.status).sort()).to.deep.equal(["ACTION_CREATED", "TRIGGERS_INVALID"]);
    }
    const first = await makeAction(service, { path: "moved", auth: NONE });
    await service.rest("PUT", `${actions}/${first.id}`, { body: { triggers: [] } });
    const second = await makeAction(service, { path: "moved", auth: NONE }, { publish: false });
    const refused = await service.rest("POST", `${actions}/${second.id}/publish`);
    expect([refused.http, refused.body.status]).to.deep.equal([400, "TRIGGERS_INVALID"]);
    await service.rest("POST", `${actions}/${first.id}/publish`);
    expect((await service.rest("POST", `${actions}/${second.id}/publish`)).http).to.equal(200);
  });

  it("lets two actions swap their paths in one import, and keeps triggers in versions and exports", async () => {
    const of = (path: string) => http({ method: "PUT", path, auth: { type: "secret" }, respond: "immediately" });
    await create("swap-a", of("swap/a"));
    await create("swap-b", of("swap/b"));
    const { body: exported } = await service.rest("GET", `${actions}/export`);
    const [a, b] = ["swap-a", "swap-b"].map((name) =>
      exported.actions.find((action: { name: string }) => action.name === name),
    );
    expect(a.triggers).to.deep.equal(of("swap/a"));
    expect(JSON.stringify(exported)).to.not.match(/"endpoints"/);
    const document = {
      format: exported.format,
      actions: [
        { ...a, triggers: b.triggers },
        { ...b, triggers: a.triggers },
      ],
    };
    const swapped = await service.rest("POST", `${actions}/import`, { body: document });
    expect(swapped.http, JSON.stringify(swapped.body)).to.equal(200);
    const twice = { ...document, actions: [a, b, { ...b, name: "swap-c", triggers: a.triggers }] };
    const refused = await service.rest("POST", `${actions}/import`, { body: twice });
    expect(refused.body.faults[0]).to.include({ status: "TRIGGERS_INVALID", name: "swap-c" });
  });

  it("restores a version only while its path is free", async () => {
    const { id } = await makeAction(service, { path: "restored", auth: NONE }, { publish: false });
    const update = (path: string) =>
      service.rest("PUT", `${actions}/${id}`, { body: { triggers: http({ path, auth: NONE }) } });
    await update("restored-2");
    const { body } = await service.rest("GET", `${actions}/${id}/versions`);
    const oldest = body.versions.at(-1).id;
    const restore = () => service.rest("POST", `${actions}/${id}/versions/${oldest}/restore`);
    expect((await restore()).http).to.equal(200);
    await update("restored-2");
    await makeAction(service, { path: "restored", auth: NONE }, { publish: false });
    expect((await restore()).body.status).to.equal("RESTORE_FAILED");
  });

  it("is the same over GraphQL, with typed fields", async () => {
    const where = {
      method: "POST",
      path: "typed/:id",
      auth: { type: "signature", scheme: "hmac", setting: "__typed", header: "X-Signature", toleranceSeconds: null },
      cors: { origins: ["https://shop.example"] },
    };
    const made = await service.graphql(
      `mutation ($app: Int!, $data: CreateActionInput) { createAction(appId: $app, data: $data) {
        triggers { trigger where { type method path auth { type scheme setting header algorithm } cors { origins } respond } }
        endpoints { method url draftUrl } } }`,
      { app: service.appId, data: { name: "typed", code: ECHO, triggers: [{ trigger: "http", where }] } },
    );
    expect(made.errors).to.equal(undefined);
    const [trigger] = made.data.createAction.triggers;
    expect(trigger.where).to.deep.equal({
      ...where,
      type: null,
      respond: null,
      auth: { type: "signature", scheme: "hmac", setting: "__typed", header: "X-Signature", algorithm: null },
    });
    const base = `${service.url}/h/${service.appId}`;
    expect(made.data.createAction.endpoints).to.deep.equal([
      { method: "POST", url: `${base}/typed/:id`, draftUrl: `${base}/draft/typed/:id` },
    ]);
  });
});
