/** Tests references in paths and arguments: digits are an ID, but `by=name` makes them a name, on each route that accepts both. */
import { expect } from "chai";
import type { FastifyRequest } from "fastify";
import { type GraphQLArgument, getNamedType } from "graphql";
import { listRootFields, loadSchema } from "../../src/api/graphql/schema.js";
import { createRestRequest } from "../../src/api/rest/request.js";
import { ROUTES } from "../../src/api/rest/routes.js";
import { parseReference } from "../../src/rules/reference.js";
import type { TestService } from "../harness/service.js";
import { useSharedService } from "../harness/shared-service.js";

const PATH_WITH_ID_OR_NAME = /:(?:ds|nameOrId)\b/;

describe("IDs and names", () => {
  let service: TestService;
  let base: string;
  /** IDs of the first data source and the first action. A second data source and a second action have the digits of these IDs as names. */
  let sourceId: number;
  let actionId: number;

  const code = (answer: string) => `async function execute() { return ${JSON.stringify(answer)}; }`;
  const action = async (name: string, answer: string): Promise<number> => {
    const body = { name, code: code(answer), active: true, triggers: [{ trigger: "manual" }] };
    return (await service.rest("POST", `/v3/apps/${service.appId}/actions`, { body })).body.action.id;
  };

  before(async () => {
    service = await useSharedService("api,runner");
    base = `/v1/apps/${service.appId}`;
    const source = async (name: string, Which: string) =>
      (await service.rest("POST", `${base}/data-sources`, { body: { name, entries: [{ Which }] } })).body.dataSource.id;
    sourceId = await source("plain", "id");
    await source(String(sourceId), "name");
    actionId = await action("plain", "id");
    await action(String(actionId), "name");
  });
  after(() => service.stop());

  it("are distinguished by digits, by `by`, and by the type of a value", () => {
    const cases: [string | number, "id" | "name" | undefined, object][] = [
      ["20", undefined, { id: 20 }],
      [20, undefined, { id: 20 }],
      ["20", "name", { name: "20" }],
      ["0", undefined, { id: 0 }],
      ["007", undefined, { id: 0 }],
      ["9".repeat(30), undefined, { id: 0 }],
      ["-5", undefined, { name: "-5" }],
      ["5.0", undefined, { name: "5.0" }],
      ["٢", undefined, { name: "٢" }],
      ["Seats", undefined, { name: "Seats" }],
      ["Seats", "id", { id: 0 }],
    ];
    for (const [value, by, expected] of cases) {
      expect(parseReference(value, by), `${value} ${by}`).to.deep.equal(expected);
    }
  });

  for (const route of ROUTES.filter(({ path }) => PATH_WITH_ID_OR_NAME.test(path))) {
    it(`are read in the same way by ${route.method} ${route.path}`, async () => {
      const called = async (query: object): Promise<unknown[]> => {
        const params = { appId: "1", ds: "20", nameOrId: "20", entryId: "3", versionId: "4", columns: "a" };
        const request = {
          params,
          query,
          body: {},
          headers: {},
          url: route.path,
          routeOptions: { url: route.path },
        } as unknown as FastifyRequest;
        let seen: unknown[] = [];
        const recordIds = async (...values: unknown[]) => {
          seen = values;
          return {};
        };
        const take = new Proxy({}, { get: () => recordIds });
        await route.handle(new Proxy({}, { get: () => take }) as never, createRestRequest(request, {} as never));
        return seen;
      };
      expect(await called({})).to.deep.include({ id: 20 });
      expect(await called({ by: "name" })).to.deep.include({ name: "20" });
    });
  }

  it("are accepted with `by` in every field of GraphQL that takes either", async () => {
    const fields = listRootFields(await loadSchema());
    // The argument `against` refers to a version, which has an ID but no name.
    const isId = ({ name, type }: GraphQLArgument) => getNamedType(type).name === "ID" && name !== "against";
    const fieldsWithReference = fields.filter(({ args }) => args.some(isId));
    expect(fieldsWithReference).to.have.length.greaterThan(15);
    const without = fieldsWithReference.filter(
      ({ args }) => !args.some(({ type }) => getNamedType(type).name === "ReferenceKind"),
    );
    expect(without.map(({ name }) => name)).to.deep.equal([]);
  });

  it("of data sources find the right one, over REST", async () => {
    const sourcePath = `${base}/data-sources/${sourceId}`;
    const readWhich = async (path: string) =>
      (await service.rest("POST", path, { body: {} })).body.entries[0].data.Which;
    expect([await readWhich(`${sourcePath}/query`), await readWhich(`${sourcePath}/query?by=name`)]).to.deep.equal([
      "id",
      "name",
    ]);
    const exported = async (query: string) =>
      (await service.rest("GET", `${sourcePath}/export?format=csv${query}`)).body;
    expect([await exported(""), await exported("&by=name")]).to.deep.equal(["Which\r\nid\r\n", "Which\r\nname\r\n"]);
    const csv = { body: "Which\nname\n", headers: { "content-type": "text/csv" } };
    expect((await service.rest("POST", `${sourcePath}/import?append=true&by=name`, csv)).http).to.equal(200);
    const { total } = (await service.rest("POST", `${sourcePath}/query?by=name`, { body: {} })).body.pagination;
    expect(total).to.equal(2);
    for (const query of ["by=names", "by=name&by=name"]) {
      const { http, body } = await service.rest("POST", `${sourcePath}/query?${query}`, { body: {} });
      expect([http, body.status]).to.deep.equal([400, "REQUEST_INVALID"]);
      expect(body.error).to.match(/^by must be id or name \(got /);
    }
    const unnamed = await service.rest("GET", `${base}/data-sources/99999999999`);
    expect([unnamed.http, unnamed.body.status]).to.deep.equal([404, "DATA_SOURCE_NOT_FOUND"]);
    const nul = await service.rest("GET", `${base}/data-sources/a%00`);
    expect([nul.http, nul.body.status]).to.deep.equal([404, "DATA_SOURCE_NOT_FOUND"]);
  });

  it("that are digits are IDs: they do not find a data source with that name", async () => {
    const { dataSource } = (await service.rest("POST", `${base}/data-sources`, { body: { name: "77777" } })).body;
    const bare = await service.rest("GET", `${base}/data-sources/77777`);
    expect([bare.http, bare.body.status]).to.deep.equal([404, "DATA_SOURCE_NOT_FOUND"]);
    const named = await service.rest("GET", `${base}/data-sources/77777?by=name`);
    expect(named.body.dataSource.id).to.equal(dataSource.id);
    await action("88888", "digits");
    const run = (query: string) =>
      service.rest("POST", `/v3/apps/${service.appId}/actions/88888/runWithResult${query}`, { body: {} });
    expect((await run("")).body.status).to.equal("ACTION_NOT_FOUND");
    expect((await run("?by=name")).body.result).to.equal("digits");
  });

  it("of actions find the right one, over REST and GraphQL", async () => {
    const rest = async (query: string) => {
      const path = `/v3/apps/${service.appId}/actions/${actionId}/runWithResult${query}`;
      return (await service.rest("POST", path, { body: {} })).body.result;
    };
    expect([await rest(""), await rest("?by=name")]).to.deep.equal(["id", "name"]);
    const graphql = async (by: string) => {
      const query = `mutation { runActionWithResult(appId: ${service.appId}, nameOrId: "${actionId}"${by}) { result } }`;
      return (await service.graphql(query)).data.runActionWithResult.result;
    };
    expect([await graphql(""), await graphql(", by: name")]).to.deep.equal(["id", "name"]);
  });

  it("of the data source that signs users in find the right one", async () => {
    const make = async (name: string, Email: string): Promise<string> => {
      const hooks = [{ type: "operations", runOn: ["insert"], fields: { Password: ["hash"] } }];
      const body = { name, hooks, isUsers: true, entries: [{ Email, Password: "a long one" }] };
      const made = await service.rest("POST", `${base}/data-sources`, { body });
      if (made.http === 201) return String(made.body.dataSource.id);
      delete (body as { isUsers?: boolean }).isUsers;
      return String((await service.rest("POST", `${base}/data-sources`, { body })).body.dataSource.id);
    };
    const id = await make("users", "id@example.org");
    await make(id, "name@example.org");
    const signIn = async (source: object, Email: string) => {
      const body = { ...source, where: { Email, Password: "a long one" } };
      const { http } = await service.rest("POST", `${base}/session`, { body, as: "live" });
      return http;
    };
    expect(await signIn({ dataSourceId: id }, "id@example.org")).to.equal(200);
    expect(await signIn({ dataSourceName: id }, "name@example.org")).to.equal(200);
    expect(await signIn({ dataSourceName: id }, "id@example.org")).to.equal(401);
  });

  it("of data sources find the right one, over GraphQL", async () => {
    const ask = async (by: string) => {
      const query = `query { dataSourceEntries(appId: ${service.appId}, dataSourceId: "${sourceId}"${by}) { entries { data } } }`;
      return (await service.graphql(query)).data.dataSourceEntries.entries[0].data.Which;
    };
    expect([await ask(""), await ask(", by: name")]).to.deep.equal(["id", "name"]);
  });

  it("connectByName takes a name, run takes a string as a name, connect and numbers are IDs", async () => {
    const body = {
      name: "caller",
      active: true,
      triggers: [{ trigger: "manual" }],
      dependencies: ["svc-datasources"],
      code: `async function execute() {
        const { run, runWithResult } = Svc.App.V3.Actions;
        const of = async (source) => (await source.findOne()).data.Which;
        const named = await Svc.DataSources.connectByName("${sourceId}");
        await named.insert({ Which: "inserted" });
        return [
          await of(named), await of(await Svc.DataSources.connect(${sourceId})), await of(await Svc.DataSources.connect("${sourceId}")),
          (await named.getIndex("Which")).length,
          await runWithResult("${actionId}"), await runWithResult(${actionId}),
          await run("${actionId + 100000}").catch(({ status }) => status),
        ];
      }`,
    };
    await service.rest("POST", `/v3/apps/${service.appId}/actions`, { body });
    const { result } = (
      await service.rest("POST", `/v3/apps/${service.appId}/actions/caller/runWithResult`, { body: {} })
    ).body;
    expect(result).to.deep.equal(["name", "id", "id", 2, "name", "id", "ACTION_NOT_FOUND"]);
  });
});
