/** Tests the bodies of entries on every route: only objects are accepted, and an entry can be sent back as it was read. */
import { expect } from "chai";
import { sampleOf } from "../harness/samples.js";
import type { TestService } from "../harness/service.js";
import { useSharedService } from "../harness/shared-service.js";

interface Outcome {
  failed: boolean;
  status?: string;
}

type SendEntry = (source: number, entry: unknown, id: number) => Promise<Outcome>;

describe("the body of an entry", () => {
  let service: TestService;
  let base: string;
  let made = 0;

  before(async () => {
    service = await useSharedService("api,runner");
    base = `/v1/apps/${service.appId}/data-sources`;
    const code = `async function execute({ payload: { call, source, id, entry } }) {
      const connection = await Svc.DataSources.connect(source);
      const given = entry === "undefined" ? undefined : entry;
      const calls = {
        insert: () => connection.insert(given),
        update: () => connection.update(id, given),
        append: () => connection.append([given]),
        replaceWith: () => connection.replaceWith([given]),
        commit: () => connection.commit({ entries: [{ data: given }] }),
        create: () => Svc.DataSources.create({ name: "by library " + Math.random(), entries: [given] }),
      };
      return calls[call]().then(() => ({ failed: false }), ({ status }) => ({ failed: true, status }));
    }`;
    const body = {
      name: "library",
      code,
      active: true,
      triggers: [{ trigger: "manual" }],
      dependencies: ["svc-datasources"],
    };
    await service.rest("POST", `/v3/apps/${service.appId}/actions`, { body });
  });
  after(() => service.stop());

  const make = async (): Promise<{ source: number; id: number }> => {
    made += 1;
    const { dataSource } = (await service.rest("POST", base, { body: { name: `bodies ${made}` } })).body;
    const entry = (await service.rest("POST", `${base}/${dataSource.id}/entries`, { body: { kept: 1 } })).body;
    return { source: dataSource.id, id: entry.id };
  };
  const contents = async (source: number): Promise<object[]> =>
    (await service.rest("POST", `${base}/${source}/query`, { body: {} })).body.entries.map(
      ({ data }: { data: object }) => data,
    );

  const rest =
    (method: string, path: (id: number) => string, bodyOf = (entry: unknown) => entry): SendEntry =>
    async (source, entry, id) => {
      const { http, body } = await service.rest(method, `${base}/${source}/${path(id)}`, {
        body: JSON.stringify(bodyOf(entry)),
        headers: { "content-type": "application/json" },
      });
      return { failed: http >= 400, status: body.status };
    };
  const graphql =
    (field: string, variable: string, wrap = (entry: unknown) => entry): SendEntry =>
    async (source, entry, id) => {
      const document = `mutation ($app: Int!, $source: ID!, ${field.includes("$id") ? "$id: Int!, " : ""}$value: ${variable}) { ${field} }`;
      const answer = await service.graphql(document, {
        app: service.appId,
        source: String(source),
        id,
        value: wrap(entry),
      });
      const [error] = answer.errors ?? [];
      return { failed: error !== undefined, status: error?.extensions.status };
    };
  const library =
    (call: string): SendEntry =>
    async (source, entry, id) => {
      const body = { call, source, id, entry };
      return (await service.rest("POST", `/v3/apps/${service.appId}/actions/library/runWithResult`, { body })).body
        .result;
    };
  const wrapInList = (entry: unknown) => [entry];
  const wrapInCommit = (entry: unknown) => ({ entries: [{ data: entry }] });

  const ENTRY_ROUTES: Record<string, SendEntry> = {
    "REST: insert": rest("POST", () => "entries"),
    "REST: insert under data": rest(
      "POST",
      () => "entries",
      (data) => ({ data }),
    ),
    "REST: update": rest("PUT", (id) => `entries/${id}`),
    "REST: update under data": rest(
      "PUT",
      (id) => `entries/${id}`,
      (data) => ({ data }),
    ),
    "REST: import": rest("POST", () => "import", wrapInList),
    "REST: append": rest("POST", () => "import?append=true", wrapInList),
    "REST: commit": rest("POST", () => "commit", wrapInCommit),
    "GraphQL: insertEntry": graphql("insertEntry(appId: $app, dataSourceId: $source, data: $value) { id }", "JSON"),
    "GraphQL: updateEntry": graphql(
      "updateEntry(appId: $app, dataSourceId: $source, id: $id, data: $value) { id }",
      "JSON",
    ),
    "GraphQL: importEntries": graphql(
      "importEntries(appId: $app, dataSourceId: $source, entries: $value) { inserted }",
      "[JSON!]!",
      wrapInList,
    ),
    "GraphQL: commitEntries": graphql(
      "commitEntries(appId: $app, dataSourceId: $source, commit: $value) { inserted }",
      "CommitInput",
      wrapInCommit,
    ),
    ...Object.fromEntries(
      ["insert", "update", "append", "replaceWith", "commit", "create"].map((call) => [
        `library: ${call}`,
        library(call),
      ]),
    ),
  };

  for (const [title, send] of sampleOf(Object.entries(ENTRY_ROUTES), 0, 2)) {
    it(`is rejected if it is no object: ${title}`, async () => {
      const { source, id } = await make();
      for (const entry of [5, "abc", [1], null, true, ...(title.startsWith("library") ? ["undefined"] : [])]) {
        expect(await send(source, entry, id), JSON.stringify(entry)).to.deep.equal({
          failed: true,
          status: "REQUEST_INVALID",
        });
      }
      expect(await contents(source)).to.deep.equal([{ kept: 1 }]);
      expect((await send(source, { kept: 2 }, id)).failed).to.equal(false);
    });
  }

  const ROUTES_THAT_UNWRAP = Object.entries(ENTRY_ROUTES).filter(([title]) => !/under data|commit/i.test(title));
  for (const [title, send] of sampleOf(ROUTES_THAT_UNWRAP, 1, 3)) {
    it(`is unwrapped if it is an entry as it was read: ${title}`, async () => {
      const { source, id } = await make();
      const path = `${base}/${source}/entries/${id}`;
      await service.rest("PUT", path, { body: { City: "Paris", kept: 2 } });
      const read = (await service.rest("GET", path)).body;
      expect(Object.keys(read).sort()).to.deep.equal(["createdAt", "data", "dataSourceId", "id", "order", "updatedAt"]);
      for (const entry of [read, { data: read.data }, { id, data: read.data }]) {
        expect((await send(source, entry, id)).failed, JSON.stringify(entry)).to.equal(false);
      }
      for (const data of await contents(source)) expect(data).to.deep.equal({ City: "Paris", kept: 2 });
    });
  }

  it("is unwrapped if it is an entry as a query with joins returned it", async () => {
    const { source, id } = await make();
    const join = { Twins: { dataSourceId: source, on: { kept: "kept" } } };
    const [read] = (await service.rest("POST", `${base}/${source}/query`, { body: { join } })).body.entries;
    expect(read.joins.Twins).to.have.length(1);
    for (const title of ["REST: update", "GraphQL: updateEntry", "REST: import"]) {
      expect(await ENTRY_ROUTES[title]!(source, read, id), title).to.include({ failed: false });
      expect(await contents(source), title).to.deep.equal([{ kept: 1 }]);
    }
    const [imported] = (await service.rest("POST", `${base}/${source}/query`, { body: { join } })).body.entries;
    const commit = await service.rest("POST", `${base}/${source}/commit`, { body: { entries: [imported] } });
    expect(commit.body).to.include({ updated: 1 });
    const columns = { data: { a: 1 }, joins: { b: 2 } };
    expect(await ENTRY_ROUTES["REST: update"]!(source, columns, imported.id)).to.include({ failed: false });
    expect(await contents(source)).to.deep.equal([{ kept: 1, ...columns }]);
  });

  it("is its columns if it has others beside data", async () => {
    const { source } = await make();
    const body = { data: { a: 1 }, Title: "x" };
    const made = await service.rest("POST", `${base}/${source}/entries`, { body });
    expect(made.body.data).to.deep.equal(body);
    const wrapped = await service.rest("POST", `${base}/${source}/entries`, { body: { data: { data: 5 } } });
    expect(wrapped.body.data).to.deep.equal({ data: 5 });
  });

  it("may have any columns in a CSV, also data", async () => {
    const { source } = await make();
    for (const [text, expected] of [
      ["data\nx\n", { data: "x" }],
      ["id,data\n7,x\n", { id: "7", data: "x" }],
    ] as const) {
      const call = { body: text, headers: { "content-type": "text/csv" } };
      expect((await service.rest("POST", `${base}/${source}/import`, call)).http).to.equal(200);
      expect(await contents(source)).to.deep.equal([expected]);
    }
  });

  it("can be sent back in a commit as it was read, with nothing else beside its data", async () => {
    const { source, id } = await make();
    const read = (await service.rest("GET", `${base}/${source}/entries/${id}`)).body;
    const body = { entries: [{ ...read, data: { kept: 3 } }] };
    expect((await service.rest("POST", `${base}/${source}/commit`, { body })).body).to.include({ updated: 1 });
    const document =
      "mutation ($app: Int!, $source: ID!, $commit: CommitInput) { commitEntries(appId: $app, dataSourceId: $source, commit: $commit) { updated } }";
    const answer = await service.graphql(document, { app: service.appId, source: String(source), commit: body });
    expect(answer.data.commitEntries).to.deep.equal({ updated: 1 });
    expect(await contents(source)).to.deep.equal([{ kept: 3 }]);
    const odd = await service.rest("POST", `${base}/${source}/commit`, {
      body: { entries: [{ data: {}, Title: "x" }] },
    });
    expect([odd.body.status, odd.body.error]).to.deep.equal([
      "REQUEST_INVALID",
      'entries[0].Title is not a known field; the nearest known field is "id"',
    ]);
  });
});
