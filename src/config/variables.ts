/** Table of the environment variables, each with its type, default and meaning (contract, section 1). */
import { availableParallelism } from "node:os";
import { z } from "zod";
import * as limits from "../limits.js";
import * as values from "./values.js";

export const HOST_DEFAULT = "127.0.0.1";

export const PROCESS_ROLES = ["api", "scheduler", "runner"] as const;
export type ProcessRole = (typeof PROCESS_ROLES)[number];

const LOG_LEVELS = ["info", "trace", "debug", "warn", "error", "fatal", "silent"] as const;
const POSTGRES_URL_SCHEMA = values.createPatternSchema(/^postgres(ql)?:\/\//, "a postgres:// URL");
const REQUEST_LIMIT_SCHEMA = values.createIntegerSchema(0, 100_000);
const MAIL_SERVER_PATTERN = /^smtps?:\/\/([^/?#\s@]+@)?[^/?#\s@]+\/?$/;
const MAIL_SENDER_PATTERN = /^([^<>\r\n]*<[^<>@\s]+@[^<>@\s]+>|[^<>@\s]+@[^<>@\s]+)$/;

/** Texts about a variable for the reference page, in Markdown. */
export interface VariableDescription {
  meaning: string;
  defaultText: string;
}

const variableDescriptions = z.registry<VariableDescription>();

/** Adds a variable's description to its schema. `defaultText` is the default as the reference page shows it. */
function describeVariable<T>(
  schema: z.ZodType<T>,
  defaultValue: T,
  meaning: string,
  defaultText = `\`${defaultValue}\``,
): z.ZodType<T> {
  const withDefault = schema.default(defaultValue as z.util.NoUndefined<T>);
  return withDefault.register(variableDescriptions, { meaning, defaultText }) as unknown as z.ZodType<T>;
}

const describeOptionalVariable = <T>(
  schema: z.ZodType<T>,
  meaning: string,
  defaultText = "unset",
): z.ZodType<T | null> => describeVariable<T | null>(schema.nullable(), null, meaning, defaultText);

const VARIABLE_SCHEMAS = {
  PORT: describeVariable(values.createIntegerSchema(0, 65_535), 4000, "port on which the service listens"),
  HOST: describeVariable(values.textSchema, HOST_DEFAULT, "address on which the service listens"),
  TRUST_PROXY: describeOptionalVariable(
    values.trustedProxiesSchema,
    "the proxies whose `X-Forwarded-For` the service trusts: their addresses and networks, separated by commas, or the number of proxies in front of the service. Set it if there is a proxy: otherwise all visitors have the proxy's address, and share the limits of one address. The log and `npm run doctor` report a proxy in a private network that is not trusted",
  ),
  PUBLIC_URL: describeOptionalVariable(
    values.createUrlSchema(
      values.HTTP_URL_PATTERN,
      "an address such as https://actions.example.com or https://example.com/actions",
    ),
    "the address that browsers use, with which links in e-mails and setup links begin. A link has `localhost` instead of a host such as 127.0.0.1, because passkeys do not work at an IP address. Include a path if a proxy serves the service under this path and removes it from requests",
    "`http://HOST:PORT`",
  ),
  RUNTIME_URL: describeOptionalVariable(
    values.createUrlSchema(
      values.ORIGIN_URL_PATTERN,
      "an origin such as https://apps.example.net, whose host is not the service's own",
    ),
    "a second origin, with another host, from which your proxy also forwards to this service and passes on `Host`. Pages that run authors' code are served only there",
  ),
  DATABASE_URL: describeOptionalVariable(
    POSTGRES_URL_SCHEMA,
    "a database of PostgreSQL 14 or later. Without it, the service runs its own PostgreSQL under `DATA_DIR`. `npm run bootstrap` creates the first app in your database",
  ),
  DATABASE_DIRECT_URL: describeOptionalVariable(
    POSTGRES_URL_SCHEMA,
    "if `DATABASE_URL` leads to a pooler in transaction mode: the address of the same database without the pooler. The service uses it for statements that need a session: [containers](../operate/containers.md)",
    "`DATABASE_URL`",
  ),
  DATA_DIR: describeVariable(
    values.textSchema,
    ".data",
    "folder for the embedded database, the files of apps, the first credentials and the keys",
  ),
  ROLES: describeVariable<ProcessRole[]>(
    values.createListSchema(`a comma-separated list of ${PROCESS_ROLES.join(", ")}`, (part) =>
      PROCESS_ROLES.find((role) => role === part),
    ),
    [...PROCESS_ROLES],
    "roles of this process",
    "`api,scheduler,runner`",
  ),
  CHROME_PATH: describeOptionalVariable(values.textSchema, "path of the Chromium to use", "an installed Chromium"),
  PUPPETEER_CACHE_DIR: describeOptionalVariable(
    values.textSchema,
    "folder in which Puppeteer looks for its browsers",
    "Puppeteer's own",
  ),
  CHROME_SANDBOX: describeVariable(
    values.createBooleanSchema("on", "off"),
    true,
    "`off` runs the code of authors without Chromium's sandbox. The service warns at each start",
    "`on`",
  ),
  BROWSER_WS_ENDPOINTS: describeVariable<string[]>(
    values.webSocketUrlsSchema,
    [],
    "DevTools addresses of running browsers, separated by commas. The service uses them instead of a local browser",
    "unset",
  ),
  EGRESS_PROXY_HOST: describeVariable(
    values.reachableAddressSchema,
    "127.0.0.1",
    "the address of this machine at which the browsers of `BROWSER_WS_ENDPOINTS` reach the egress proxy",
  ),
  RATE_LIMIT_MANAGE: describeVariable(
    REQUEST_LIMIT_SCHEMA,
    limits.RATE_LIMIT_MANAGE,
    "requests that manage an app, in 60 s; 0: unlimited",
  ),
  RATE_LIMIT_RUN: describeVariable(
    REQUEST_LIMIT_SCHEMA,
    limits.RATE_LIMIT_RUN,
    "requests of an app that run actions, in 60 s; 0: unlimited",
  ),
  RATE_LIMIT_PUBLISH: describeVariable(
    REQUEST_LIMIT_SCHEMA,
    limits.RATE_LIMIT_PUBLISH,
    "requests that publish, unpublish or restore actions of an app, in 60 s; 0: unlimited",
  ),
  RATE_LIMIT_HTTP: describeVariable(
    REQUEST_LIMIT_SCHEMA,
    limits.RATE_LIMIT_HTTP,
    "requests to the [HTTP triggers](http-triggers.md) of an app that pass the check of the caller, in 60 s. One address can send ten times as many, rejected ones included; 0: unlimited",
  ),
  RATE_LIMIT_MCP: describeVariable(
    REQUEST_LIMIT_SCHEMA,
    limits.RATE_LIMIT_MCP,
    "tool calls of [agents](agents.md) to an app, in 60 s; 0: unlimited",
  ),
  RATE_LIMIT_COMMUNICATE: describeVariable(
    REQUEST_LIMIT_SCHEMA,
    limits.RATE_LIMIT_COMMUNICATE,
    "requests of an app that send messages, in 30 s; 0: unlimited",
  ),
  SMTP_URL: describeOptionalVariable(
    values.createSchemaFromParser("an address such as smtp://user:password@mail.example.com:587", (input) =>
      MAIL_SERVER_PATTERN.test(input) && URL.canParse(input) ? input : undefined,
    ),
    "mail server for apps without the setting `__smtp`: `smtp://` or `smtps://user:password@host:port`. Requires `MAIL_FROM`",
  ),
  MAIL_FROM: describeOptionalVariable(
    values.createPatternSchema(MAIL_SENDER_PATTERN, "an e-mail address, perhaps as Name <address>"),
    "sender of the mail that goes through `SMTP_URL`",
  ),
  SERVER_TIMEOUT_MS: describeVariable(
    values.createIntegerSchema(1, 3_600_000),
    limits.SERVER_TIMEOUT_MS,
    "execution time limit of server actions",
  ),
  CLIENT_TIMEOUT_MS: describeVariable(
    values.createIntegerSchema(1, 3_600_000),
    limits.CLIENT_TIMEOUT_MS,
    "execution time limit of client actions",
  ),
  SHUTDOWN_GRACE_MS: describeVariable(
    values.createIntegerSchema(0, 3_600_000),
    30_000,
    "time in which runs can finish after SIGTERM",
  ),
  RUNNER_CONCURRENCY: describeVariable(
    values.createIntegerSchema(1, 1_000),
    3 * availableParallelism(),
    "number N of runs that one app can have at once in this process. All apps together can have 4 N. With the value 8, one app has at most 8 runs at once, and all apps together 32. [Memory and cores](../operate/operating.md#execute-many-runs-at-once)",
    "three times the number of cores",
  ),
  ALLOW_PRIVATE_NETWORK: describeVariable(
    values.createBooleanSchema("1", "0"),
    false,
    "`1` lets actions reach private addresses, for development. This also applies to the service's own requests for apps: to language models, mail and SMS servers, git servers, webhooks of alerts, push services, token endpoints and packages. http is then also valid. With `0`, the service resolves the host names of all these requests with the name servers of the system, and ignores its hosts file",
    "`0`",
  ),
  SETTINGS_KEY: describeOptionalVariable(
    values.encryptionKeysSchema,
    "key that encrypts settings: 32 bytes in base64. While you replace it, both keys, separated by a comma, the new one first",
    "a file in `DATA_DIR`",
  ),
  EGRESS_ADDRESS: describeOptionalVariable(
    values.ipAddressSchema,
    "local address from which runs connect to other hosts",
    "the system's",
  ),
  DEFAULT_TIMEZONE: describeVariable(values.timeZoneSchema, "UTC", "time zone of schedules without a `timezone`"),
  PACKAGES_FILE: describeOptionalVariable(
    values.textSchema,
    "path of a JSON file with an array of further packages for actions, each a `PackageEntry` (`src/rules/packages.ts`)",
  ),
  NPM_PACKAGES: describeVariable(
    values.createBooleanSchema("on", "off"),
    true,
    "`off`: actions cannot use packages from npm, only those of the service and scripts at addresses",
    "`on`",
  ),
  NPM_SANDBOX: describeVariable(
    values.createBooleanSchema("on", "off"),
    true,
    "`off`: if the machine has no user namespaces, the service bundles packages in a process with network access, and warns at each start",
    "`on`",
  ),
  NPM_REGISTRY: describeVariable(
    values.createUrlSchema(
      values.HTTP_URL_PATTERN,
      "the address of an npm registry such as https://registry.example.com/npm",
    ),
    "https://registry.npmjs.org",
    "registry from which npm packages are downloaded",
  ),
  NPM_TOKEN: describeOptionalVariable(
    values.createPatternSchema(/^[\x21-\x7e]+$/, "a token in one line, without spaces"),
    "token for `NPM_REGISTRY`",
  ),
  NPM_MIN_AGE_DAYS: describeVariable(
    values.createIntegerSchema(0, 365),
    limits.NPM_MIN_AGE_DAYS,
    "minimum age of a package version. A newer one is used only if an action names the exact version; 0 allows any age",
  ),
  NPM_LICENSES: describeOptionalVariable(
    values.createListSchema("SPDX identifiers separated by commas, such as MIT,ISC,Apache-2.0", (part) =>
      /^[A-Za-z0-9.+-]+$/.test(part) ? part : undefined,
    ),
    "allowed licences, as SPDX identifiers separated by commas. The service rejects packages with other licences",
    "any",
  ),
  QUEUE_MAX: describeVariable(
    values.createIntegerSchema(limits.QUEUED_RUNS_PER_APP_RESERVED, 10_000_000),
    limits.QUEUE_MAX,
    "maximum number of queued runs of all apps",
  ),
  QUEUE_MAX_PER_APP: describeVariable(
    values.createIntegerSchema(limits.QUEUED_RUNS_PER_APP_RESERVED, 10_000_000),
    limits.QUEUE_MAX_PER_APP,
    "maximum number of queued runs of one app",
  ),
  QUEUE_MAX_MB: describeVariable(
    values.createIntegerSchema(1, 1_000_000),
    limits.QUEUE_MAX_MB,
    "maximum size of the payloads of all queued runs; one app can use a tenth of it",
  ),
  LOG_RETENTION_DAYS: describeVariable(
    values.createIntegerSchema(1, 36_500),
    30,
    "days after which the service deletes logs",
  ),
  LOG_MAX_MB: describeVariable(
    values.createIntegerSchema(0, 1_000_000),
    limits.LOG_MAX_MB,
    "disk space for the runs and logs of an app. Those of visitors have half as much in addition, and its events have the same limits again. Above a limit, the service deletes the oldest. It checks the sizes at the start, each hour, and when an app has written an eighth of `LOG_MAX_MB`; 0: unlimited",
  ),
  INTAKE_QUOTA_MB: describeVariable(
    values.createIntegerSchema(0, 1_000_000),
    limits.INTAKE_QUOTA_MB,
    "size of the events, settings and other data, except payloads, that an app's own callers can store in a minute, in each process. In addition, all visitors of the app can store half as much, payloads included, and those at one network address an eighth; 0: unlimited",
  ),
  DATA_SOURCE_QUOTA_MB: describeVariable(
    values.createIntegerSchema(0, 100_000_000),
    limits.DATA_SOURCE_QUOTA_MB,
    "size of all entries of an app's data sources. Their snapshots can have as much again; 0: unlimited",
  ),
  MEDIA_URL: describeOptionalVariable(
    values.bucketUrlSchema,
    "S3 bucket for the files of apps, instead of a folder: `s3://bucket/prefix?endpoint=…&region=…`. Needs [AWS credentials](#object-storage)",
    "`DATA_DIR/media`",
  ),
  // 5 GB is the largest file that S3 accepts in one request.
  MEDIA_MAX_MB: describeVariable(values.createIntegerSchema(1, 5_000), limits.MEDIA_MAX_MB, "size of one file"),
  MEDIA_QUOTA_MB: describeVariable(
    values.createIntegerSchema(0, 1_000_000_000),
    limits.MEDIA_QUOTA_MB,
    "size of all files of an app; 0: unlimited",
  ),
  DISK_FREE_MIN_MB: describeVariable(
    values.createIntegerSchema(0, 1_000_000),
    limits.DISK_FREE_MIN_MB,
    "free disk space. Below it, the service rejects events, uploads and changes; below half of it, also new runs; 0: it never rejects them",
  ),
  DATABASE_MAX_MB: describeVariable(
    values.createIntegerSchema(0, 1_000_000_000),
    0,
    "with `DATABASE_URL`: intended size of the database. What is left of it counts as free disk space for `DISK_FREE_MIN_MB`; 0: no check",
  ),
  GRAPHQL_DOCUMENTS: describeVariable(
    values.createEnumSchema("any", "persisted"),
    "any",
    "`persisted`: app users may send only the GraphQL documents of the client library",
  ),
  OTEL_EXPORTER_OTLP_ENDPOINT: describeOptionalVariable(
    values.createUrlSchema(values.HTTP_URL_PATTERN, "an address such as http://collector:4318"),
    "address of a collector to which traces of requests and runs are sent, such as `http://collector:4318`",
  ),
  LOG_LEVEL: describeVariable(
    values.createEnumSchema(...LOG_LEVELS),
    "info",
    "lowest level that the service logs: `trace`, `debug`, `info`, `warn`, `error`, `fatal` or `silent`",
  ),
};

const ENVIRONMENT_SCHEMA = z.object(VARIABLE_SCHEMAS);

/** Variables that may contain a secret. Error messages show only the length of their values. */
const VARIABLES_WITH_SECRETS: readonly string[] = [
  "DATABASE_URL",
  "DATABASE_DIRECT_URL",
  "BROWSER_WS_ENDPOINTS",
  "SMTP_URL",
  "SETTINGS_KEY",
  "NPM_TOKEN",
];

export type EnvironmentVariables = z.output<typeof ENVIRONMENT_SCHEMA>;

/** Reads all variables. A blank variable counts as unset. Invalid variables have messages in `faults`, and their defaults in `values`. */
export function readEnvironmentVariables(environment: Readonly<Record<string, string | undefined>>): {
  values: EnvironmentVariables;
  faults: string[];
} {
  const texts = Object.keys(VARIABLE_SCHEMAS).map((name) => [name, environment[name]?.trim() || undefined] as const);
  const { data, error } = ENVIRONMENT_SCHEMA.safeParse(Object.fromEntries(texts));
  if (data) return { values: data, faults: [] };
  const invalidNames = error.issues.map(({ path }) => path[0]);
  const validTexts = texts.filter(([name]) => !invalidNames.includes(name));
  const faults = error.issues.map(({ path, message }) => {
    const name = String(path[0]);
    const isSecret = VARIABLES_WITH_SECRETS.includes(name);
    return `${name} must be ${message} (got ${values.describeRejectedValue(environment[name]?.trim() ?? "", { isSecret })})`;
  });
  return { values: ENVIRONMENT_SCHEMA.parse(Object.fromEntries(validTexts)), faults };
}

export const listVariableDescriptions = (): [name: string, VariableDescription][] =>
  Object.entries(VARIABLE_SCHEMAS).map(([name, schema]) => [name, variableDescriptions.get(schema)!]);
