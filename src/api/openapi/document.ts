/** The REST table as an OpenAPI 3.1 document. Adds what all routes share: credentials, errors, headers. */
import type { GraphQLSchema } from "graphql";
import { STATUS } from "../../errors.js";
import type { Route } from "../rest/route.js";
import { createRecorder, type RouteNotes } from "./recorder.js";
import { type Schema, Schemas } from "./schemas.js";

/** Parameters and statuses belong to the contract: the version of the document is that of the paths. */
const VERSION = "1.0.0";

const ERROR: Schema = {
  type: "object",
  description: "Every failure: its status, and in words what was wrong.",
  properties: { status: { type: "string", enum: Object.keys(STATUS) }, error: { type: "string" } },
  required: ["status", "error"],
};

const IF_MATCH = {
  ...{ name: "If-Match", in: "header", required: false, schema: { type: "string" } },
  description: "The ETag of the state that the change starts from; 409 where it stands otherwise by now.",
};

const IF_NONE_MATCH = {
  ...{ name: "If-None-Match", in: "header", required: false, schema: { type: "string" } },
  description: "ETags of representations that the client has; 304 without a body if the current one is among them.",
};

type Paths = Record<string, Record<string, unknown>>;

/** Writes `:name` as `{name}`. One template has one set of names: those of the first route. */
class Templates {
  private readonly byShape = new Map<string, readonly string[]>();

  of(path: string): { template: string; nameOf: (name: string) => string } {
    const own = [...path.matchAll(/:(\w+)/g)].map(([, name]) => name!);
    const shape = path.replaceAll(/:\w+/g, "{}");
    const names = this.byShape.get(shape) ?? own;
    this.byShape.set(shape, names);
    let at = 0;
    const template = path.replaceAll(/:\w+/g, () => `{${names[at++]}}`);
    return { template, nameOf: (name) => names[own.indexOf(name)] ?? name };
  }
}

function inCamelCase(path: string): string {
  const [first = "", ...words] = path.split(/\W+/);
  return [first, ...words.map((word) => `${word[0]?.toUpperCase() ?? ""}${word.slice(1)}`)].join("");
}

function operationIds(): (name: string | null, route: Route) => string {
  const used = new Set<string>();
  return (name, { method, path }) => {
    const plain = name ?? `${method.toLowerCase()}${inCamelCase(path)}`;
    const last = path.split("/").at(-1)!.replaceAll(/\W/g, "");
    const id = [plain, `${plain}By${last[0]?.toUpperCase()}${last.slice(1)}`, `${plain}${used.size}`].find(
      (one) => !used.has(one),
    )!;
    used.add(id);
    return id;
  };
}

function parametersOf(route: Route, notes: RouteNotes, nameOf: (name: string) => string): object[] {
  const inPath = [...route.path.matchAll(/:(\w+)/g)].map(([, name]) => ({
    ...{ name: nameOf(name!), in: "path", required: true },
    schema: notes.path.get(name!) ?? { type: "string" },
  }));
  const inQuery = [...notes.query].map(([name, schema]) => ({ name, in: "query", required: false, schema }));
  const isRead = route.method === "GET";
  return [...inPath, ...inQuery, ...(notes.ifMatch ? [IF_MATCH] : []), ...(isRead ? [IF_NONE_MATCH] : [])];
}

function operationOf(route: Route, notes: RouteNotes, operationId: string, parameters: object[]): object {
  const { http = 200, open } = route;
  const etag = { ETag: { description: "The state that is shown.", schema: { type: "string" } } };
  const content = { "application/json": { schema: notes.answer } };
  return {
    operationId,
    tags: [/^\/v\d+\/apps\/:\w+\/([\w-]+)/.exec(route.path)?.[1] ?? "apps"],
    ...(notes.description && { summary: notes.description }),
    ...(parameters.length > 0 && { parameters }),
    ...(notes.body && { requestBody: { content: { "application/json": { schema: notes.body } } } }),
    ...(open && { security: [{ authToken: [] }, { bearer: [] }, {}] }),
    responses: {
      [String(http)]: {
        description: "Done.",
        ...((notes.tagged || route.method === "GET") && { headers: etag }),
        content,
      },
      ...(route.method === "GET" && {
        304: { description: "If-None-Match names the ETag: the client has this representation." },
      }),
      default: { $ref: "#/components/responses/Failure" },
    },
  };
}

/** @param baseUrl the service's address, without a closing slash */
export async function openapiDocument(
  schema: GraphQLSchema,
  routes: readonly Route[],
  baseUrl: string,
): Promise<object> {
  const schemas = new Schemas();
  const record = createRecorder(schema, schemas);
  const templates = new Templates();
  const idOf = operationIds();
  const paths: Paths = {};
  for (const route of routes) {
    const notes = await record(route);
    const { template, nameOf } = templates.of(route.path);
    const operation = operationOf(route, notes, idOf(notes.operation, route), parametersOf(route, notes, nameOf));
    paths[template] = { ...paths[template], [route.method.toLowerCase()]: operation };
  }
  const failure = {
    description: "Refused or failed.",
    content: { "application/json": { schema: { $ref: "#/components/schemas/Failure" } } },
  };
  return {
    openapi: "3.1.0",
    info: { title: "Svc App Actions", version: VERSION, license: { name: "Apache-2.0", identifier: "Apache-2.0" } },
    servers: [{ url: baseUrl }],
    security: [{ authToken: [] }, { bearer: [] }],
    paths,
    components: {
      schemas: { Failure: ERROR, ...schemas.components },
      responses: { Failure: failure },
      securitySchemes: {
        authToken: { type: "apiKey", in: "header", name: "Auth-token" },
        bearer: { type: "http", scheme: "bearer" },
      },
    },
  };
}
