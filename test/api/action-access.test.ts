/** Tests an action's `access` from end to end: authors set it, and the service applies it to the runs of each caller. */
import { expect } from "chai";
import { rows } from "../../src/data/database.js";
import { type TestCaller, tokensOf } from "../data-sources/callers.js";
import { sampleOf } from "../harness/samples.js";
import type { TestService } from "../harness/service.js";
import { useSharedService } from "../harness/shared-service.js";

const ECHO = "async function execute({ payload }) { return { ran: payload }; }";
const MANUAL = { code: ECHO, active: true, triggers: [{ trigger: "manual" }] };

type Caller = TestCaller | "viewer in London";
const TRUSTED: readonly Caller[] = ["editor", "admin", "api", "task"];
const SIGNED_IN: readonly Caller[] = ["london", "paris", "viewer in London"];
/** Pages of the viewer, the preview for editors, without and with a signed-in user. */
const VIEWERS: readonly Caller[] = ["viewer", "viewer in London"];
const CALLERS: readonly Caller[] = [...TRUSTED, "live", "london", "paris", ...VIEWERS];
/** Callers whose runs use the draft. */
const CALLERS_OF_DRAFTS: readonly Caller[] = ["editor", "admin", ...VIEWERS];

const ACCESS_KINDS: readonly { name: string; access: unknown; admittedCallers: readonly Caller[] }[] = [
  { name: "everyone", access: "everyone", admittedCallers: ["live", "viewer", ...SIGNED_IN] },
  { name: "editors", access: "editors", admittedCallers: VIEWERS },
  { name: "signedIn", access: "signedIn", admittedCallers: SIGNED_IN },
  {
    name: "equals",
    access: { user: { Office: { equals: "London" } } },
    admittedCallers: ["london", "viewer in London"],
  },
  { name: "notequals", access: { user: { Office: { notequals: "London" } } }, admittedCallers: ["paris"] },
  { name: "contains", access: { user: { Office: { contains: "ari" } } }, admittedCallers: ["paris"] },
  {
    name: "own-column",
    access: { user: { Email: { equals: "{{user.Office}}" } } },
    admittedCallers: [],
  },
  {
    name: "two-columns",
    access: { user: { Office: { equals: "London" }, Boss: { notequals: "x" } } },
    admittedCallers: [],
  },
];

describe("access of an action", () => {
  let service: TestService;
  let actions: string;
  let tokens: Partial<Record<Caller, string>>;

  before(async () => {
    service = await useSharedService("api,runner");
    actions = `/v3/apps/${service.appId}/actions`;
    tokens = await tokensOf(service);
    const viewer = await service.rest("POST", `/v1/apps/${service.appId}/tokens`, { body: { kind: "viewer" } });
    tokens["viewer in London"] = viewer.body.token;
    await signIn(viewer.body.token, "london");
    await service.rest("POST", `/v1/apps/${service.appId}/publish`);
  });
  after(() => service.stop());

  const signIn = (as: string, who: string) =>
    service.rest("POST", `/v1/apps/${service.appId}/session`, {
      as,
      body: { dataSourceId: "Users", where: { Email: `${who}@example.org`, Password: who } },
    });

  async function create(name: string, fields: object = {}): Promise<number> {
    const { http, body } = await service.rest("POST", actions, { body: { name, ...MANUAL, ...fields } });
    expect(http, JSON.stringify(body)).to.equal(201);
    return body.action.id;
  }
  const update = (id: number, fields: object) => service.rest("PUT", `${actions}/${id}`, { body: fields });
  const publish = async (id: number): Promise<number> =>
    (await service.rest("POST", `${actions}/${id}/publish`)).body.action.id;
  const found = async (id: number) => (await service.rest("GET", `${actions}/${id}`)).body.action;
  const run = (as: string, name: string | number, headers: Record<string, string> = {}, body: object = {}) =>
    service.rest("POST", `${actions}/${name}/runWithResult`, { as, body, headers });
  const statusOf = ({ http, body }: { http: number; body: { status: string } }) => `${http} ${body.status}`;

  it("is in every response, has a default, and can be changed, cleared, versioned, published, exported and compared", async () => {
    const id = await create("field");
    expect((await found(id)).access).to.equal("everyone");
    const rule = { user: { Role: { equals: "admin" }, Level: { notequals: 3 } } };
    expect((await update(id, { access: rule })).body.action.access).to.deep.equal(rule);
    expect((await update(id, { description: "else" })).body.action.access).to.deep.equal(rule);
    const live = await publish(id);
    expect((await found(live)).access).to.deep.equal(rule);
    expect((await update(id, { access: "editors" })).body.action.access).to.equal("editors");
    expect((await found(live)).access).to.deep.equal(rule);
    const compared = await service.graphql(
      "query ($app: Int!, $id: Int!) { actionDiff(appId: $app, actionId: $id) { fields before { access } after { access } } }",
      { app: service.appId, id },
    );
    expect(compared.data.actionDiff).to.deep.equal({
      fields: ["access"],
      before: { access: rule },
      after: { access: "editors" },
    });
    const document = (await service.rest("GET", `${actions}/export`)).body;
    const exported = document.actions.find(({ name }: { name: string }) => name === "field");
    expect(exported.access).to.equal("editors");
    const imported = await service.rest("POST", `${actions}/import`, {
      body: { ...document, actions: [{ ...exported, access: "signedIn" }] },
    });
    expect(imported.body.updated).to.deep.equal([{ name: "field", fields: ["access"] }]);
    const { versions } = (await service.rest("GET", `${actions}/${id}/versions`)).body;
    const second = versions.at(-2).id;
    const { version } = (await service.rest("GET", `${actions}/${id}/versions/${second}`)).body;
    expect(version.data.access).to.deep.equal(rule);
    const restored = await service.rest("POST", `${actions}/${id}/versions/${second}/restore`);
    expect(restored.body.action.access).to.deep.equal(rule);
    expect((await update(id, { access: null })).body.action.access).to.equal("everyone");
    const { data } = await service.graphql(
      'mutation ($app: Int!, $id: Int!) { updateAction(appId: $app, id: $id, data: { access: "signedIn" }) { access } }',
      { app: service.appId, id },
    );
    expect(data.updateAction).to.deep.equal({ access: "signedIn" });
  });

  it("keeps its value if a version from before the field is restored, and is then no difference", async () => {
    const id = await create("old-version");
    await rows(service.db, "UPDATE action_version SET data = (data::jsonb - 'access')::json WHERE action_id = $1", [
      id,
    ]);
    await update(id, { access: "editors", description: "closed" });
    const { versions } = (await service.rest("GET", `${actions}/${id}/versions`)).body;
    const { data } = await service.graphql(
      'query ($app: Int!, $id: Int!, $version: Int!) { actionVersionDiff(appId: $app, actionId: $id, versionId: $version, against: "master") { fields } }',
      { app: service.appId, id, version: versions.at(-1).id },
    );
    expect(data.actionVersionDiff.fields).to.deep.equal(["description"]);
    const restored = await service.rest("POST", `${actions}/${id}/versions/${versions.at(-1).id}/restore`);
    expect(restored.body.action).to.deep.include({ access: "editors", description: null });
  });

  for (const access of [
    ...["all", "", "Everyone", 1, true, [], ["everyone"], {}, { user: null }, { user: {} }, { user: { Role: "x" } }],
    { user: { Role: { equals: "x" } }, editors: true },
    { user: { Role: { like: "x" } } },
    { user: { Role: { equals: null } } },
    { user: { Role: { equals: { $ne: 1 } } } },
    { user: { Role: { contains: 5 } } },
    { user: { "": { equals: "x" } } },
    { user: { "a\0b": { equals: "x" } } },
    { user: Object.fromEntries(Array.from({ length: 50 }, (_, at) => [`c${at}`, { equals: "x".repeat(1_000) }])) },
  ]) {
    it(`rejects the value ${JSON.stringify(access).slice(0, 60)}`, async () => {
      for (const answer of [
        await service.rest("POST", actions, { body: { name: "odd", ...MANUAL, access } }),
        await service.rest("POST", actions, { body: { name: "odd", ...MANUAL, access, concurrency: 1 } }),
      ]) {
        expect(statusOf(answer)).to.equal("400 ACCESS_INVALID");
        expect(answer.body.error).to.match(/^access/);
      }
      const { errors } = await service.graphql(
        "mutation ($app: Int!, $data: CreateActionInput!) { createAction(appId: $app, data: $data) { id } }",
        { app: service.appId, data: { name: "odd", code: ECHO, access } },
      );
      expect(errors?.[0].extensions.status).to.equal("ACCESS_INVALID");
    });
  }

  it("is checked after the fields of the specification", async () => {
    const body = { name: "odd", ...MANUAL, access: "all", dependencies: "none" };
    expect(statusOf(await service.rest("POST", actions, { body }))).to.equal("400 DEPENDENCIES_INVALID");
  });

  /** Functions that start one or two runs of an action. They return undefined for each started run, otherwise the error's status. */
  const RUN_STARTS: Record<string, (as: string, name: string | number) => Promise<(string | undefined)[]>> = {
    run: async (as, name) => {
      const { http, body } = await service.rest("POST", `${actions}/${name}/run`, { as, body: {} });
      return [http === 202 ? undefined : body.status];
    },
    runWithResult: async (as, name) => {
      const { http, body } = await run(as, name);
      return [http === 200 ? undefined : body.status];
    },
    "runWithResult with a key": async (as, name) => {
      const { http, body } = await run(as, name, { "idempotency-key": `${as.slice(-9)}${name}` });
      return [http === 200 ? undefined : body.status];
    },
    "a batch of GraphQL": async (as, name) => {
      const query = `mutation ($app: Int!, $ref: ID!) {
        a: runAction(appId: $app, nameOrId: $ref) { runId }
        b: runActionWithResult(appId: $app, nameOrId: $ref, payload: { n: 1 }) { runId result } }`;
      const { data, errors } = await service.graphql(query, { app: service.appId, ref: name }, { as });
      const status = (field: string) => errors?.find(({ path }) => path[0] === field)?.extensions.status;
      return ["a", "b"].map((field) => (data[field] ? undefined : status(field)));
    },
    "a websocket": async (as, name) => {
      const client = service.socket(as);
      const query = "mutation ($app: Int!, $ref: ID!) { runActionWithResult(appId: $app, nameOrId: $ref) { result } }";
      const answers = client.iterate({ query, variables: { app: service.appId, ref: name } });
      const { value } = await answers.next();
      await client.dispose();
      return [value.data?.runActionWithResult ? undefined : (value.errors?.[0]?.extensions?.["status"] as string)];
    },
  };

  for (const [at, draft] of ACCESS_KINDS.entries()) {
    const live = ACCESS_KINDS[(at + 1) % ACCESS_KINDS.length]!;
    it(`uses the caller's version: draft ${draft.name}, live ${live.name}`, async () => {
      const name = `pair-${at}`;
      const id = await create(name, { access: live.access });
      const liveId = await publish(id);
      await update(id, { access: draft.access });
      for (const caller of CALLERS) {
        const { admittedCallers } = CALLERS_OF_DRAFTS.includes(caller) ? draft : live;
        const expected =
          TRUSTED.includes(caller) || admittedCallers.includes(caller) ? undefined : "ACTION_ACCESS_DENIED";
        for (const [startName, startRuns] of sampleOf(Object.entries(RUN_STARTS), at, 3)) {
          for (const ref of startName === "run" ? [name, id, liveId] : [name]) {
            const statuses = await startRuns(tokens[caller]!, ref);
            expect(new Set(statuses), `${caller} by ${startName} of ${ref}`).to.deep.equal(new Set([expected]));
          }
        }
      }
    });
  }

  it("is checked before ACTION_INACTIVE and TRIGGER_NOT_ALLOWED, and after ACTION_NOT_FOUND", async () => {
    const id = await create("closed", { access: "editors" });
    expect(statusOf(await run("live", "closed"))).to.equal("404 ACTION_NOT_FOUND");
    await publish(id);
    for (const fields of [{ active: false }, { active: true, triggers: [] }, { environment: "client" }]) {
      await update(id, fields);
      await publish(id);
      expect(statusOf(await run("live", "closed")), JSON.stringify(fields)).to.equal("403 ACTION_ACCESS_DENIED");
    }
    expect(statusOf(await run("api", "closed"))).to.equal("409 CLIENT_ACTION_NOT_RUNNABLE");
    await update(id, { environment: "server", active: false });
    await publish(id);
    expect(statusOf(await run("api", "closed"))).to.equal("409 ACTION_INACTIVE");
  });

  it("ends with the sign-in; a repeat by the next user of the page does not get the earlier user's response", async () => {
    const code = "async function execute({ payload }) { return { secretOf: payload.who }; }";
    await publish(await create("private", { code, access: "signedIn" }));
    const page = (await service.rest("POST", `/v1/apps/${service.appId}/tokens`, { body: { kind: "live" } })).body
      .token;
    const key = { "idempotency-key": "same" };
    await signIn(page, "london");
    const first = await run(page, "private", key, { who: "london" });
    expect(first.body.result).to.deep.equal({ secretOf: "london" });
    expect((await run(page, "private", key, { who: "else" })).body.runId).to.equal(first.body.runId);
    await service.rest("DELETE", `/v1/apps/${service.appId}/session`, { as: page });
    expect(statusOf(await run(page, "private", key, { who: "nobody" }))).to.equal("403 ACTION_ACCESS_DENIED");
    await signIn(page, "paris");
    expect((await run(page, "private", key, { who: "paris" })).body.result).to.deep.equal({ secretOf: "paris" });
    await signIn(page, "london");
    expect((await run(page, "private", key, { who: "again" })).body.runId).to.equal(first.body.runId);
  });

  it("does not restrict a server action of the app that calls the action", async () => {
    await publish(await create("inner", { access: "editors" }));
    const code = "async function execute() { return Svc.App.V3.Actions.runWithResult('inner', { by: 'outer' }); }";
    await publish(await create("outer", { code }));
    expect((await run("live", "outer")).body.result).to.deep.equal({ ran: { by: "outer" } });
    expect(statusOf(await run("live", "inner"))).to.equal("403 ACTION_ACCESS_DENIED");
  });

  it("restricts calls from a page (script and report), but not an action with an analytics trigger", async () => {
    const page = { environment: "client", access: "editors" } as const;
    const manualActionId = await publish(await create("by-hand", page));
    const where = { type: "analytics.pageView" };
    const pageViewActionId = await publish(
      await create("on-view", { ...page, triggers: [{ trigger: "analytics", where }] }),
    );
    const answers = async (as: string, id: number) => {
      const at = `${actions}/${id}`;
      const report = await service.rest("POST", `${at}/clientRuns`, { as, body: { result: 1, duration: 1 } });
      const headers = { "idempotency-key": `start-${id}` };
      const started = await service.rest("POST", `${at}/clientRuns/started`, { as, body: {}, headers });
      const script = await service.rest("GET", `${at}/compile`, { as });
      return [report, started, script].map(({ http, body }) => body.status ?? http);
    };
    expect(await answers("live", manualActionId)).to.deep.equal(
      Array.from({ length: 3 }, () => "ACTION_ACCESS_DENIED"),
    );
    expect(await answers("live", pageViewActionId)).to.deep.equal(["RUN_RECORDED", "RUN_STARTED", 200]);
  });

  it("lets a run in a page end, even if the access has changed since", async () => {
    const id = await create("began", { environment: "client" });
    const live = await publish(id);
    const headers = { "idempotency-key": "began" };
    const at = `${actions}/${live}/clientRuns`;
    const { runId } = (await service.rest("POST", `${at}/started`, { as: "live", body: {}, headers })).body;
    await update(id, { access: "editors" });
    await publish(id);
    const ended = await service.rest("POST", at, { as: "live", body: { result: 1, duration: 1 }, headers });
    expect([ended.http, ended.body.runId]).to.deep.equal([201, runId]);
    expect(statusOf(await service.rest("POST", at, { as: "live", body: { result: 1, duration: 1 } }))).to.equal(
      "403 ACTION_ACCESS_DENIED",
    );
  });

  it("applies also to debounced and limited runs", async () => {
    const limits = { concurrency: { policy: "queue" }, debounce: { delayMs: 20, manual: true } };
    await publish(await create("debounced", { access: { user: { Office: { equals: "London" } } }, ...limits }));
    const ask = (as: string) => service.rest("POST", `${actions}/debounced/run`, { as, body: {} });
    expect(statusOf(await ask("live"))).to.equal("403 ACTION_ACCESS_DENIED");
    expect(statusOf(await ask(tokens.paris!))).to.equal("403 ACTION_ACCESS_DENIED");
    expect(statusOf(await ask(tokens.london!))).to.equal("202 ACTION_QUEUED");
  });
});
