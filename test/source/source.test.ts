/** Tests actions that the service builds from their files: saves, runs, publishes and restores them. */
import { expect } from "chai";
import { sampleOf } from "../harness/samples.js";
import type { TestService } from "../harness/service.js";
import { useSharedService } from "../harness/shared-service.js";
import { addFault, REAL_ACTIONS } from "./real-world.js";

const CODE = "async function execute() {\n  return 1;\n}";

describe("the source of actions", () => {
  let service: TestService;
  let actions: string;

  before(async () => {
    service = await useSharedService("api,runner");
    actions = `/v3/apps/${service.appId}/actions`;
  });
  after(() => service.stop());

  let names = 0;
  const save = (files: Record<string, string>, more: object = {}) => {
    names += 1;
    const source = { language: "action.js" in files ? "javascript" : "typescript", files };
    return service.rest("POST", actions, {
      body: { name: `source-${names}`, active: true, triggers: [{ trigger: "manual" }], source, ...more },
    });
  };
  const run = async (id: number, payload: object = { n: 3 }) =>
    (await service.rest("POST", `${actions}/${id}/runWithResult`, { body: payload })).body;

  for (const { title, files, dependencies = [], result } of sampleOf(REAL_ACTIONS, 0, 10)) {
    it(`runs: ${title}`, async () => {
      const { http, body } = await save(files, { dependencies });
      expect(http, body.error).to.equal(201);
      expect(body.action.source).to.deep.equal({ language: "typescript", files });
      const ran = await run(body.action.id);
      expect(ran.result, ran.error).to.deep.equal(result);
    });
  }

  it("is tested with 30 real-world actions and more", () => expect(REAL_ACTIONS.length).to.be.at.least(30));

  for (const action of sampleOf(REAL_ACTIONS, 1, 10)) {
    it(`names the author's file, line and column of an error in: ${action.title}`, async () => {
      const { files, place } = addFault(action);
      const { http, body } = await save(files, { dependencies: action.dependencies ?? [] });
      expect(http, body.error).to.equal(201);
      const { id } = body.action;
      expect((await run(id)).status).to.equal("EXECUTION_FAILED");
      const { logs } = (await service.rest("POST", `${actions}/logs`, { body: { id, limit: 1 } })).body;
      const [, first = ""] = logs[0].data.error.stack.split("\n");
      expect(first, logs[0].data.error.stack)
        .to.match(/^ {4}at /)
        .and.to.include(place);
    });
  }

  const refused = async (files: Record<string, string>, more: object = {}) => {
    const { http, body } = await save(files, more);
    expect(http, JSON.stringify(body)).to.equal(400);
    return `${body.status} ${body.error}`;
  };

  it("names file, line and column of an error, with an explanation", async () => {
    const entry = "export async function execute() {}";
    const faults: [Record<string, string>, string][] = [
      [
        { "action.ts": "export async function execute() {\n  return 1 +;\n}" },
        'action.ts, line 2, column 13: Unexpected ";"',
      ],
      [
        { "action.ts": 'import "./x";\nexport async function execute() {}', "x.ts": "const a = {;" },
        "x.ts, line 1, column 12",
      ],
      [
        { "action.ts": "const x = await fetch('x');\nexport async function execute() {}" },
        "action.ts, line 1, column 11: top-level await is not supported",
      ],
      [{ "action.ts": "export const run = 1;" }, "action.ts must declare or export the function execute"],
      [{ "action.js": "const x = 1;" }, "action.js must declare or export the function execute"],
      [
        {
          "action.ts": `import "./x/action";\n${entry}`,
          "x/action.ts": 'import { y } from "../y";\ny();',
          "y.ts": "export {};",
        },
        'x/action.ts, line 1, column 10: No matching export in "y.ts" for import "y"',
      ],
      [
        { "action.ts": `import { execute as x } from "./x/action";\nx();\n${entry}`, "x/action.js": "const y = 1;" },
        "x/action.js must declare or export the function execute",
      ],
      [
        { "action.ts": `import d from "dayjs";\nexport const execute = async () => d();` },
        'action.ts, line 1, column 15: "dayjs" is not in dependencies',
      ],
      [{ "action.ts": `import fs from "node:fs";\nexport const execute = async () => fs;` }, "is a module of Node"],
      [{ "action.ts": `import fs from "fs";\nexport const execute = async () => fs;` }, '"fs" is not in dependencies'],
      [{ "action.ts": `import "../../etc/passwd";\n${entry}` }, "is outside of the action's files"],
      [{ "action.ts": `import "/etc/passwd";\n${entry}` }, "must be a relative path or a package"],
      [{ "action.ts": `import "https://example.com/x.js";\n${entry}` }, "must be a relative path or a package"],
      [{ "action.ts": `import "file:///etc/passwd";\n${entry}` }, "must be a relative path or a package"],
      [{ "action.ts": `import "./none";\n${entry}` }, 'there is no file "none"'],
      [{ "action.ts": `import "./constructor";\n${entry}` }, 'there is no file "constructor"'],
    ];
    for (const [files, expected] of sampleOf(faults, 0, 3)) {
      expect(await refused(files))
        .to.include("CODE_VALIDATION_FAILED source: ")
        .and.to.include(expected);
    }
  });

  it("rejects unusual forms, unusual paths and large sources", async () => {
    const file = "async function execute() {}";
    const odd: unknown[] = [
      1,
      "x",
      [],
      {},
      { language: "typescript" },
      { language: "python", files: { "action.ts": file } },
      { language: "typescript", files: [] },
      { language: "typescript", files: {} },
      { language: "typescript", files: { "main.ts": file } },
      { language: "typescript", files: { "action.js": file } },
      { language: "typescript", files: { "action.ts": 1 } },
      { language: "typescript", files: { "action.ts": file }, entry: "x" },
      { language: "typescript", files: { "action.ts": `${file}\u0000` } },
      { language: "typescript", files: { "action.ts": file, "big.txt": "x".repeat(922_000) } },
      {
        language: "typescript",
        files: Object.fromEntries(Array.from({ length: 201 }, (_, n) => [n === 0 ? "action.ts" : `f${n}.ts`, ""])),
      },
      ...[
        "../x.ts",
        "/x.ts",
        "a//b.ts",
        "a/../b.ts",
        "./x.ts",
        "a\\b.ts",
        "a\u0000.ts",
        ".git/config",
        "node_modules/x/index.js",
        "x/",
        "",
        "__proto__",
        `${"a/".repeat(20)}x.ts`,
      ].map((path) => ({
        language: "typescript",
        files: JSON.parse(`{"action.ts": "", ${JSON.stringify(path)}: ""}`),
      })),
    ];
    for (const source of odd) {
      const { http, body } = await service.rest("POST", actions, { body: { name: "odd", source } });
      const shown = JSON.stringify(source).slice(0, 100);
      expect([400, 413], `${shown}: ${JSON.stringify(body).slice(0, 300)}`).to.include(http);
      if (http === 400) expect(body.error, shown).to.match(/^source/);
      if (shown.includes("a/a/a/")) expect(body.error).to.include("at most 255 characters and 16 segments");
    }
  });

  it("gives stacks and console lines in the author's files and lines", async () => {
    const files = {
      "action.ts":
        'import { fail } from "./lib/fail";\n\ninterface A { n: number }\n\nexport async function execute({ payload }: { payload: A }) {\n  console.log(new Error("here").stack);\n  return fail(payload.n);\n}\n',
      "lib/fail.ts":
        "enum Kind { A }\n\n// A comment.\nexport function fail(n: number): never {\n  throw new TypeError(`failed ${n} ${Kind.A}`);\n}\n",
    };
    const { id, name } = (await save(files)).body.action;
    const answer = await run(id);
    expect(answer.status).to.equal("EXECUTION_FAILED");
    const { logs } = (await service.rest("POST", `${actions}/logs`, { body: { id, limit: 1 } })).body;
    const { stack } = logs[0].data.error;
    expect(stack).to.match(
      /^TypeError: failed 3 0\n {4}at (?:Object\.)?fail \(lib\/fail\.ts:5:9\)\n {4}at (?:Object\.)?execute \(action\.ts:7:10\)/,
    );
    expect(stack).to.not.include(`${name}.js`);
    const { lines } = (await service.rest("GET", `/v3/apps/${service.appId}/runs/${answer.runId}/console`)).body;
    expect(lines[0].text).to.match(/at (?:Object\.)?execute \(action\.ts:6:15\)/);
  });

  it("runs in strict mode, as all ES modules do, unless a file is a CommonJS module", async () => {
    const action = `export async function execute() { return isStrict(); }`;
    const isStrict = "function isStrict() { return this === undefined; }";
    const modules = {
      "action.js": `import { isStrict } from "./lib/a.js";\n${action}`,
      "lib/a.js": `export ${isStrict}`,
    };
    expect((await run((await save(modules)).body.action.id)).result).to.equal(true);
    const leak = "export async function execute() {\n  undeclared = 1;\n}";
    const failed = await run((await save({ "action.js": leak })).body.action.id);
    expect(failed.error).to.include("undeclared is not defined");
    const mixed = {
      "action.js": `import "./lib/old.js";\n${isStrict}\n${action}`,
      "lib/old.js": "module.exports = 1;",
    };
    expect((await run((await save(mixed)).body.action.id)).result).to.equal(false);
  });

  it("builds the same code each time, and only from its source", async () => {
    const files = { "action.ts": "export async function execute() { return 1 as number; }" };
    const [first, second] = [await save(files, { code: "not read" }), await save(files)];
    expect(first.body.action.code).to.equal(second.body.action.code);
    expect(first.body.action.code).to.include("async function execute(context)");
    expect(JSON.stringify(first.body)).to.not.include('"map"');
  });

  it("is removed by code without source or by null, and built again by an update", async () => {
    const { id } = (await save({ "action.ts": "export async function execute() { return 1; }" })).body.action;
    const put = async (body: object) => (await service.rest("PUT", `${actions}/${id}`, { body })).body.action;
    expect((await put({ description: "kept" })).source.files).to.have.property("action.ts");
    const two = { language: "typescript", files: { "action.ts": "export const execute = async () => 2;" } };
    const whole = await put({ source: two });
    expect((await run(id)).result).to.equal(2);
    // A client may send a whole response back as a body.
    expect(await put(whole)).to.deep.include({ source: two, code: whole.code });
    expect(await put({ code: CODE })).to.not.have.property("source");
    expect((await run(id)).result).to.equal(1);
    await put({ source: two });
    const cleared = await put({ source: null });
    expect(cleared).to.not.have.property("source");
    expect(cleared.code).to.equal(whole.code);
    const refusal = await service.rest("PUT", `${actions}/${id}`, { body: { code: 'import x from "y";' } });
    expect(refusal.body.status).to.equal("CODE_VALIDATION_FAILED");
    expect(refusal.body.error).to.include("source");
  });

  it("is part of versions, publication, restore, comparison, export and the manifest", async () => {
    const files = { "action.ts": "export const execute = async () => { throw new Error('one'); };" };
    const { id, name } = (await save(files)).body.action;
    await service.rest("POST", `/v1/apps/${service.appId}/publish`);
    const published = await service.rest("POST", `${actions}/${id}/publish`);
    expect(published.body.action.source.files).to.deep.equal(files);
    await service.rest("PUT", `${actions}/${id}`, {
      body: { source: { language: "typescript", files: { "action.ts": "export const execute = async () => 2;" } } },
    });
    const { versions } = (await service.rest("GET", `${actions}/${id}/versions`)).body;
    const version = (await service.rest("GET", `${actions}/${id}/versions/${versions[1].id}`)).body;
    expect(version.version.data.source).to.deep.equal({ language: "typescript", files });
    const { diff } = (await service.rest("GET", `${actions}/${id}/diff`)).body;
    expect(diff.changes.map(({ field }: { field: string }) => field)).to.include("source");
    expect(JSON.stringify([version, diff])).to.not.include('"map"');
    await service.rest("POST", `${actions}/${id}/versions/${versions[1].id}/restore`);
    const failed = await run(id);
    const { logs } = (await service.rest("POST", `${actions}/logs`, { body: { id, limit: 1 } })).body;
    expect([failed.status, logs[0].data.error.stack]).to.deep.equal(["EXECUTION_FAILED", logs[0].data.error.stack]);
    expect(logs[0].data.error.stack).to.include("action.ts:1:44");
    for (const path of [`${actions}/export`, `/v1/apps/${service.appId}/manifest`]) {
      const found = (await service.rest("GET", path)).body.actions.find(
        (action: { name: string }) => action.name === name,
      );
      expect(found.source, path).to.deep.equal({ language: "typescript", files });
    }
  });

  it("is written and read over GraphQL", async () => {
    const files = {
      "action.js": 'import { x } from "./x.js";\nexport async function execute() { return x; }',
      "x.js": "export const x = 7;",
    };
    const mutation = `mutation ($app: Int!, $data: CreateActionInput!) {
      createAction(appId: $app, data: $data) { id source { language files } } }`;
    const data = {
      name: "by-graphql",
      active: true,
      triggers: [{ trigger: "manual" }],
      source: { language: "javascript", files },
    };
    const { data: made, errors } = await service.graphql(mutation, { app: service.appId, data });
    expect(errors).to.equal(undefined);
    expect(made.createAction.source).to.deep.equal({ language: "javascript", files });
    expect((await run(made.createAction.id)).result).to.equal(7);
  });
});
