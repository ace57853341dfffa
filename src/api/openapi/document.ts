/**
 * Builds the OpenAPI 3.1 document from the table of REST routes, and adds the parts that all routes share: credentials, errors, headers.
 */
import type { GraphQLSchema } from "graphql";
import { type ErrorDetails, STATUS } from "../../errors.js";
import type { Route } from "../rest/route.js";
import { createRouteRecorder, type RouteDescription } from "./recorder.js";
import { type JsonSchema, OpenApiSchemas } from "./schemas.js";

/** Version of the API in the OpenAPI document. It changes only when paths of routes change. */
const API_VERSION = "1.0.0";

const ERROR_SCHEMA: JsonSchema = {
  type: "object",
  description: "Error response: its status, and a sentence that says what is wrong.",
  properties: {
    status: { type: "string", enum: Object.keys(STATUS) },
    error: { type: "string" },
    nextValidRequestDate: {
      type: "string",
      format: "date-time",
      description: "Time from which a new request can succeed, with RATE_LIMIT_EXCEEDED.",
    },
    runId: { type: "integer", description: "The run that failed or was skipped." },
    action: { type: "object", description: "Current state of the action, with ACTION_CHANGED." },
    entry: { type: ["object", "null"], description: "Current state of the entry, with ENTRY_CHANGED." },
    resource: { type: "object", description: "Current state of the resource, with RESOURCE_CHANGED." },
    columns: { type: "array", items: { type: "string" }, description: "With ENTRY_ALREADY_EXISTS." },
    faults: { type: "array", items: { type: "object" }, description: "Faulty parts of a manifest or an import." },
  } satisfies Record<"status" | "error" | Exclude<keyof ErrorDetails, "retryAfter">, JsonSchema>,
  required: ["status", "error"],
};

const WARNINGS_SCHEMA: JsonSchema = {
  type: "array",
  description: "Fields without an effect; absent if there are none.",
  items: {
    type: "object",
    properties: { path: { type: "string" }, message: { type: "string" } },
    required: ["path", "message"],
  },
};

const addWarningsToSchema = (answer: JsonSchema): JsonSchema => ({
  ...answer,
  properties: { ...(answer["properties"] as JsonSchema), warnings: WARNINGS_SCHEMA },
});

const IF_MATCH_PARAMETER = {
  ...{ name: "If-Match", in: "header", required: false, schema: { type: "string" } },
  description:
    "ETag of the version that the change is based on; the response is 409 if the resource has changed since.",
};

const IF_NONE_MATCH_PARAMETER = {
  ...{ name: "If-None-Match", in: "header", required: false, schema: { type: "string" } },
  description: "ETags of representations that the client has; 304 without a body if the current one is among them.",
};

type PathItems = Record<string, Record<string, unknown>>;

/** Writes `:name` in paths as `{name}`. If two routes differ only in parameter names, the second uses the names of the first. */
class PathTemplates {
  private readonly namesByShape = new Map<string, readonly string[]>();

  createTemplate(path: string): { template: string; getTemplateName: (name: string) => string } {
    const parameterNames = [...path.matchAll(/:(\w+)/g)].map(([, name]) => name!);
    const shape = path.replaceAll(/:\w+/g, "{}");
    const templateNames = this.namesByShape.get(shape) ?? parameterNames;
    this.namesByShape.set(shape, templateNames);
    let nameIndex = 0;
    const template = path.replaceAll(/:\w+/g, () => `{${templateNames[nameIndex++]}}`);
    return { template, getTemplateName: (name) => templateNames[parameterNames.indexOf(name)] ?? name };
  }
}

function toCamelCase(path: string): string {
  const [firstWord = "", ...words] = path.split(/\W+/);
  return [firstWord, ...words.map((word) => `${word[0]?.toUpperCase() ?? ""}${word.slice(1)}`)].join("");
}

function createOperationIdGenerator(): (name: string | null, route: Route) => string {
  const usedIds = new Set<string>();
  return (name, { method, path }) => {
    const plainId = name ?? `${method.toLowerCase()}${toCamelCase(path)}`;
    const lastSegment = path.split("/").at(-1)!.replaceAll(/\W/g, "");
    const id = [
      plainId,
      `${plainId}By${lastSegment[0]?.toUpperCase()}${lastSegment.slice(1)}`,
      `${plainId}${usedIds.size}`,
    ].find((id) => !usedIds.has(id))!;
    usedIds.add(id);
    return id;
  };
}

function describeParameters(
  route: Route,
  routeNotes: RouteDescription,
  getTemplateName: (name: string) => string,
): object[] {
  const pathParameters = [...route.path.matchAll(/:(\w+)/g)].map(([, name]) => ({
    ...{ name: getTemplateName(name!), in: "path", required: true },
    schema: routeNotes.pathParameters.get(name!) ?? { type: "string" },
  }));
  const queryParameters = [...routeNotes.queryParameters].map(([name, schema]) => ({
    name,
    in: "query",
    required: false,
    schema,
  }));
  const isGet = route.method === "GET";
  return [
    ...pathParameters,
    ...queryParameters,
    ...(routeNotes.readsIfMatch ? [IF_MATCH_PARAMETER] : []),
    ...(isGet ? [IF_NONE_MATCH_PARAMETER] : []),
  ];
}

function describeOperation(
  route: Route,
  routeNotes: RouteDescription,
  operationId: string,
  parameters: object[],
): object {
  const { successStatus = 200, allowsAnonymous } = route;
  const etag = { ETag: { description: "The state that is shown.", schema: { type: "string" } } };
  const createSuccessResponse = (schema: JsonSchema) => ({
    description: "Done.",
    ...((routeNotes.setsEtag || route.method === "GET") && { headers: etag }),
    content: { "application/json": { schema } },
  });
  return {
    operationId,
    tags: [/^\/v\d+\/apps\/:\w+\/([\w-]+)/.exec(route.path)?.[1] ?? "apps"],
    ...(routeNotes.description && { summary: routeNotes.description }),
    ...(parameters.length > 0 && { parameters }),
    ...(routeNotes.requestBodySchema && {
      requestBody: { content: { "application/json": { schema: routeNotes.requestBodySchema } } },
    }),
    ...(allowsAnonymous && { security: [{ authToken: [] }, { bearer: [] }, {}] }),
    responses: {
      [String(successStatus)]: createSuccessResponse(
        route.canReturnWarnings ? addWarningsToSchema(routeNotes.responseSchema) : routeNotes.responseSchema,
      ),
      ...(routeNotes.planResponseSchema && { 200: createSuccessResponse(routeNotes.planResponseSchema) }),
      ...(route.method === "GET" && {
        304: { description: "If-None-Match names the ETag: the client has this representation." },
      }),
      default: { $ref: "#/components/responses/Failure" },
    },
  };
}

/** @param baseUrl the service's address, without a trailing slash */
export async function createOpenapiDocument(
  schema: GraphQLSchema,
  routes: readonly Route[],
  baseUrl: string,
): Promise<object> {
  const schemas = new OpenApiSchemas();
  const recordRoute = createRouteRecorder(schema, schemas);
  const templates = new PathTemplates();
  const createOperationId = createOperationIdGenerator();
  const paths: PathItems = {};
  for (const route of routes) {
    const routeNotes = await recordRoute(route);
    const { template, getTemplateName } = templates.createTemplate(route.path);
    const operation = describeOperation(
      route,
      routeNotes,
      createOperationId(routeNotes.operation, route),
      describeParameters(route, routeNotes, getTemplateName),
    );
    paths[template] = { ...paths[template], [route.method.toLowerCase()]: operation };
  }
  const failure = {
    description: "The service rejected the request, or an error occurred.",
    content: { "application/json": { schema: { $ref: "#/components/schemas/Failure" } } },
  };
  return {
    openapi: "3.1.0",
    info: { title: "Svc App Actions", version: API_VERSION, license: { name: "Apache-2.0", identifier: "Apache-2.0" } },
    servers: [{ url: baseUrl }],
    security: [{ authToken: [] }, { bearer: [] }],
    paths,
    components: {
      schemas: { Failure: ERROR_SCHEMA, ...schemas.components },
      responses: { Failure: failure },
      securitySchemes: {
        authToken: { type: "apiKey", in: "header", name: "Auth-token" },
        bearer: { type: "http", scheme: "bearer" },
      },
    },
  };
}
