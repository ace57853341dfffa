/** Checks that a caller without permission gets the same refusal for a faulty request as for a valid request, on each route. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import {
  buildSchema,
  type GraphQLSchema,
  getVariableValues,
  isEnumType,
  isNonNullType,
  type OperationDefinitionNode,
  parse,
} from "graphql";
import { sampleOf } from "../harness/samples.js";
import { startTestService, type TestService } from "../harness/service.js";
import { BODY_SAMPLES, bodiesWithUnknownField, fillPath, type Ids, prepareSamples } from "./body-samples.js";
import { graphqlCall, type ValueGenerator } from "./fuzz.js";

const SCHEMA = fileURLToPath(new URL("../../../schema/schema.graphql", import.meta.url));

type Operation = { requestBody?: object; parameters?: { name: string; in: string }[] };

/** Routes that are not in the REST table, with the query parameters that they read. */
const ROUTES_OUTSIDE_TABLE: Record<string, string[]> = {
  "POST /v1/apps/{appId}/data-sources/{ds}/import": ["append", "delimiter", "types", "by"],
  "GET /v1/apps/{appId}/data-sources/{ds}/export": ["format", "spreadsheet", "by"],
  "POST /v1/apps/{appId}/media/files": ["folderId", "name"],
  "GET /v1/apps/{appId}/media/files/{id}/contents": ["expires", "signature", "size", "width", "format", "quality"],
  "GET /v3/apps/{appId}/actions/{id}/compile": ["v", "html"],
};

const PERMISSION_REFUSAL = / (UNAUTHORIZED|FORBIDDEN|DATA_SOURCE_ACCESS_DENIED)$/;

/** Returns faulty bodies: values of other types, an empty object, and copies of the body in which one field has another value. */
function faultyBodies(body: unknown): unknown[] {
  const replaced = [5, "a", [], null];
  if (Array.isArray(body)) return [{}, [5], [], ...faultyBodies(body[0]).map((faulty) => [faulty])];
  if (typeof body !== "object" || body === null) return replaced;
  const fields = Object.keys(body).flatMap((name, at) =>
    sampleOf(replaced, at, replaced.length).map((value) => ({ ...body, [name]: value })),
  );
  return [5, true, [], [5], {}, ...fields];
}

/** True if GraphQL accepts the variables, so that the request reaches the operation. */
function passesTypes(schema: GraphQLSchema, { query, variables }: { query: string; variables: object }): boolean {
  const [operation] = parse(query).definitions as [OperationDefinitionNode];
  const found = getVariableValues(schema, operation.variableDefinitions ?? [], { ...variables });
  return found.errors === undefined;
}

describe("permission is checked before any other error", function () {
  this.timeout(180_000);
  let service: TestService;
  let ids: Ids;
  let foreign: string;
  let requests = 0;
  const operations = new Map<string, Operation>();

  before(async () => {
    service = await startTestService({ ROLES: "api", TRUST_PROXY: "1" });
    await service.rest("POST", "/v1/apps/1/data-sources", { body: { name: "closed" } });
    ids = await prepareSamples(service);
    const { app } = (await service.rest("POST", "/v1/admin/apps", { as: "admin", body: { name: "Other" } })).body;
    const made = await service.rest("POST", `/v1/apps/${app.id}/tokens`, { as: "admin", body: { kind: "live" } });
    foreign = made.body.token;
    const { paths } = (await service.rest("GET", "/v1/openapi.json", { as: null })).body;
    for (const [path, methods] of Object.entries<Record<string, Operation>>(paths)) {
      for (const [method, operation] of Object.entries(methods))
        operations.set(`${method.toUpperCase()} ${path}`, operation);
    }
  });
  after(() => service.stop());

  const CALLERS = [
    ["no credential", () => null],
    ["a live token of another app", () => foreign],
    ["a live token", () => "live"],
  ] as const;

  async function refusal(route: string, as: string | null, query: string, body?: unknown) {
    requests += 1;
    // After some rejections without a credential, the service delays further ones to this address. So each request has another address.
    const address = `10.0.${requests >> 8}.${requests & 255}`;
    const headers = { "idempotency-key": "sample", "x-forwarded-for": address };
    const answer = await service.rest(route.split(" ")[0]!, `${fillPath(route, ids)}${query}`, { as, body, headers });
    return `${answer.http} ${answer.body?.status}`;
  }

  /** Sends a valid request. Returns the refusal, or null if the caller has permission. */
  async function permissionRefusal(route: string, as: string | null, body?: unknown): Promise<string | null> {
    const found = await refusal(route, as, "", body);
    return PERMISSION_REFUSAL.test(found) ? found : null;
  }

  for (const [at, [name, tokenOf]] of CALLERS.entries()) {
    const routes = Object.entries(BODY_SAMPLES);
    it(`also for invalid bodies from ${name}`, async () => {
      let refused = 0;
      for (const [route, sample] of sampleOf(routes, at, 3)) {
        const expected = await permissionRefusal(route, tokenOf(), sample.body);
        if (expected === null) continue;
        refused += 1;
        const bodies = [...faultyBodies(sample.body), ...bodiesWithUnknownField(sample).map((faulty) => faulty.body)];
        for (const body of sampleOf(bodies, refused, 6)) {
          expect(await refusal(route, tokenOf(), "", body), `${route} ${JSON.stringify(body)}`).to.equal(expected);
        }
      }
      expect(refused).to.be.above(20);
    });

    it(`also for invalid queries from ${name}`, async () => {
      let refused = 0;
      const queries = Object.fromEntries(
        [...operations].map(([route, { parameters = [] }]) => [
          route,
          parameters.filter((parameter) => parameter.in === "query").map((parameter) => parameter.name),
        ]),
      );
      for (const [route, parameters] of Object.entries({ ...queries, ...ROUTES_OUTSIDE_TABLE })) {
        const body = BODY_SAMPLES[route]?.body;
        const expected = await permissionRefusal(route, tokenOf(), body);
        if (expected === null) continue;
        for (const parameter of parameters) {
          refused += 1;
          const queriesOfParameter = [`?${parameter}=%00`, `?${parameter}=a&${parameter}=b`];
          for (const query of sampleOf(queriesOfParameter, refused, 2)) {
            expect(await refusal(route, tokenOf(), query, body), `${route}${query}`).to.equal(expected);
          }
        }
      }
      expect(refused).to.be.above(20);
    });
  }

  const PLAUSIBLE_VALUES: ValueGenerator = (kind) => (kind === "number" ? 1 : kind === "text" ? "1" : {});
  /** Faulty values. The test sends only those that the types of the schema accept. */
  const FAULTY: ValueGenerator[] = [
    (kind) => (kind === "number" ? -1 : kind === "text" ? "" : "a"),
    (kind) => (kind === "number" ? 2 ** 31 - 1 : kind === "text" ? "a\0b" : null),
  ];

  // The test skips the caller without a credential, because the service refuses such a caller before it parses the document.
  for (const [name, tokenOf] of sampleOf(CALLERS.slice(1), 1, 2)) {
    it(`also for invalid GraphQL arguments from ${name}, and for null in optional ones`, async () => {
      const schema = buildSchema(readFileSync(SCHEMA, "utf8"));
      const ask = async ({ query, variables }: { query: string; variables: object }) => {
        requests += 1;
        const headers = { "x-forwarded-for": `10.1.${requests >> 8}.${requests & 255}` };
        const { errors } = await service.graphql(query, { ...variables }, { as: tokenOf(), headers });
        return errors?.[0].extensions.status as string | undefined;
      };
      let refused = 0;
      for (const kind of ["query", "mutation"] as const) {
        const root = kind === "query" ? schema.getQueryType()! : schema.getMutationType()!;
        const fields = Object.values(root.getFields());
        for (const { name: field, args } of kind === "query" ? sampleOf(fields, 0, 2) : fields) {
          const expected = await ask(graphqlCall(schema, kind, field, PLAUSIBLE_VALUES));
          if (expected !== "FORBIDDEN" && expected !== "UNAUTHORIZED") continue;
          refused += 1;
          const { query, variables } = graphqlCall(schema, kind, field, PLAUSIBLE_VALUES);
          // Enum arguments keep their value: without the argument `copy`, running an action needs another permission.
          const optional = args
            .filter(({ type }) => !isNonNullType(type) && !isEnumType(type))
            .map((argument) => argument.name);
          const nulls = { ...variables, ...Object.fromEntries(optional.map((argument) => [argument, null])) };
          const calls = [...FAULTY.map((odd) => graphqlCall(schema, kind, field, odd)), { query, variables: nulls }];
          const accepted = calls.filter((call) => passesTypes(schema, call));
          for (const call of sampleOf(accepted, refused, 2)) {
            expect(await ask(call), `${field} ${JSON.stringify(call.variables)}`).to.equal(expected);
          }
        }
      }
      expect(refused).to.be.above(40);
    });
  }

  it("null is rejected in the same way in REST and GraphQL: names of folders and files", async () => {
    const made = (await service.rest("POST", "/v1/apps/1/media/folders", { body: { name: "named" } })).body.folder;
    const rest = await service.rest("PUT", `/v1/apps/1/media/folders/${made.id}`, { body: { name: null } });
    const document = `mutation { updateMediaFolder(appId: 1, id: ${made.id}, name: null) { name } }`;
    const { errors } = await service.graphql(document);
    expect(errors?.[0].path).to.deep.equal(["updateMediaFolder"]);
    expect([rest.http, rest.body.status]).to.deep.equal([400, errors?.[0].extensions.status]);
  });

  it("also for repeated parameters, which every route rejects after the permission check", async () => {
    const queries: [string, string[]][] = [...operations].map(([route, { parameters = [] }]) => [
      route,
      parameters.filter((parameter) => parameter.in === "query").map((parameter) => parameter.name),
    ]);
    for (const [route, parameters] of [...queries, ...Object.entries(ROUTES_OUTSIDE_TABLE)]) {
      for (const parameter of parameters) {
        const query = `?${parameter}=1&${parameter}=1`;
        const body = BODY_SAMPLES[route]?.body;
        expect(await refusal(route, "admin", query, body), `${route}${query}`).to.equal("400 REQUEST_INVALID");
      }
    }
    for (const parameter of ["query", "variables", "operationName"]) {
      const twice = `${parameter}=%7B%7D&${parameter}=%7B%7D`;
      const { http, body } = await service.rest("GET", `/graphql?query=%7B__typename%7D&${twice}`, {});
      expect([http, body.errors?.[0]?.extensions.status], parameter).to.deep.equal([400, "REQUEST_INVALID"]);
    }
  });
});
