/** Returns the paths of all GET routes and of some other pages, and a document for each GraphQL query and subscription. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import {
  buildSchema,
  type GraphQLField,
  type GraphQLOutputType,
  type GraphQLSchema,
  getNamedType,
  isNonNullType,
  isObjectType,
} from "graphql";
import { ROUTES } from "../../src/api/rest/routes.js";

const SCHEMA = fileURLToPath(new URL("../../../schema/schema.graphql", import.meta.url));

export interface Ids {
  organizationId: number;
  appId: number;
  id: number;
  actionId: number;
  versionId: number;
  runId: number;
}

/** Paths that are not in the route table. */
const OTHER_PATHS = [
  "/v1/apps/:appId/env.js",
  "/v3/apps/:appId/actions/:id/compile",
  "/v3/apps/:appId/actions/:id/compile?html",
  "/client/svc.js",
  "/health/ready",
  "/nothing/here",
];

const FREQUENCY = "0 5 * * *";
/** Integrity of a script that no action has. */
const INTEGRITY = `sha256-${"A".repeat(43)}=`;

const QUERY_STRINGS: Record<string, string> = {
  "/v3/apps/:appId/schedule/preview": `?frequency=${encodeURIComponent(FREQUENCY)}`,
  "/v3/apps/:appId/packages/declarations": `?integrity=${encodeURIComponent(INTEGRITY)}`,
};

/** Values of required GraphQL arguments, by name. */
const ARGUMENTS: Record<string, string> = {
  columns: '["Name"]',
  frequency: JSON.stringify(FREQUENCY),
  integrity: JSON.stringify(INTEGRITY),
  where: '{ type: "app.task.completed" }',
};

/** GraphQL arguments that are optional in the schema, but without which the field returns only an error. */
const OPTIONAL_ARGUMENTS: Record<string, string> = { mediaAccessRules: "folderId" };

export function getPaths(ids: Ids): string[] {
  const documented = ROUTES.filter(({ method }) => method === "GET").map(({ path }) => path);
  return [...documented, ...OTHER_PATHS].map((path) => {
    const filled = path.replace(/:(\w+)/g, (_, name: string) => String(ids[name as keyof Ids] ?? ids.id));
    return filled + (QUERY_STRINGS[path] ?? "");
  });
}

function selection(type: GraphQLOutputType, depth: number): string {
  const named = getNamedType(type);
  if (!isObjectType(named)) return "";
  const fields = Object.values(named.getFields()).filter(
    (field) => depth > 1 || !isObjectType(getNamedType(field.type)),
  );
  return ` { ${fields.map((field) => field.name + selection(field.type, depth - 1)).join(" ")} }`;
}

function argument(name: string, type: string, ids: Ids): string {
  if (name in ids) return String(ids[name as keyof Ids]);
  if (name in ARGUMENTS) return ARGUMENTS[name]!;
  if (type.startsWith("Int") || type.startsWith("ID")) return String(ids.id);
  if (type.startsWith("String")) return '"People"';
  return type.startsWith("Boolean") ? "true" : "{}";
}

function call(field: GraphQLField<unknown, unknown>, ids: Ids): string {
  const required = field.args.filter(
    ({ name, type, defaultValue }) =>
      (isNonNullType(type) && defaultValue === undefined) || OPTIONAL_ARGUMENTS[field.name] === name,
  );
  const argumentsText = required.map(({ name, type }) => `${name}: ${argument(name, String(type), ids)}`).join(", ");
  return `${field.name}${argumentsText && `(${argumentsText})`}${selection(field.type, 5)}`;
}

const schema = (): GraphQLSchema => buildSchema(readFileSync(SCHEMA, "utf8"));

/** Builds one document for each query of the schema. The document selects fields up to five levels deep. */
export function queries(ids: Ids): string[] {
  return Object.values(schema().getQueryType()!.getFields()).map((field) => `{ ${call(field, ids)} }`);
}

export function subscriptions(ids: Ids): string[] {
  const fields = Object.values(schema().getSubscriptionType()!.getFields());
  return fields.map((field) => `subscription { ${call(field, ids)} }`);
}
