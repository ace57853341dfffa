/**
 * Builds the reference page of the REST routes from the OpenAPI document: callers, request and response of each. Recorded responses are in
 * rest-responses.json, which test/api/openapi.test.ts writes if RECORD_RESPONSES=1. All other responses are samples in rest-responses.ts.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { GraphQLSchema } from "graphql";
import { createOpenapiDocument } from "../../api/openapi/document.js";
import { ROUTES } from "../../api/rest/routes.js";
import type { Operation } from "../../rules/access.js";
import { CALLERS_NOTE, describeCallers, usesAccessRules } from "./callers.js";
import { describeQueryParameters } from "./query-parameters.js";
import { SAMPLE_BODIES, SAMPLE_FIELD_VALUES, SAMPLE_QUERY_STRINGS, WEBAUTHN_ROUTES } from "./rest-bodies.js";
import { SAMPLE_RESPONSES } from "./rest-responses.js";
import { type RecordedResponse, SAMPLE_TIME } from "./shown-response.js";
import { buildReferencePage, formatInlineCode, formatMarkdownTable } from "./tables.js";

interface Schema {
  $ref?: string;
  type?: string | string[];
  const?: unknown;
  enum?: unknown[];
  format?: string;
  properties?: Record<string, Schema>;
  items?: Schema;
  anyOf?: Schema[];
  oneOf?: Schema[];
  allOf?: Schema[];
}

interface RestOperation {
  operationId: string;
  tags: string[];
  summary?: string;
  security?: unknown;
  parameters?: { name: string; in: string }[];
  requestBody?: { content: Record<string, { schema: Schema }> };
  responses: Record<string, { content?: Record<string, { schema: Schema }> }>;
}

interface Document {
  paths: Record<string, Record<string, RestOperation>>;
  components: { schemas: Record<string, Schema> };
}

const EXAMPLE_BASE_URL = "http://127.0.0.1:4000";
const SAMPLE_FIELDS_MAX = 8;
const SAMPLE_DEPTH_MAX = 2;

/** Summaries of the routes whose OpenAPI operation has no summary, by method and path. */
const FALLBACK_SUMMARIES: Record<string, string> = {
  "POST /v1/apps/{appId}/stages": "Creates a stage of the app.",
  "POST /v1/apps/{appId}/visitors":
    "Starts the session of a visitor. The header `Origin` must be an origin that the app lists; otherwise the response is 403.",
  "POST /v1/auth/invitations/accept": "Accepts an invitation by its link.",
  "POST /v1/auth/setup": "Creates the first administrator by the setup link.",
  "POST /v1/auth/sign-in": "Signs a person in with e-mail and passphrase.",
  "POST /v1/auth/sign-out": "Ends the session.",
  "PUT /v1/auth/account": "Changes the person's name or passphrase.",
  "POST /v1/auth/reset": "Sends a link that resets the passphrase.",
  "POST /v1/auth/reset/confirm": "Sets a new passphrase by the reset link.",
  "GET /v1/auth/providers": "Lists the OpenID providers at which people sign in.",
  "POST /v1/auth/passkeys/authentication-options":
    "Returns the options for a sign-in by passkey. The option `rpId` is the host of the service's URL. Passkeys do not work if this host is an IP address: browsers accept only a domain or `localhost`.",
  "POST /v1/auth/passkeys/sign-in": "Signs a person in by passkey.",
  "POST /v1/auth/passkeys/registration-options": "Returns the options for a new passkey.",
  "POST /v1/auth/passkeys": "Registers a passkey.",
  "GET /v1/auth/passkeys/{passkeyId}": "Returns one passkey of the person.",
  "POST /v1/apps/{appId}/data-sources/{ds}/query":
    'Returns the entries that match the query in the body. If the query has `type: "delete"`, deletes the entries that match `where` instead, and returns `deletedCount`. Such a query needs `where`, must have no other fields, and needs the right to delete entries.',
  "POST /v1/apps/{appId}/session": "Signs an app user in to the page's session.",
  "POST /v1/apps/{appId}/session/verify": "Sends a code to an app user, or checks a code that the user entered.",
  "PUT /v1/apps/{appId}/media/folders/{id}": "Renames or moves a folder.",
  "GET /v1/apps/{appId}/media/files": "Lists the files of the app.",
  "PUT /v1/apps/{appId}/media/files/{id}": "Renames or moves a file.",
  "GET /v1/apps/{appId}/media/files/{id}/accessRules": "Returns the access rules of a file.",
  "PUT /v1/apps/{appId}/media/files/{id}/accessRules": "Replaces the access rules of a file.",
  "GET /v1/apps/{appId}/media/folders/{id}/accessRules": "Returns the access rules of a folder.",
  "PUT /v1/apps/{appId}/media/folders/{id}/accessRules": "Replaces the access rules of a folder.",
  "POST /v1/apps/{appId}/ai/completions": "Calls a language model.",
  "POST /v1/apps/{appId}/ai/embeddings": "Computes embeddings.",
  "POST /v1/apps/{appId}/ai/image": "Generates an image.",
  "POST /v1/apps/{appId}/ai/transcribe": "Transcribes speech.",
};

/** Routes that send or receive something other than JSON. The main table of REST routes does not contain them. */
const ROUTES_WITHOUT_JSON: readonly (readonly [route: string, meaning: string, page: string])[] = [
  ["POST /v1/apps/{appId}/data-sources/{ds}/import", "Imports a file of entries", "data-sources.md#import"],
  ["GET /v1/apps/{appId}/data-sources/{ds}/export", "Exports all entries as a file", "data-sources.md#export"],
  ["POST /v1/apps/{appId}/media/files", "Uploads files", "media.md#files"],
  ["GET /v1/apps/{appId}/media/files/{id}/contents", "Returns the bytes of a file", "media.md#files"],
  ["GET /v1/apps/{appId}/svc.d.ts", "Returns the types of the app", "source.md#check-types"],
  ["GET /v1/apps/{appId}/env.js", "Returns a script with the public settings", "pages.md"],
  ["GET /v3/apps/{appId}/actions/{id}/compile", "Returns the script of a client action", "pages.md"],
  ["POST /v1/apps/{appId}/communicate/events", "Receives delivery reports", "messages.md"],
  ["POST /v1/apps/{appId}/git/webhook", "Receives pushes of a git server", "git.md"],
  ["GET /schemas/manifest.json", "Returns the JSON Schema of the manifest", "manifest.md"],
  ["/h/{appId}/*", "Runs an HTTP trigger, with its method", "http-triggers.md"],
  ["POST /mcp", "Calls a tool; other methods get 405", "agents.md"],
  ["/graphql", "Runs a GraphQL operation; also as a websocket", "api.md#graphql-over-http"],
  [
    "/v1/session",
    "Signs a browser in to Studio by a token; GET reads the session, DELETE ends it",
    "api.md#credentials",
  ],
  [
    "GET /v1/auth/oidc/{provider}/start, GET /v1/auth/oidc/{provider}/callback",
    "Sign a person in at an OpenID provider",
    "../operate/people.md#sign-in-at-an-openid-provider",
  ],
  [
    "POST /v1/auth/oidc/{provider}/link",
    "Links an OpenID provider to the account that is signed in",
    "../operate/people.md#sign-in-at-an-openid-provider",
  ],
  ["/oauth/*", "Gives programs access by OAuth 2.1", "agents.md#sign-in-without-a-token"],
  ["GET /.well-known/*", "Describes the OAuth server and the address of `/mcp`", "agents.md#sign-in-without-a-token"],
  ["GET /v1/openapi.json", "Returns this reference for programs", "api.md"],
  ["GET /apps/{id}, GET /apps/{id}/viewer", "Return the live app and the viewer of drafts", "pages.md"],
  ["GET /client/*, GET /assets/*", "Return the client library, scripts of packages, and files of Studio", "pages.md"],
  ["GET /, GET /studio/*", "Return Studio", "../start/studio.md"],
  [
    "GET /docs, GET /docs.md, GET /docs/*, GET /README.md, GET /BENCHMARKS.md, GET /CHANGELOG.md, GET /CONTRIBUTING.md, GET /SECURITY.md, GET /LICENSE, GET /llms.txt, GET /llms-full.txt",
    "Return this documentation",
    "agents.md#read-the-documentation-as-text",
  ],
  ["GET /health/live, GET /health/ready, GET /metrics", "Return the state of the process", "../operate/operating.md"],
];

const SAMPLE_SCALARS: Record<string, unknown> = { integer: 1, number: 1, boolean: true, string: "text", null: null };

const MORE_FIELDS = { "…": "…" };

function createExample(schema: Schema, document: Document, depth = 0): unknown {
  if (schema.const !== undefined) return schema.const;
  if (schema.enum) return schema.enum[0];
  const choice = (schema.anyOf ?? schema.oneOf ?? schema.allOf)?.find(({ type }) => type !== "null");
  if (choice) return createExample(choice, document, depth);
  if (schema.$ref !== undefined)
    return createExample(document.components.schemas[schema.$ref.split("/").at(-1)!] ?? {}, document, depth);
  const type = [schema.type ?? (schema.properties ? "object" : [])].flat()[0];
  if (type === "array") return depth > SAMPLE_DEPTH_MAX ? [] : [createExample(schema.items ?? {}, document, depth + 1)];
  if (type === "object") return depth > SAMPLE_DEPTH_MAX ? MORE_FIELDS : createExampleObject(schema, document, depth);
  if (schema.format === "date-time") return SAMPLE_TIME;
  return SAMPLE_SCALARS[type ?? ""] ?? MORE_FIELDS;
}

/** Returns a sample value for a field: by the field's name if the schema allows any value or text, otherwise by the schema. */
function createFieldExample(name: string, schema: Schema, document: Document, depth: number): unknown {
  const example = createExample(schema, document, depth);
  const isVague = example === MORE_FIELDS || example === SAMPLE_SCALARS["string"];
  return isVague ? (SAMPLE_FIELD_VALUES[name] ?? example) : example;
}

function createExampleObject({ properties = {} }: Schema, document: Document, depth: number): object {
  const names = Object.keys(properties);
  if (names.length === 0) return MORE_FIELDS;
  const exampleFields = names
    .slice(0, SAMPLE_FIELDS_MAX)
    .map((name) => [name, createFieldExample(name, properties[name]!, document, depth + 1)]);
  return Object.fromEntries(names.length > SAMPLE_FIELDS_MAX ? [...exampleFields, ["…", "…"]] : exampleFields);
}

const formatJson = (value: unknown): string =>
  JSON.stringify(value)
    .replaceAll('"…":"…"', "…")
    .replaceAll(/,"…"\]/g, ",…]");

const findBodySchema = (content: Record<string, { schema: Schema }> | undefined): Schema | null =>
  Object.values(content ?? {})[0]?.schema ?? null;

interface RouteRow {
  method: string;
  path: string;
  operation: RestOperation;
}

function createSampleBody({ method, path, operation }: RouteRow, document: Document): unknown {
  const schema = findBodySchema(operation.requestBody?.content);
  if (!schema) return null;
  const route = `${method} ${path}`;
  if (WEBAUTHN_ROUTES.includes(route)) return MORE_FIELDS;
  return SAMPLE_BODIES[route] ?? createExample(schema, document);
}

/** Sample values of path parameters. All other path parameters have the sample value 1. */
const SAMPLE_PATH_VALUES: Readonly<Record<string, string>> = {
  ds: "Talks",
  nameOrId: "greet",
  name: "preset",
  columns: "Title",
  provider: "google",
  stageAppId: "4",
};

/**
 * Returns a route's status and response body for the reference: the recorded response, otherwise the sample.
 * @throws Error if the route has a response body but neither of them
 */
function formatResponse({ method, path, operation }: RouteRow, recordedResponse: RecordedResponse | undefined): string {
  if (recordedResponse)
    return `${recordedResponse.http}${recordedResponse.body === "" ? "" : ` ${formatJson(recordedResponse.body)}`}`;
  // Takes the highest success status: a route with `?plan=true` has 200 for the plan, and 201 for the change itself.
  const [status = "200", response] = Object.entries(operation.responses).findLast(([code]) => /^2/.test(code)) ?? [];
  const sample = SAMPLE_RESPONSES[`${method} ${path}`];
  if (sample) return `${status} ${formatJson(sample)}`;
  if (response?.content)
    throw new Error(
      `the reference has no example response of ${method} ${path}; record a response, or add a sample to rest-responses.ts`,
    );
  return status;
}

function formatRoute(
  row: RouteRow,
  document: Document,
  schema: GraphQLSchema,
  callers: string,
  recordedResponse: RecordedResponse | undefined,
): string {
  const { method, path, operation } = row;
  const summary = operation.summary ?? FALLBACK_SUMMARIES[`${method} ${path}`] ?? "";
  const body = createSampleBody(row, document);
  const queryNames = (operation.parameters ?? [])
    .filter((parameter) => parameter.in === "query")
    .map(({ name }) => name);
  const examplePath = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => SAMPLE_PATH_VALUES[name] ?? "1");
  const address = recordedResponse?.address ?? `${examplePath}${SAMPLE_QUERY_STRINGS[`${method} ${path}`] ?? ""}`;
  const request = `${method} ${EXAMPLE_BASE_URL}${address}${body === null ? "" : `\n${formatJson(body)}`}`;
  const noteLines = [
    summary,
    `- Callers: ${callers}`,
    ...describeQueryParameters(schema, operation.operationId, queryNames),
  ];
  const example = `${request}

${formatResponse(row, recordedResponse)}`;
  return `### ${method} ${path}\n\n${noteLines.join("\n")}\n\n\`\`\`text\n${example}\n\`\`\``;
}

/**
 * Returns a description of a route's callers: those who may use the operations of its resolver method. If the method checks no operation,
 * returns "everyone", or "a signed-in person" if the route needs a credential.
 */
function describeRouteCallers(
  { operation }: RouteRow,
  operationsByField: ReadonlyMap<string, readonly Operation[]>,
): string {
  const name = operation.operationId;
  const fields = [...operationsByField.keys()].filter(
    (field) => name.startsWith(field) && /^(?:By[A-Z]|\d|$)/.test(name.slice(field.length)),
  );
  const [field] = fields.sort((a, b) => b.length - a.length);
  const operations = operationsByField.get(field ?? "") ?? [];
  const callers = describeCallers(operations);
  const allowsAnonymous = operation.security !== undefined;
  if (callers === "") return allowsAnonymous ? "everyone" : "a signed-in person";
  return allowsAnonymous || usesAccessRules(field ?? "", operations)
    ? `${callers}; other callers if an access rule of the app allows the request`
    : callers;
}

export async function buildRestRoutesPage(
  schema: GraphQLSchema,
  operationsByField: ReadonlyMap<string, readonly Operation[]>,
  root: string,
): Promise<string> {
  const recordedResponses: Readonly<Record<string, RecordedResponse>> = JSON.parse(
    readFileSync(join(root, "src/cli/reference/rest-responses.json"), "utf8"),
  );
  const document = (await createOpenapiDocument(schema, ROUTES, EXAMPLE_BASE_URL)) as Document;
  const rows = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]): RouteRow => ({ method: method.toUpperCase(), path, operation })),
  );
  const getSectionName = ({ path, operation }: RouteRow) =>
    path.startsWith("/v1/auth") ? "sign-in" : operation.tags[0]!;
  const tags = [...new Set(rows.map(getSectionName))].sort();
  const lead = `For everyone who calls the service over HTTP. [The API](api.md) explains credentials, errors, limits and conditional requests.

**Examples** show real responses, but with the same sample time everywhere. A \`…\` stands for further fields, items or characters. [The GraphQL types](graphql-operations.md#types) list all fields.

**Next page of a list.** If the response has a field \`nextCursor\`, send its value as query parameter \`cursor\` to get the next page. For runs, send \`nextBefore\` as \`before\`. For other lists, send a larger \`offset\`.

**IDs and names.** If a path accepts an ID or a name, the service reads digits as an ID. With the query parameter \`by=name\`, it reads digits as a name.`;
  const sections = tags.map((tag) => {
    const tagRows = rows.filter((row) => getSectionName(row) === tag);
    return `## ${tag}\n\n${tagRows.map((row) => formatRoute(row, document, schema, describeRouteCallers(row, operationsByField), recordedResponses[`${row.method} ${row.path}`])).join("\n\n")}`;
  });
  const otherRoutesTable = formatMarkdownTable(
    ["route", "what it does", "page"],
    ROUTES_WITHOUT_JSON.map(([route, meaning, target]) => {
      const [file = ""] = target.split(".md");
      return [route.split(", ").map(formatInlineCode).join(", "), meaning, `[${file.split("/").at(-1)}](${target})`];
    }),
  );
  sections.push(
    `## Other routes\n\nThe OpenAPI document \`/v1/openapi.json\` does not contain the routes of this table, because they send or receive files, scripts, pages or other formats. Each GET route also answers HEAD requests.\n\n${otherRoutesTable}`,
  );
  return buildReferencePage(
    "REST routes",
    `${lead}\n\n${CALLERS_NOTE}`,
    "the route table and `/v1/openapi.json`",
    sections,
  );
}
