/**
 * Generates requests for every REST route with GET and every GraphQL query, with filters and pages. Reads the routes and queries from the
 * OpenAPI document and the GraphQL schema, so that new ones are included. A parameter that has no test values causes an error.
 */
import {
  type GraphQLArgument,
  type GraphQLField,
  type GraphQLSchema,
  getNamedType,
  getNullableType,
  isEnumType,
  isListType,
  isNonNullType,
  isObjectType,
} from "graphql";
import { sampleOf } from "../harness/samples.js";
import type { TestService } from "../harness/service.js";
import { selectionOf } from "./calls-by-number.js";

// biome-ignore lint/suspicious/noExplicitAny: an OpenAPI document has no static type
type Json = Record<string, any>;
type Values = Readonly<Record<string, unknown>>;

export interface ListEndpoint {
  name: string;
  returnsList: boolean;
  /** Requests with only the required parameters. */
  plainRequests: readonly Values[];
  /** Requests with filters and pages. */
  filteredRequests: readonly Values[];
  /** Sends a request as the caller `as`. The app, the organization and all resources have the ID `id`. */
  send(service: TestService, as: string | null, id: number, values: Values): Promise<Reply>;
}

export interface Reply {
  succeeded: boolean;
  text: string;
}

export const VISIBLE_TEXT = "kept-by-its-own";
export const HIDDEN_TEXT = "never-to-be-shown";

/** Placeholder for the ID in a request. */
const ID = Symbol("ID");
const WHERE = { Owner: "all" };
const ENTRY_QUERIES = [
  { where: WHERE, includePagination: true },
  ...[0, 1, 2].map((limit) => ({ where: WHERE, limit, offset: limit, includePagination: true })),
  { where: WHERE, limit: 1, cursor: "first" },
  { where: WHERE, order: [["data.Secret", "DESC"]], limit: 1, includePagination: true },
  { where: { ...WHERE, Secret: { $exists: true } }, includePagination: true },
  { where: { ...WHERE, Name: { $iLike: "%never%" } }, limit: 0, includePagination: true },
  { where: WHERE, aggregate: [{ $group: { _id: "$Secret", n: { $count: {} } } }] },
  { where: WHERE, aggregate: [{ $count: "n" }] },
];
const TEXTS = [HIDDEN_TEXT, VISIBLE_TEXT, "own"];
const DAY_MS = 86_400_000;
const inDays = (days: number) => new Date(Date.now() + days * DAY_MS).toISOString();
/** Name of a data source whose access rules hide a column but no entry. */
export const COLUMN_SOURCE = "Columns";

/**
 * Test values of parameters that are neither IDs, enums nor booleans. Cursors have no test values, because each one comes from a response.
 */
const VALUES: Readonly<Record<string, readonly unknown[]>> = {
  search: TEXTS,
  name: TEXTS,
  key: [`_${VISIBLE_TEXT}`, `_${HIDDEN_TEXT}`],
  keys: [[`_${VISIBLE_TEXT}`, `_${HIDDEN_TEXT}`]],
  columns: [["Name"], ["Secret"], ["Owner", "Name"]],
  query: ENTRY_QUERIES,
  options: [{ limit: 1 }, { limit: 0, offset: 1 }],
  where: [{ type: "x" }],
  trial: [{ user: { data: {} }, accessRules: [{ type: ["select"], allow: "all" }] }],
  ds: [ID, COLUMN_SOURCE],
  dataSourceId: [ID, COLUMN_SOURCE],
  code: ["const execute = async () => 1"],
  dependencies: [["lodash"]],
  frequency: ["0 3 * * *"],
  timezone: ["UTC"],
  integrity: ["sha256-AAAA"],
  count: [3],
  expiresIn: [60],
  from: [inDays(-1)],
  to: [inDays(1)],
  against: ["production"],
  cursor: [],
  // Only the GraphQL schema lists the allowed values of these parameters.
  state: ["queued", "completed"],
  trigger: ["manual", "schedule"],
  copy: ["master", "production"],
  status: ["draft", "published", "queued"],
  kind: ["email"],
  by: ["id", "name", "hour", "day"],
};
const LIMITS = [0, 1, 2, 100];
/** Parameters that an operation requires although its description makes them optional. */
const REQUIRED_BY_OPERATION: Readonly<Record<string, string>> = {
  "GET /v3/apps/{appId}/schedule/preview": "frequency",
  "GET /v3/apps/{appId}/packages/declarations": "integrity",
  "query dataSourceEntries": "query",
  "query mediaAccessRules": "folderId",
};

function valuesOf(
  name: string,
  alternatives: readonly unknown[] | null,
  isId: boolean,
  at: string,
): readonly unknown[] {
  const values = alternatives ?? VALUES[name] ?? (isId ? [ID] : null);
  if (values === null) throw new Error(`${at}: the parameter ${name} has no values in this test`);
  return values;
}

interface Parameter {
  name: string;
  isRequired: boolean;
  values: readonly unknown[];
}

/** Returns requests with only the required parameters, and requests that also have a filter, a page or both. */
function requestsOf(
  endpoint: string,
  parameters: readonly Parameter[],
): Pick<ListEndpoint, "plainRequests" | "filteredRequests"> {
  const isPage = ({ name }: Parameter) => name === "limit" || name === "offset";
  const isNeeded = ({ name, isRequired }: Parameter) => isRequired || REQUIRED_BY_OPERATION[endpoint] === name;
  const plainRequests = parameters
    .filter(isNeeded)
    .reduce<Values[]>(
      (made, { name, values }) => made.flatMap((before) => values.map((value) => ({ ...before, [name]: value }))),
      [{}],
    );
  const filteredRequests = parameters
    .filter((parameter) => !isPage(parameter) && !isNeeded(parameter))
    .flatMap(({ name, values }) => values.map((value) => ({ ...plainRequests[0], [name]: value })));
  const [hasLimit, hasOffset] = ["limit", "offset"].map((page) => parameters.some(({ name }) => name === page));
  const pages = [...plainRequests, ...filteredRequests].flatMap((request, index) =>
    LIMITS.map((limit) => ({ ...request, limit, ...(hasOffset && { offset: (index + limit) % 3 }) })),
  );
  return { plainRequests, filteredRequests: [...filteredRequests, ...(hasLimit ? sampleOf(pages, 0, 3) : [])] };
}

const replaceIds = (values: Values, id: number): Values =>
  Object.fromEntries(Object.entries(values).map(([name, value]) => [name, value === ID ? id : value]));

/** True if the schema is an array, has an array as a field, or has no type. */
function hasArray(schema: Json, components: Json): boolean {
  const resolve = (reference: Json): Json =>
    reference["$ref"] ? components[reference["$ref"].split("/").at(-1)] : reference;
  const variants = (resolve(schema)["anyOf"] as Json[] | undefined) ?? [schema];
  return variants.map(resolve).some((variant) => {
    const isArray = (of: Json) => [resolve(of)["type"]].flat().includes("array");
    return isArray(variant) || !variant["type"] || Object.values<Json>(variant["properties"] ?? {}).some(isArray);
  });
}

function routeEndpoint(path: string, operation: Json, components: Json): ListEndpoint {
  const name = `GET ${path}`;
  const parameters = ((operation["parameters"] ?? []) as Json[])
    .filter((parameter) => parameter["in"] !== "header")
    .map((parameter) => {
      const { type, enum: alternatives } = (parameter["schema"] ?? {}) as Json;
      const isFlag = [type].flat().includes("boolean");
      const isId = parameter["in"] === "path" || [type].flat().includes("integer") || /Id$/.test(parameter["name"]);
      const listed = isFlag ? [true] : (alternatives ?? null);
      return {
        name: parameter["name"] as string,
        isRequired: parameter["in"] === "path",
        values: valuesOf(parameter["name"], parameter["name"] === "provider" ? ["none"] : listed, isId, name),
      };
    });
  return {
    name,
    returnsList: hasArray(operation["responses"]["200"].content["application/json"].schema, components),
    ...requestsOf(name, parameters),
    async send(service, as, id, values) {
      const rest = { ...replaceIds(values, id) };
      const filled = path.replace(/\{(\w+)\}/g, (_, parameter: string) => {
        const value = rest[parameter];
        delete rest[parameter];
        return [value]
          .flat()
          .map((item) => encodeURIComponent(String(item)))
          .join(",");
      });
      const query = new URLSearchParams();
      for (const [key, value] of Object.entries(rest)) {
        query.set(key, Array.isArray(value) ? JSON.stringify(value) : String(value));
      }
      const { http, body } = await service.rest("GET", `${filled}?${query}`, { as });
      return { succeeded: http === 200, text: `${http} ${JSON.stringify(body)}` };
    },
  };
}

const toParameter =
  (field: string) =>
  (argument: GraphQLArgument): Parameter => {
    const type = getNamedType(argument.type);
    const alternatives = isEnumType(type) ? type.getValues().map(({ name }) => name) : null;
    const listed = type.name === "Boolean" ? [true] : alternatives;
    return {
      name: argument.name,
      isRequired: isNonNullType(argument.type),
      values: valuesOf(argument.name, listed, ["Int", "ID", "SafeInt"].includes(type.name), field),
    };
  };

function queryEndpoint(field: GraphQLField<unknown, unknown>): ListEndpoint {
  const name = `query ${field.name}`;
  const type = getNamedType(field.type);
  const isList = (of: GraphQLField<unknown, unknown>) => isListType(getNullableType(of.type));
  const hasList = isObjectType(type) && Object.values(type.getFields()).some(isList);
  return {
    name,
    returnsList: isList(field) || hasList || type.name === "JSON",
    ...requestsOf(name, field.args.map(toParameter(name))),
    async send(service, as, id, values) {
      const usedArguments = field.args.filter((argument) => argument.name in values);
      const declared = usedArguments.map((argument) => `$${argument.name}: ${argument.type}`).join(", ");
      const passed = usedArguments.map((argument) => `${argument.name}: $${argument.name}`).join(", ");
      const inParentheses = (text: string) => (text === "" ? "" : `(${text})`);
      const document = `query ${inParentheses(declared)} { ${field.name}${inParentheses(passed)} ${selectionOf(field.type)} }`;
      const answer = await service.graphql(document, replaceIds(values, id), { as });
      return { succeeded: answer.errors === undefined, text: JSON.stringify(answer) };
    },
  };
}

export function listEndpoints(openapi: object, schema: GraphQLSchema): ListEndpoint[] {
  const { paths, components } = openapi as Json;
  const routes = Object.entries<Json>(paths).filter(([, methods]) => methods["get"]);
  return [
    ...routes.map(([path, methods]) => routeEndpoint(path, methods["get"], components.schemas)),
    ...Object.values(schema.getQueryType()!.getFields()).map(queryEndpoint),
  ];
}
