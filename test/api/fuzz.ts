/** Requests for every route of the OpenAPI document and every field of the GraphQL schema, with unusual values for texts and numbers. */
import fc from "fast-check";
import {
  type GraphQLField,
  type GraphQLInputType,
  type GraphQLSchema,
  getNamedType,
  isEnumType,
  isInputObjectType,
  isListType,
  isNonNullType,
  isObjectType,
} from "graphql";
import type { TestService } from "../harness/service.js";

export type ValueGenerator = (kind: "text" | "number" | "any") => unknown;

export const createNulValue: ValueGenerator = (kind) =>
  kind === "number" ? 1 : kind === "any" ? { "a\0": "b\0" } : "a\0b";

const TEXTS = [
  "",
  " ",
  "\0",
  "a\0b",
  "\ud800",
  "1",
  "-1",
  "1e400",
  "%",
  "__proto__",
  "'\"",
  "👩‍👩‍👧",
  "x".repeat(600),
  "2026-01-01T00:00:00.000Z",
];
const UNUSUAL_NUMBERS = [0, -1, 1, 1.5, 2 ** 31, 2 ** 53, -(2 ** 63), 1e308];

/** Returns a function that creates an unusual or a plausible value. `nextRandom` supplies the random numbers. */
export function createRandomValueGenerator(nextRandom: () => number): ValueGenerator {
  const pickFrom = <T>(list: readonly T[]): T => list[nextRandom() % list.length]!;
  return (kind) => {
    if (kind === "text") return pickFrom(TEXTS);
    if (kind === "number") return pickFrom(UNUSUAL_NUMBERS);
    return pickFrom([
      null,
      {},
      [],
      { [pickFrom(TEXTS)]: pickFrom(TEXTS) },
      [pickFrom(TEXTS)],
      pickFrom(TEXTS),
      pickFrom(UNUSUAL_NUMBERS),
    ]);
  };
}

// biome-ignore lint/suspicious/noExplicitAny: an OpenAPI document has no static type
type Schema = Record<string, any>;

function valueOfSchema(
  schema: Schema | undefined,
  components: Schema,
  generateValue: ValueGenerator,
  depth = 4,
): unknown {
  if (!schema || depth === 0) return generateValue("any");
  if (schema["$ref"])
    return valueOfSchema(components[schema["$ref"].split("/").at(-1)], components, generateValue, depth - 1);
  if (schema["anyOf"]) return valueOfSchema(schema["anyOf"][0], components, generateValue, depth);
  if (schema["enum"]) return schema["enum"][0];
  const type = [schema["type"]].flat()[0];
  if (type === "array") return [valueOfSchema(schema["items"], components, generateValue, depth - 1)];
  if (type === "integer" || type === "number") return generateValue("number");
  if (type === "boolean") return true;
  if (type === "string") return generateValue("text");
  if (!schema["properties"]) return generateValue("any");
  const fields = Object.entries(schema["properties"] as Schema);
  return Object.fromEntries(
    fields.map(([name, fieldSchema]) => [name, valueOfSchema(fieldSchema, components, generateValue, depth - 1)]),
  );
}

export interface RestCall {
  method: string;
  path: string;
  body?: unknown;
}

/** Builds a request for this path and method. IDs in the path are 1. `generateValue` creates all other values. */
export function restCall(document: Schema, path: string, method: string, generateValue: ValueGenerator): RestCall {
  const { parameters = [], requestBody } = document["paths"][path][method] as {
    parameters: Schema[];
    requestBody: Schema;
  };
  const text = (value: unknown) => (typeof value === "string" ? value.toWellFormed() : JSON.stringify(value));
  let filled = path;
  const query = new URLSearchParams();
  for (const { name, in: where, schema } of parameters) {
    const value = schema?.["type"] === "integer" ? generateValue("number") : generateValue("text");
    if (where === "path") {
      const isId = schema?.["type"] === "integer" || /^(appId|app|id)$/.test(name);
      filled = filled.replace(`{${name}}`, isId ? "1" : encodeURIComponent(text(value)) || "x");
    }
    if (where === "query") query.set(name, text(value));
  }
  const schema = requestBody?.["content"]["application/json"].schema;
  const body = schema && valueOfSchema(schema, document["components"].schemas, generateValue);
  const search = [...query].length > 0 ? `?${query}` : "";
  return { method: method.toUpperCase(), path: filled + search, ...(body !== undefined && { body }) };
}

function valueOfType(type: GraphQLInputType, generateValue: ValueGenerator, depth = 4): unknown {
  if (isNonNullType(type)) return valueOfType(type.ofType, generateValue, depth);
  if (isListType(type)) return [valueOfType(type.ofType, generateValue, depth)];
  if (isEnumType(type)) return type.getValues()[0]!.name;
  if (isInputObjectType(type)) {
    if (depth === 0) return {};
    const fields = Object.values(type.getFields());
    return Object.fromEntries(fields.map((field) => [field.name, valueOfType(field.type, generateValue, depth - 1)]));
  }
  const { name } = type;
  if (name === "Int" || name === "Float" || name === "SafeInt") return toGraphqlInt(generateValue("number"));
  if (name === "Boolean") return true;
  if (name === "DateTime") return "2026-01-01T00:00:00.000Z";
  return name === "String" || name === "ID" ? generateValue("text") : generateValue("any");
}

/**
 * Returns a valid GraphQL Int: the truncated number, or 1 if it is too large. So GraphQL does not reject the number before the operation.
 */
const toGraphqlInt = (value: unknown): number =>
  Math.abs(value as number) < 2 ** 31 ? Math.trunc(value as number) : 1;

function selectionOf(field: GraphQLField<unknown, unknown>): string {
  return isObjectType(getNamedType(field.type)) ? " { __typename }" : "";
}

/** Builds a document that calls the field, and its variables. `appId` is 1; `generateValue` creates all other values. */
export function graphqlCall(
  schema: GraphQLSchema,
  kind: "query" | "mutation",
  name: string,
  generateValue: ValueGenerator,
) {
  const root = kind === "query" ? schema.getQueryType() : schema.getMutationType();
  const field = root!.getFields()[name]!;
  const variables = Object.fromEntries(
    field.args.map(({ name: argument, type }) => [
      argument,
      argument === "appId" ? 1 : valueOfType(type, generateValue),
    ]),
  );
  const head = field.args.map(({ name: argument, type }) => `$${argument}: ${type}`).join(", ");
  const args = field.args.map(({ name: argument }) => `${argument}: $${argument}`).join(", ");
  const query = `${kind} ${head && `(${head})`} { ${name}${args && `(${args})`}${selectionOf(field)} }`;
  return { query, variables };
}

/** Operations that the fuzz test skips, because they could remove the credential or the rights of the test. */
const SKIPPED_OPERATIONS = /tokens\/\{|revokeToken|editors|removeEditor|addEditor/;

/**
 * Sends one request for each REST operation, GraphQL query and mutation, except SKIPPED_OPERATIONS. Returns the number of requests, and in
 * `found` those that caused a server error. A 503 is no such error.
 */
export async function sendFuzzRequests(
  service: TestService,
  document: Schema,
  schema: GraphQLSchema,
  generateValue: () => ValueGenerator,
): Promise<{ found: string[]; count: number }> {
  const found: string[] = [];
  let count = 0;
  for (const [path, methods] of Object.entries<Schema>(document["paths"])) {
    for (const method of Object.keys(methods)) {
      if (SKIPPED_OPERATIONS.test(path)) continue;
      const call = restCall(document, path, method, generateValue());
      count += 1;
      const { http, body } = await service.rest(call.method, call.path, { as: "admin", body: call.body });
      if (http >= 500 && http !== 503)
        found.push(`${call.method} ${call.path} ${JSON.stringify(call.body)}: ${JSON.stringify(body)}`);
    }
  }
  for (const kind of ["query", "mutation"] as const) {
    const root = kind === "query" ? schema.getQueryType() : schema.getMutationType();
    for (const name of Object.keys(root!.getFields())) {
      if (SKIPPED_OPERATIONS.test(name)) continue;
      const { query, variables } = graphqlCall(schema, kind, name, generateValue());
      count += 1;
      const { errors = [] } = await service.graphql(query, variables, { as: "admin" });
      for (const { extensions, message } of errors) {
        if (/INTERNAL_ERROR|PUBLISH_FAILED|RESTORE_FAILED/.test(extensions.status)) {
          found.push(`${name} ${JSON.stringify(variables)}: ${extensions.status} ${message}`);
        }
      }
    }
  }
  return { found, count };
}

/** Returns a function that returns pseudo-random numbers. The same seed gives the same numbers. */
export function numbersFrom(seed: number): () => number {
  const numbers = fc.sample(fc.nat(), { seed, numRuns: 5_000 });
  let at = 0;
  return () => numbers[at++ % numbers.length]!;
}
