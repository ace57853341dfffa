/** Tests the OpenAPI document: it is valid, complete, consistent with the responses, and sufficient to generate a client. */
import { readFileSync, writeFileSync } from "node:fs";
import { Validator } from "@seriousme/openapi-schema-validator";
import { expect } from "chai";
import { pino } from "pino";
import { ROUTES } from "../../src/api/rest/routes.js";
import { createApi } from "../../src/api/server.js";
import { SAMPLE_RESPONSES } from "../../src/cli/reference/rest-responses.js";
import { type RecordedResponse, shortenResponse } from "../../src/cli/reference/shown-response.js";
import { NO_TRACING } from "../../src/operations/watch/tracing.js";
import { ROOT, readPage } from "../docs/pages.js";
import { differences } from "../docs/response.js";
import { startTestService, type TestService } from "../harness/service.js";
import { addressOf, type KnownIds, requestsInOrder, storeId } from "./shown-requests.js";

// biome-ignore lint/suspicious/noExplicitAny: an OpenAPI document has no static type
type Schema = Record<string, any>;

/** Returns the differences between a value and its schema, such as fields that the schema lacks. */
function findSchemaDifferences(value: unknown, schema: Schema, components: Record<string, Schema>, at = "$"): string[] {
  if (schema["$ref"])
    return findSchemaDifferences(value, components[schema["$ref"].split("/").at(-1)]!, components, at);
  if (schema["anyOf"]) {
    const each = schema["anyOf"].map((variant: Schema) => findSchemaDifferences(value, variant, components, at));
    return each.some((found: string[]) => found.length === 0) ? [] : each[0];
  }
  const kind =
    value === null ? "null" : Array.isArray(value) ? "array" : Number.isInteger(value) ? "integer" : typeof value;
  const types: string[] = schema["type"] === undefined ? [kind] : [schema["type"]].flat();
  if (!types.includes(kind) && !(kind === "integer" && types.includes("number")))
    return [`${at} is ${kind}, not ${types}`];
  if ("const" in schema && schema["const"] !== value) return [`${at} is not ${schema["const"]}`];
  if (schema["enum"] && !schema["enum"].includes(value)) return [`${at} is none of ${schema["enum"]}`];
  if (kind === "array")
    return (value as unknown[]).flatMap((item, n) =>
      findSchemaDifferences(item, schema["items"] ?? {}, components, `${at}[${n}]`),
    );
  if (kind !== "object") return [];
  const fields = value as Record<string, unknown>;
  const missing = (schema["required"] ?? [])
    .filter((name: string) => !(name in fields))
    .map((name: string) => `${at}.${name} is missing`);
  const properties: [string, Schema][] = Object.entries(schema["properties"] ?? {});
  const isClosed = schema["properties"] !== undefined && schema["additionalProperties"] === undefined;
  const unlisted = Object.keys(fields).filter((name) => isClosed && !(name in schema["properties"]));
  return [
    ...missing,
    ...unlisted.map((name) => `${at}.${name} is not described`),
    ...properties.flatMap(([name, property]) =>
      name in fields ? findSchemaDifferences(fields[name], property, components, `${at}.${name}`) : [],
    ),
  ];
}

type Parameters = Record<string, string | number>;

/** Returns a function that calls an operation by its ID. The function uses only the document, as a generated client does. */
function clientOf(document: Schema, base: string, token: string) {
  const operations = Object.entries<Schema>(document["paths"]).flatMap(([path, methods]) =>
    Object.entries<Schema>(methods).map(([method, operation]) => ({ path, method, operation })),
  );
  return async (name: string, parameters: Parameters, body?: object): Promise<{ status: number; body: Schema }> => {
    const { path, method, operation } = operations.find((candidate) => candidate.operation["operationId"] === name)!;
    const placed = (where: string) =>
      operation["parameters"].filter(
        (parameter: Schema) => parameter["in"] === where && parameter["name"] in parameters,
      ) as Schema[];
    const filled = placed("path").reduce(
      (text, parameter) => text.replace(`{${parameter["name"]}}`, encodeURIComponent(parameters[parameter["name"]]!)),
      path,
    );
    expect(filled, "every parameter of the path is described").to.not.match(/[{}]/);
    const [type] = Object.keys(operation["requestBody"]?.content ?? {});
    const { in: where, name: header } = document["components"].securitySchemes.authToken;
    expect(where).to.equal("header");
    const response = await fetch(base + filled, {
      method: method.toUpperCase(),
      headers: { [header]: token, ...(type !== undefined && { "content-type": type }) },
      ...(body && { body: JSON.stringify(body) }),
    });
    const { default: refusal, ...described } = operation["responses"];
    expect(response.ok ? described[response.status] : refusal, `${name} ${response.status}`).to.be.an("object");
    return { status: response.status, body: (await response.json()) as Schema };
  };
}

/** Recorded responses of the reference. Set `RECORD_RESPONSES=1` to write them; then format the file, and run `npm run reference`. */
const RECORDED_FILE = `${ROOT}src/cli/reference/rest-responses.json`;

/** True if the differing field is a duration or a percentile, which is different in each test run. */
const isDuration = (difference: string): boolean => /(?:Ms|p50|p95): [^:]*$/.test(difference);

/** Returns a sample without the marker `…`, which stands for further fields and items. */
function withoutMarks(sample: unknown): unknown {
  if (Array.isArray(sample)) return sample.filter((item) => item !== "…").map(withoutMarks);
  if (typeof sample !== "object" || sample === null) return sample;
  const fields = Object.entries(sample).filter(([name]) => name !== "…");
  return Object.fromEntries(fields.map(([name, value]) => [name, withoutMarks(value)]));
}

describe("the OpenAPI document", function () {
  this.timeout(180_000);
  let service: TestService;
  let document: Schema;
  before(async () => {
    service = await startTestService({ ROLES: "api" });
    const { http, body } = await service.rest("GET", "/v1/openapi.json", { as: null });
    expect(http).to.equal(200);
    document = body;
  });
  after(() => service.stop());

  it("is valid OpenAPI 3.1", async () => {
    const validator = new Validator();
    const { valid, errors } = await validator.validate(structuredClone(document));
    expect(errors).to.equal(undefined);
    expect(valid).to.equal(true);
    expect(validator.version).to.equal("3.1");
  });

  it("has every row of the table once, each under its own name", () => {
    const shapes = ROUTES.map(({ method, path }) => `${method} ${path.replaceAll(/:\w+/g, "{}")}`).sort();
    const documented = Object.entries<Schema>(document["paths"]).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path.replaceAll(/\{\w+\}/g, "{}")}`),
    );
    expect(documented.sort()).to.deep.equal(shapes);
    const ids = Object.values<Schema>(document["paths"]).flatMap((methods) =>
      Object.values<Schema>(methods).map((operation) => operation["operationId"]),
    );
    expect(new Set(ids).size).to.equal(ids.length);
    expect(ids).to.include.members(["createAction", "runActionWithResult", "setSettings", "alertRules", "sendEmail"]);
  });

  it("is in the reference together with every other route of the service", async () => {
    const parts = { resolvers: {}, credentials: {}, sessions: {}, measures: {}, tracing: NO_TRACING };
    const urls = { baseUrl: "http://127.0.0.1", publicUrl: null, runtimeUrl: null };
    const api = await createApi({ ...parts, ...urls, log: pino({ level: "silent" }) } as never);
    await api.stop();
    const page = readPage("docs/reference/rest-routes.md");
    const shapeOf = (path: string) => path.replaceAll(/:\w+|\{\w+\}/g, "{}");
    const rows = page
      .slice(page.indexOf("## Other routes"))
      .split("\n")
      .filter((line) => line.startsWith("| `"));
    const named = rows
      .flatMap((row) => [...row.split(" | ")[0]!.matchAll(/`(?:[A-Z]+ )?([^`]+)`/g)])
      .map(([, path]) => shapeOf(path!));
    const shown = new Set([...page.matchAll(/^### (\S+ \S+)$/gm)].map(([, route]) => shapeOf(route!)));
    const isNamed = (path: string) =>
      named.some((pattern) =>
        pattern.endsWith("/*") ? `${path}/`.startsWith(pattern.slice(0, -1)) : path === pattern,
      );
    // True for files of the documentation, which rest-routes.md does not describe.
    const isFile = (path: string) => /^\/(?:[A-Z]+\.md|LICENSE|docs\.md)$/.test(path);
    const missing = api.registeredRoutes
      .map(({ method, path }) => ({ method, path: shapeOf(path) }))
      .filter(({ method, path }) => method !== "HEAD" && path !== "*" && !isFile(path))
      .filter(({ method, path }) => !shown.has(`${method} ${path}`) && !isNamed(path));
    expect(missing).to.deep.equal([]);
    expect(rows.length).to.be.above(20);
  });

  it("describes what a route accepts: parameters, a body of the GraphQL type, the precondition", () => {
    const list = document["paths"]["/v3/apps/{appId}/actions"];
    const names = list.get.parameters.map(({ name, in: where }: Schema) => `${where} ${name}`);
    expect(names).to.deep.equal(["path appId", "query limit", "query offset", "query search", "header If-None-Match"]);
    const body = list.post.requestBody.content["application/json"].schema;
    expect(body).to.deep.equal({ $ref: "#/components/schemas/CreateActionInput" });
    expect(Object.keys(document["components"].schemas.CreateActionInput.properties)).to.include.members([
      "name",
      "code",
      "triggers",
    ]);
    expect(Object.keys(list.post.responses)).to.deep.equal(["201", "default"]);
    const update = document["paths"]["/v3/apps/{appId}/actions/{id}"].put;
    expect(update.parameters.map(({ name }: Schema) => name)).to.include("If-Match");
  });

  it("describes warnings, plans, lists without code, and what failures have beside their status", async () => {
    const { schemas } = document["components"];
    const app = `/v1/apps/${service.appId}`;
    const actions = `/v3/apps/${service.appId}/actions`;
    const check = (template: string, method: string, { http, body }: { http: number; body: unknown }) => {
      const { responses } = document["paths"][template][method];
      const described = responses[http] ?? schemas.Failure;
      const schema = described.content?.["application/json"].schema ?? described;
      expect(findSchemaDifferences(body, schema, schemas), `${method} ${template} ${http}`).to.deep.equal([]);
    };
    const item = "/v3/apps/{appId}/actions/{id}";
    const code = "async function execute() { throw new Error('x'); }";
    const body = { name: "described", code, active: true, triggers: [{ trigger: "schedule" }, { trigger: "manual" }] };
    const created = await service.rest("POST", actions, { body });
    expect(created.body.warnings).to.have.length(1);
    check("/v3/apps/{appId}/actions", "post", created);
    const { id } = created.body.action;
    const saved = await service.rest("PUT", `${actions}/${id}`, { body: { description: "d" } });
    expect(saved.body.warnings).to.have.length(1);
    check(item, "put", saved);
    const headers = { "If-Match": '"2020-01-01T00:00:00.000Z"' };
    const stale = await service.rest("PUT", `${actions}/${id}`, { body: { description: "e" }, headers });
    expect([stale.http, stale.body.action.id]).to.deep.equal([409, id]);
    check(item, "put", stale);
    const { versions } = (await service.rest("GET", `${actions}/${id}/versions`)).body;
    const restored = await service.rest("POST", `${actions}/${id}/versions/${versions[0].id}/restore`);
    check("/v3/apps/{appId}/actions/{actionId}/versions/{versionId}/restore", "post", restored);
    const person = { firstName: "O", lastName: "P", email: "operator@example.com" };
    const { user, token } = (await service.rest("POST", "/v1/admin/users", { as: "admin", body: person })).body;
    await service.rest("PUT", `${app}/members/${user.id}`, { as: "admin", body: { role: "operator" } });
    const list = await service.rest("GET", actions, { as: token });
    expect(list.body.actions[0]).not.to.have.property("code");
    check("/v3/apps/{appId}/actions", "get", list);
    const faulty = await service.rest("PUT", `${app}/manifest`, { as: "admin", body: { version: 1, nothing: 1 } });
    expect(faulty.body.faults).to.have.length(1);
    check("/v1/apps/{appId}/manifest", "put", faulty);
    const stage = (await service.rest("POST", `${app}/stages`, { as: "admin", body: { name: "described" } })).body.app;
    const promotion = { as: "admin" as const, body: { fromAppId: stage.id } };
    const plan = await service.rest("POST", `${app}/promotions?plan=true`, promotion);
    expect(plan.http).to.equal(200);
    check("/v1/apps/{appId}/promotions", "post", plan);
    const mail = { to: [{ email: "a@example.com" }], subject: "s", html: "h" };
    const sent = await service.rest("POST", `${app}/communicate/email`, { body: mail });
    const message = await service.rest("GET", `${app}/communicate/messages/${sent.body.id}`);
    check("/v1/apps/{appId}/communicate/messages/{messageId}", "get", message);
  });

  it("has lists of an app and of an organization whose page with limit=0 is empty", async () => {
    const known: Record<string, number> = { appId: service.appId, organizationId: service.organizationId };
    const lists = Object.entries<Schema>(document["paths"]).filter(
      ([path, { get }]) =>
        get?.parameters?.some(({ name }: Schema) => name === "limit") &&
        [...path.matchAll(/\{(\w+)\}/g)].every(([, name]) => name! in known),
    );
    expect(lists.length).to.be.above(5);
    for (const [path] of lists) {
      const address = path.replaceAll(/\{(\w+)\}/g, (_, name) => String(known[name]));
      const { http, body } = await service.rest("GET", `${address}?limit=0`, { as: "admin" });
      const items = Object.values(body).flatMap((value) => (Array.isArray(value) ? value : []));
      expect([http, items], address).to.deep.equal([200, []]);
    }
  });

  it("generates a client that creates an action, changes it and gets the service's error", async () => {
    const call = clientOf(document, service.url, service.tokens.editor);
    const appId = service.appId;
    const code = "async function execute() { return 1; }";
    const made = await call("createAction", { appId }, { name: "of-a-client", code });
    expect(made.status).to.equal(201);
    expect(made.body["action"]).to.include({ name: "of-a-client", active: false });
    const { id } = made.body["action"];
    const changed = await call("updateAction", { appId, id }, { description: "made by tools" });
    expect(changed.body["action"].description).to.equal("made by tools");
    const refusal = await call("createAction", { appId }, { name: "of-a-client", code });
    expect([refusal.status, refusal.body["status"]]).to.deep.equal([409, "NAME_ALREADY_EXISTS"]);
  });

  it("describes the fields of each sample response that the reference shows", () => {
    const wrong = Object.entries(SAMPLE_RESPONSES).flatMap(([route, sample]) => {
      const [method = "", path = ""] = route.split(" ");
      const responses: Schema = document["paths"][path]?.[method.toLowerCase()]?.responses ?? {};
      const [, response] = Object.entries<Schema>(responses).findLast(([code]) => /^2/.test(code)) ?? [];
      const schema = response?.["content"]?.["application/json"].schema;
      if (!schema) return [`${route}: the document has no schema of the response`];
      return findSchemaDifferences(withoutMarks(sample), schema, document["components"].schemas)
        .filter((fault) => !fault.endsWith(" is missing"))
        .map((fault) => `${route}: ${fault}`);
    });
    expect(wrong).to.deep.equal([]);
  });

  it("matches the real response to each request that the reference shows", async () => {
    const { paths, components } = document;
    const ids: KnownIds = new Map([
      ["appId", service.appId],
      ["organizationId", service.organizationId],
    ]);
    const wrong: string[] = [];
    const responses: Record<string, RecordedResponse> = {};
    for (const request of requestsInOrder()) {
      const { route, method, path, body } = request;
      const address = addressOf(request, ids);
      const answer = await service.rest(method, address, {
        as: "admin",
        ...(body !== undefined && { body }),
      });
      const documented = paths[path][method.toLowerCase()].responses[String(answer.http)];
      const schema = documented?.content?.["application/json"]?.schema;
      const found = documented
        ? findSchemaDifferences(answer.body, schema ?? {}, components.schemas)
        : [JSON.stringify(answer.body)];
      wrong.push(...found.map((fault) => `${route} ${answer.http}: ${fault}`));
      responses[route] = { address, http: answer.http, body: shortenResponse(answer.body) };
      storeId(ids, request, answer.body);
    }
    expect(wrong.join("\n")).to.equal("");
    if (process.env["RECORD_RESPONSES"]) writeFileSync(RECORDED_FILE, `${JSON.stringify(responses, null, 2)}\n`);
    const recorded: Record<string, RecordedResponse> = JSON.parse(readFileSync(RECORDED_FILE, "utf8"));
    expect(Object.keys(recorded).sort()).to.deep.equal(Object.keys(responses).sort());
    const changed = Object.entries(recorded).flatMap(([route, { http, body }]) =>
      differences({ http, body }, responses[route])
        .filter((difference) => !isDuration(difference))
        .map((difference) => `${route}: ${difference}`),
    );
    expect(changed.join("\n")).to.equal("");
    const { schemas } = components;
    const refused = await service.rest("GET", `/v3/apps/${service.appId}/actions/999999`);
    expect(findSchemaDifferences(refused.body, { $ref: "#/components/schemas/Failure" }, schemas)).to.deep.equal([]);
  });
});
