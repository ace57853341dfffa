import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { buildSchema, getNamedType, isObjectType } from "graphql";
import { startTestService, type TestService } from "../harness/service.js";
import { WHOLE_MANIFEST, WHOLE_PLAN } from "../manifest/samples.js";

const SCHEMA = fileURLToPath(new URL("../../../schema/schema.graphql", import.meta.url));
const CODE = "async function execute(context) { console.log('said'); return { sum: context.payload.a + 1 }; }";
const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

const types = buildSchema(readFileSync(SCHEMA, "utf8"));

function selectionOf(name: string): string {
  const type = types.getType(name);
  if (!isObjectType(type)) return "";
  const fields = Object.values(type.getFields()).filter(({ deprecationReason }) => !deprecationReason);
  return `{ ${fields.map((field) => `${field.name} ${selectionOf(getNamedType(field.type).name)}`).join(" ")} }`;
}

// biome-ignore lint/suspicious/noExplicitAny: a document has no static type
const withoutNulls = (value: unknown): any =>
  JSON.parse(JSON.stringify(value, (_, item: unknown) => (item === null ? undefined : item)));

describe("GraphQL's types", () => {
  let service: TestService;
  let id: number;

  async function ask(query: string, variables: object = {}) {
    const { data, errors } = await service.graphql(query, variables);
    expect(errors, JSON.stringify(errors)).to.equal(undefined);
    return data;
  }
  const rest = async (path: string, body?: object) =>
    (await service.rest(body ? "POST" : "GET", `/v3/apps/1/actions${path}`, { body })).body;

  before(async () => {
    service = await startTestService({ ROLES: "api,runner", RUNNER_CONCURRENCY: "1" });
    const { createAction } = await ask(
      `mutation ($code: String) { createAction(appId: 1, data: {
         name: "typed", code: $code, active: true, environment: any, description: "said", frequency: "0 5 * * *"
         triggers: [{ trigger: manual }, { trigger: schedule }, { trigger: log, where: { type: "app.view" } },
           { trigger: analytics, where: { type: "analytics.event", data: { _pageId: 1, a: null } } }] }) { id } }`,
      { code: CODE },
    );
    id = createAction.id;
  });
  after(() => service.stop());

  const action = async () => (await rest(`/${id}`)).action;

  it("accept enums as words in a document and as strings in variables", async () => {
    const { triggers, environment } = await action();
    expect(environment).to.equal("any");
    expect(triggers).to.deep.equal([
      { trigger: "manual" },
      { trigger: "schedule" },
      { trigger: "log", where: { type: "app.view" } },
      { trigger: "analytics", where: { type: "analytics.event", data: { _pageId: 1, a: null } } },
    ]);
    const update =
      "mutation ($data: UpdateActionInput!) { updateAction(appId: 1, id: 1, data: $data) { triggers { trigger } } }";
    const data = { environment: "any", triggers };
    expect((await ask(update, { data })).updateAction.triggers[3]).to.deep.equal({ trigger: "analytics" });
    expect((await action()).triggers).to.deep.equal(triggers);
  });

  it("distinguish omitted from null: an omitted field stays, null clears it", async () => {
    const before = await action();
    const update = async (data: string) => ask(`mutation { updateAction(appId: 1, id: ${id}, data: ${data}) { id } }`);
    await update("{}");
    expect({ ...(await action()), updatedAt: null }).to.deep.equal({ ...before, updatedAt: null });
    await update("{ active: false }");
    expect(await action()).to.include({ description: "said", frequency: "0 5 * * *", active: false });
    await update("{ description: null, active: true }");
    expect(await action()).to.include({ description: null, frequency: "0 5 * * *", active: true });
    await update(`{ description: "said" }`);
  });

  it("return times in the same form as REST", async () => {
    const fields = "createdAt updatedAt lastRunAt";
    const { createdAt, updatedAt, lastRunAt } = await action();
    const answer = await ask(`{ action(appId: 1, id: ${id}) { ${fields} } }`);
    expect(answer.action).to.deep.equal({ createdAt, updatedAt, lastRunAt });
    expect(createdAt).to.match(ISO);
  });

  it("have a field for each part of a log entry, equal to that in `data`", async () => {
    await rest(`/${id}/runWithResult`, { a: 1 });
    const parts = "mode runOn taskId payload duration actionVersion result";
    const document = `query ($options: ActionLogsInput) { actionLogs(appId: 1, options: $options) {
      count logs { id type createdAt data ${parts} replayOf error { name message stack } } } }`;
    const options = { id, where: { type: "app.task.completed", data: { taskId: id } }, limit: 1, offset: 0 };
    const { actionLogs } = await ask(document, { options });
    const [{ data, error, replayOf, id: logId, type, createdAt, ...entry }] = actionLogs.logs;
    expect(entry).to.deep.equal(data);
    expect(data).to.deep.include({
      mode: "on-demand",
      taskId: id,
      payload: { a: 1 },
      result: { data: { sum: 2 }, success: true },
    });
    expect([error, replayOf]).to.deep.equal([null, null]);
    const { logs } = await rest("/logs", options);
    expect(logs[0]).to.deep.equal({ id: logId, type, createdAt, data });
  });

  it("return the error of a failed run as an object", async () => {
    const failing = {
      name: "failing",
      code: "async function execute() { null.x; }",
      active: true,
      triggers: [{ trigger: "manual" }],
    };
    const { action: made } = await rest("", failing);
    await rest(`/${made.id}/runWithResult`, {});
    const { actionLogs } = await ask(
      `{ actionLogs(appId: 1, options: { id: ${made.id} }) { logs { error { name message } result } } }`,
    );
    const [{ error, result }] = actionLogs.logs;
    expect(error.name).to.equal("TypeError");
    expect(result).to.deep.include({ success: false, errorObject: {} });
  });

  it("accept what they returned: an export can be imported unchanged", async () => {
    const { exportActions } = await ask(`{ exportActions(appId: 1) { format actions {
      name code description active environment triggers { trigger where { type dataSourceId data } }
      dependencies frequency timezone } } }`);
    const { importActions } = await ask(
      `mutation ($document: ImportDocumentInput) { importActions(appId: 1, document: $document) {
         created updated { name fields } unchanged faults { index } } }`,
      { document: exportActions },
    );
    const unchanged = exportActions.actions.map(({ name }: { name: string }) => name);
    expect(importActions).to.deep.equal({ created: [], updated: [], unchanged, faults: [] });
  });

  it("return for each setting whether it is set, and never its value", async () => {
    await ask('mutation { setSettings(appId: 1, settings: { __typedKey: "a-long-enough-secret" }) }');
    const { settingsStatus } = await ask(
      '{ settingsStatus(appId: 1, keys: ["__typedKey", "__none"]) { key configured updatedAt updatedBy } }',
    );
    expect(
      settingsStatus.map(({ key, configured }: { key: string; configured: boolean }) => [key, configured]),
    ).to.deep.equal([
      ["__typedKey", true],
      ["__none", false],
    ]);
    expect(settingsStatus[0].updatedAt).to.match(ISO);
    expect(settingsStatus[1].updatedAt).to.equal(null);
    await ask('mutation { deleteSettings(appId: 1, keys: ["__typedKey"]) }');
  });

  it("return what an app stores for others unchanged, also in its versions", async () => {
    const hooks = [{ run: ["a", null, 1.5] }];
    const { updateApp } = await ask(
      "mutation ($data: UpdateAppInput!) { updateApp(appId: 1, data: $data) { hooks dependencies startingPageId } }",
      { data: { hooks, startingPageId: 3_000_000_000 } },
    );
    expect(updateApp).to.deep.equal({ hooks, dependencies: null, startingPageId: 3_000_000_000 });
    const { createAppVersion } = await ask("mutation { createAppVersion(appId: 1) { id user { email } } }");
    const { appVersion } = await ask(
      `{ appVersion(appId: 1, versionId: ${createAppVersion.id}) { action data { name hooks isTemplate } settings } }`,
    );
    expect(appVersion).to.deep.include({ action: "create", settings: {} });
    expect(appVersion.data).to.deep.include({ hooks, isTemplate: false });
  });

  it("name the kinds of tokens, and have no kind that is missing in the enum", async () => {
    const { createToken } = await ask(
      'mutation { createToken(appId: 1, data: { kind: api, name: "typed" }) { id token } }',
    );
    expect(createToken.token).to.match(/^svc_api_/);
    const { errors } = await service.graphql("mutation { createToken(appId: 1, data: {}) { id } }");
    expect(errors![0].extensions.status).to.equal("REQUEST_INVALID");
  });

  /** Fields that return a page of items. In `args`, PAGE stands for the paging arguments. `earlier` is an earlier name of `items`. */
  const PAGES: Record<string, [args: string, earlier: string]> = {
    actions: ["appId: 1, PAGE", "actions"],
    actionLogs: ["appId: 1, options: { PAGE }", "logs"],
    actionVersions: ["appId: 1, actionId: 1, PAGE", "versions"],
    appVersions: ["appId: 1, PAGE", "versions"],
    audit: ["appId: 1, PAGE", "entries"],
    dataSourceEntries: ["appId: 1, dataSourceId: 1, query: { PAGE }", "entries"],
    mediaFolder: ["appId: 1, PAGE", "files"],
    messages: ["appId: 1, PAGE", "messages"],
    notifications: ["appId: 1, PAGE", "entries"],
    organizationAudit: ["organizationId: 1, PAGE", "entries"],
    runs: ["appId: 1, PAGE", "runs"],
  };
  const CURSOR_FIELDS = ["actionLogs", "audit", "organizationAudit", "runs"];

  describe("of pages", () => {
    before(async () => {
      const entries = [{ n: 1 }, { n: 2 }, { n: 3 }];
      await ask("mutation ($data: CreateDataSourceInput) { createDataSource(appId: 1, data: $data) { id } }", {
        data: { name: "paged", entries },
      });
      for (const name of ["one", "two"]) {
        await rest("", { name: `paged ${name}`, code: CODE });
        await rest(`/${id}/runWithResult`, { a: 1 });
        await ask(`mutation { updateAction(appId: 1, id: ${id}, data: { description: "${name}" }) { id } }`);
        await ask(`mutation { createNotification(appId: 1, notification: { data: { title: "${name}" } }) { id } }`);
        await ask("mutation { createAppVersion(appId: 1) { id } }");
        const options = { to: [{ email: "ann@example.com" }], subject: name, text: name };
        await ask("mutation ($options: EmailInput) { sendEmail(appId: 1, options: $options) { id } }", { options });
        const form = new FormData();
        form.append("file", new Blob(["text"]), `${name}.txt`);
        const headers = { "auth-token": service.tokens.editor };
        await fetch(`${service.url}/v1/apps/1/media/files`, { method: "POST", headers, body: form });
        const invitation = { email: `${name}@example.com`, role: "reader" };
        const as = { as: "admin" as const };
        await service.rest("POST", "/v1/organizations/1/invitations", { body: invitation, ...as });
      }
    });

    it("all have samples", () => {
      const fields = Object.values(types.getQueryType()!.getFields());
      const pages = fields.filter(({ type }) => {
        const named = getNamedType(type);
        return isObjectType(named) && named.getInterfaces().some(({ name }) => name === "Page");
      });
      expect(Object.keys(PAGES).sort()).to.deep.equal(pages.map(({ name }) => name).sort());
    });

    for (const [name, [args, earlier]] of Object.entries(PAGES)) {
      it(`return all of ${name} page by page, also under the earlier field name`, async () => {
        const read = async (position: string) => {
          const selection = `items { id } earlier: ${earlier} { id } total totalIsExact hasMore nextCursor`;
          const document = `{ page: ${name}(${args.replace("PAGE", position)}) { ${selection} } }`;
          const { data, errors } = await service.graphql(document, {}, { as: "admin" });
          expect(errors).to.equal(undefined);
          expect(data.page.items).to.deep.equal(data.page.earlier);
          return data.page;
        };
        const whole = await read("limit: 100");
        expect(whole.items.length).to.be.above(1);
        expect([whole.hasMore, whole.nextCursor]).to.deep.equal([false, null]);
        if (name !== "organizationAudit") {
          expect([whole.total, whole.totalIsExact]).to.deep.equal([whole.items.length, true]);
        } else expect([whole.total, whole.totalIsExact]).to.deep.equal([null, false]);

        const found: object[] = [];
        let position = "offset: 0, limit: 1";
        if (name === "organizationAudit") position = "limit: 1";
        for (;;) {
          const page = await read(position);
          expect(page.items.length).to.be.at.most(1);
          found.push(...page.items);
          expect(page.nextCursor !== null).to.equal(CURSOR_FIELDS.includes(name) && page.hasMore);
          if (!page.hasMore) break;
          const next = page.nextCursor === null ? `offset: ${found.length}` : `cursor: "${page.nextCursor}"`;
          position = `${next}, limit: 1`;
        }
        expect(found).to.deep.equal(whole.items);
      });
    }

    it("of entries also accept a cursor", async () => {
      const read = async (cursor: string) => {
        const query = `appId: 1, dataSourceId: 1, query: { cursor: "${cursor}", limit: 2 }`;
        return (await ask(`{ dataSourceEntries(${query}) { items { id } hasMore nextCursor total } }`))
          .dataSourceEntries;
      };
      const first = await read("first");
      expect([first.items.length, first.hasMore, first.total]).to.deep.equal([2, true, null]);
      const second = await read(first.nextCursor);
      expect([second.items.length, second.hasMore, second.nextCursor]).to.deep.equal([1, false, null]);
    });
  });

  it("accept the time of a scheduled notification as a DateTime, and as text in the earlier field", async () => {
    const create = async (time: string) => {
      const notification = `{ status: scheduled, data: { title: "a" }, ${time} }`;
      return service.graphql(`mutation { createNotification(appId: 1, notification: ${notification}) { id orderAt } }`);
    };
    const at = "2040-01-02T03:04:05.000Z";
    for (const time of [`publishAt: "${at}"`, `orderAt: "${at}"`]) {
      expect((await create(time)).data.createNotification.orderAt).to.equal(at);
    }
    for (const time of ['publishAt: "tomorrow"', `publishAt: "${at}", orderAt: "${at}"`]) {
      expect((await create(time)).errors![0].extensions.status, time).to.equal("REQUEST_INVALID");
    }
    const { id: made } = (await create(`publishAt: "${at}"`)).data.createNotification;
    const update = `mutation { updateNotification(appId: 1, id: ${made}, notification: { status: draft, publishAt: null }) { orderAt } }`;
    expect((await ask(update)).updateNotification.orderAt).to.equal(null);
    const { http, body } = await service.rest("POST", "/v1/apps/1/notifications", {
      body: { data: {}, publishAt: at },
    });
    expect([http, body.status]).to.deep.equal([400, "REQUEST_INVALID"]);
  });

  describe("of definitions and of audit logs", () => {
    it("have the definitions of an app as types: they are read, written to an empty app and read again unchanged", async () => {
      const { body } = await service.rest("POST", "/v1/admin/apps", { as: "admin", body: { name: "typed" } });
      const app = body.app.id;
      const fileList = [
        {
          path: "action.ts",
          text: 'import { one } from "./lib/one";\nexport async function execute() {\n  return one;\n}\n',
        },
        { path: "lib/one.ts", text: "export const one = 1;\n" },
      ];
      const built = { name: "built", source: { language: "typescript", fileList } };
      const definitions = { ...WHOLE_MANIFEST, actions: [...WHOLE_MANIFEST.actions, built] };
      const apply = async (input: object) => {
        const { data, errors } = await service.graphql(
          `mutation ($app: Int!, $definitions: ManifestDefinitionsInput) {
           applyManifest(appId: $app, definitions: $definitions) { plan { created { name } changed { name } removed { name } } } }`,
          { app, definitions: input },
          { as: "admin" },
        );
        expect(errors, JSON.stringify(errors)).to.equal(undefined);
        return data.applyManifest.plan;
      };
      const created = (await apply(definitions)).created.map(({ name }: { name: string }) => name);
      expect(created).to.include.members([...WHOLE_PLAN.created.map(({ name }) => name), "built"]);
      const query = `query ($app: Int!) { manifest(appId: $app) { definitions ${selectionOf("ManifestDefinitions")} } }`;
      const { data, errors } = await service.graphql(query, { app }, { as: "admin" });
      expect(errors).to.equal(undefined);
      const read = withoutNulls(data.manifest.definitions);
      const manifest = withoutNulls((await service.rest("GET", `/v1/apps/${app}/manifest`, { as: "admin" })).body);
      for (const action of manifest.actions) {
        if (!action.source) continue;
        const { language, files } = action.source;
        action.source = { language, fileList: Object.entries(files).map(([path, text]) => ({ path, text })) };
      }
      expect(read).to.deep.equal(manifest);
      expect(read.actions.find(({ name }: { name: string }) => name === "built").source.fileList).to.deep.equal(
        fileList,
      );
      // `read` lacks the nulls inside the value of a setting, so the settings come from WHOLE_MANIFEST.
      const unchanged = { ...read, settings: WHOLE_MANIFEST.settings };
      expect(await apply(unchanged)).to.deep.equal({ created: [], changed: [], removed: [] });
      // This manifest has null for absent fields, as the query returned it.
      expect(await apply(data.manifest.definitions)).to.deep.equal({ created: [], changed: [], removed: [] });
    });

    it("reject files of a source that are named twice or in two forms, and two documents", async () => {
      const save = `mutation ($source: ActionSourceInput) {
      createAction(appId: 1, data: { name: "twice", active: true, source: $source }) { id } }`;
      const file = { path: "action.js", text: "async function execute() {}" };
      for (const [source, message] of [
        [{ fileList: [file, file] }, /^source\.fileList\[1\]\.path must be a path that no other file/],
        [{ fileList: [file], files: {} }, '"source" must have either "files" or "fileList" (got both)'],
      ] as const) {
        const { errors } = await service.graphql(save, { source: { language: "javascript", ...source } });
        expect([errors![0].message, errors![0].extensions.status].join()).to.match(
          new RegExp(
            `${message instanceof RegExp ? message.source : message.replace(/[()]/g, ".")}.*,REQUEST_INVALID$`,
          ),
        );
      }
      const both = `mutation { applyManifest(appId: 1, manifest: { version: 1 }, definitions: { version: 1 }) { tag } }`;
      const { errors } = await service.graphql(both, {}, { as: "admin" });
      expect(errors![0].message).to.equal('the request must have either "manifest" or "definitions" (got both)');
    });

    it("have the details of audit entries as names and values", async () => {
      await service.rest("POST", "/v1/apps/1/settings", { body: { detailA: 1, detailB: 2 } });
      const { audit } = await ask("{ audit(appId: 1, limit: 5) { items { type details { name values } data } } }");
      const [entry] = audit.items.filter(({ type }: { type: string }) => type === "app.settings.update");
      expect(entry.data).to.deep.equal({ keys: ["detailA", "detailB"] });
      expect(entry.details).to.deep.equal([{ name: "keys", values: ["detailA", "detailB"] }]);
      const { data } = await service.graphql(
        "{ organizationAudit(organizationId: 1) { items { details { name values } data } } }",
        {},
        { as: "admin" },
      );
      for (const { details, data: facts } of data.organizationAudit.items)
        expect(details.map(({ name }: { name: string }) => name)).to.deep.equal(Object.keys(facts));
    });
  });
});
