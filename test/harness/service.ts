/** Starts a whole service in this process with a database of its own, and calls it as each kind of caller. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Client, createClient } from "graphql-ws";
import { pino } from "pino";
import WebSocket from "ws";
import { readConfig } from "../../src/config.js";
import { type Db, openDatabase } from "../../src/data/database.js";
import { createDatabaseNotifications } from "../../src/engine/notifications.js";
import { createFirstAppIfEmpty, type FirstCredentials } from "../../src/operations/access/bootstrap.js";
import { CREDENTIAL_CHANNEL, Credentials } from "../../src/operations/access/credentials.js";
import { type Service, type ServiceStartOptions, startService } from "../../src/service.js";
import { createDatabaseFrom, createTemplate, startTestServer } from "./postgres.js";
import { runsAll } from "./samples.js";
import { sharedBrowserEndpoint } from "./shared-chromium.js";

export type TokenKind = keyof FirstCredentials["tokens"];

/** HTTP response of the service. `http` is the status. `body` is the parsed JSON, or the text if the response is not JSON. */
export interface Answer {
  http: number;
  headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: each route returns another type
  body: any;
}

export interface Call {
  /** Key in the `tokens` of the service, or any other token; null sends no token. By default `editor`. */
  as?: TokenKind | (string & {}) | null;
  body?: unknown;
  headers?: Record<string, string>;
}

export interface TestService {
  url: string;
  databaseUrl: string;
  dataDir: string;
  appId: number;
  organizationId: number;
  tokens: FirstCredentials["tokens"];
  db: Db;
  rest(method: string, path: string, call?: Call): Promise<Answer>;
  // biome-ignore lint/suspicious/noExplicitAny: the type depends on the query
  graphql(query: string, variables?: object, call?: Call): Promise<{ data?: any; errors?: any[] }>;
  /** Opens a graphql-ws client. The test must dispose of it. */
  socket(as?: TokenKind | (string & {})): Client;
  /** Stops the service and closes `db`. If the test files share the service, closes only `db`. */
  stop(): Promise<void>;
}

/** A service that only one test file uses. `stop` also drops the database. */
export interface OwnService extends TestService {
  /** Stops the service and keeps the database. */
  stopService(): Promise<void>;
}

/** Creates the first app and its tokens in a migrated database, without a service. */
export async function createFirstCredentials(databaseUrl: string, dataDir: string): Promise<FirstCredentials> {
  const db = await openDatabase(databaseUrl, 1);
  const log = pino({ level: "silent" });
  const notifications = createDatabaseNotifications({ url: databaseUrl, channels: [CREDENTIAL_CHANNEL], log });
  const credentials = new Credentials({ db, notifications });
  const made = await createFirstAppIfEmpty({ db, credentials, dataDir, baseUrl: "http://127.0.0.1" });
  await db.destroy();
  if (!made) throw new Error("the database was not empty");
  return JSON.parse(readFileSync(made, "utf8")) as FirstCredentials;
}

interface FirstAppTemplate {
  name: string;
  first: FirstCredentials;
}

/** Template databases that contain the first app, by the URL of their PostgreSQL server. */
const firstAppTemplates = new Map<string, Promise<FirstAppTemplate>>();

async function createFirstAppTemplate(dataDir: string): Promise<FirstAppTemplate> {
  let first: FirstCredentials | null = null;
  const name = await createTemplate("first_app_template", async (databaseUrl) => {
    first = await createFirstCredentials(databaseUrl, dataDir);
  });
  return { name, first: first! };
}

/**
 * Creates a database with the first app, and writes the app's tokens to credentials.json in `dataDir`. All databases of one PostgreSQL
 * server have the same tokens.
 */
async function createDatabaseWithFirstApp(dataDir: string) {
  const server = await startTestServer();
  const template = firstAppTemplates.get(server) ?? createFirstAppTemplate(dataDir);
  firstAppTemplates.set(server, template);
  const { name, first } = await template;
  writeFileSync(join(dataDir, "credentials.json"), JSON.stringify(first));
  return { database: await createDatabaseFrom(name), first };
}

export function createCallers(
  url: string,
  tokens: FirstCredentials["tokens"],
): Pick<TestService, "url" | "rest" | "graphql" | "socket"> {
  const tokenOf = (as: Call["as"]) => (as && as in tokens ? tokens[as as TokenKind] : as);

  async function rest(method: string, path: string, { as = "editor", body, headers = {} }: Call = {}): Promise<Answer> {
    const token = tokenOf(as);
    const response = await fetch(url + path, {
      method,
      headers: {
        ...(token && { "auth-token": token }),
        ...(body !== undefined && { "content-type": "application/json" }),
        ...headers,
      },
      ...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) }),
    });
    const text = await response.text();
    const json = response.headers.get("content-type")?.includes("json");
    return { http: response.status, headers: response.headers, body: json ? JSON.parse(text) : text };
  }

  return {
    url,
    rest,
    graphql: async (query, variables = {}, call = {}) =>
      (await rest("POST", "/graphql", { ...call, body: { query, variables } })).body,
    socket: (as = "editor") =>
      createClient({
        url: `${url.replace("http", "ws")}/graphql`,
        webSocketImpl: WebSocket,
        connectionParams: { authToken: tokenOf(as) },
        retryAttempts: 0,
      }),
  };
}

/** Returns BROWSER_WS_ENDPOINTS with the shared browser for a runner. In the long tests, returns {}, so that runners start their own. */
async function browserVariables({ ROLES = "runner" }: Record<string, string>): Promise<Record<string, string>> {
  return ROLES.includes("runner") && !runsAll() ? { BROWSER_WS_ENDPOINTS: await sharedBrowserEndpoint() } : {};
}

/**
 * Starts the service with a new database. `environment` overrides the test defaults: a free port, the shared browser, no rate limits, no
 * log lines, and no npm packages.
 * @param toDatabaseUrl returns the URL with which the service connects to the database, such as the URL of a proxy
 */
export async function startTestService(
  environment: Record<string, string> = {},
  toDatabaseUrl: (databaseUrl: string) => string | Promise<string> = (databaseUrl) => databaseUrl,
  options: ServiceStartOptions = {},
): Promise<OwnService> {
  const dataDir = mkdtempSync(join(tmpdir(), "svc-service-"));
  const { database, first } = await createDatabaseWithFirstApp(dataDir);
  const config = readConfig({
    PORT: "0",
    DATABASE_URL: await toDatabaseUrl(database.url),
    DATA_DIR: dataDir,
    LOG_LEVEL: "silent",
    RATE_LIMIT_MANAGE: "0",
    RATE_LIMIT_RUN: "0",
    RATE_LIMIT_PUBLISH: "0",
    RATE_LIMIT_COMMUNICATE: "0",
    RATE_LIMIT_HTTP: "0",
    RATE_LIMIT_MCP: "0",
    NPM_PACKAGES: "off",
    ...(await browserVariables(environment)),
    ...environment,
  });
  const service: Service = await startService(config, options);
  const db = await openDatabase(database.url, 2);
  return {
    ...createCallers(service.url, first.tokens),
    ...first,
    databaseUrl: database.url,
    dataDir,
    db,
    stopService: () => service.stop(),
    async stop() {
      await service.stop();
      await db.destroy();
      await database.drop();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}
