/** The variables of the environment, each with its values, its default and its meaning (contract, section 1). */
import { availableParallelism } from "node:os";
import { z } from "zod";
import * as limits from "../limits.js";
import * as values from "./values.js";

export const HOST_DEFAULT = "127.0.0.1";

export const ROLES = ["api", "scheduler", "runner"] as const;
export type Role = (typeof ROLES)[number];

const LOG_LEVELS = ["info", "trace", "debug", "warn", "error", "fatal", "silent"] as const;
const POSTGRES = values.matching(/^postgres(ql)?:\/\//, "a postgres:// URL");
const REQUESTS = values.integer(0, 100_000);
/** User and password percent-encoded. */
const MAIL_SERVER = /^smtps?:\/\/([^/?#\s@]+@)?[^/?#\s@]+\/?$/;
const MAIL_SENDER = /^([^<>\r\n]*<[^<>@\s]+@[^<>@\s]+>|[^<>@\s]+@[^<>@\s]+)$/;

/** What the reference says about a variable; both in Markdown. */
export interface Description {
  meaning: string;
  /** Its default. */
  initial: string;
}

const descriptions = z.registry<Description>();

/** @param shown the default in words, where the value itself does not tell */
function variable<T>(schema: z.ZodType<T>, initial: T, meaning: string, shown = `\`${initial}\``): z.ZodType<T> {
  const withDefault = schema.default(initial as z.util.NoUndefined<T>);
  return withDefault.register(descriptions, { meaning, initial: shown }) as unknown as z.ZodType<T>;
}

const optional = <T>(schema: z.ZodType<T>, meaning: string, shown = "unset"): z.ZodType<T | null> =>
  variable<T | null>(schema.nullable(), null, meaning, shown);

const VARIABLES = {
  PORT: variable(values.integer(0, 65_535), 4000, "port on which the service listens"),
  HOST: variable(values.text, HOST_DEFAULT, "address on which it listens"),
  TRUST_PROXY: optional(
    values.proxies,
    "the proxies whose `X-Forwarded-For` is believed: their addresses and networks, separated by commas, or how many stand before the service. Required behind a proxy: without it, limits by address take all visitors for one. The log and `npm run doctor` report a proxy in a private network that is not trusted",
  ),
  PUBLIC_URL: optional(
    values.url(values.ADDRESS, "an address such as https://actions.example.com or https://example.com/actions"),
    "the address that browsers use; with a path if a proxy serves the service under one and removes it",
    "`http://HOST:PORT`",
  ),
  RUNTIME_URL: optional(
    values.url(values.ORIGIN, "an origin such as https://apps.example.net, whose host is not the service's own"),
    "an origin of another host that leads to this service too, with `Host` passed on. Pages that run authors' code are served only there",
  ),
  DATABASE_URL: optional(
    POSTGRES,
    "PostgreSQL 14 or later; unset: the embedded one under `DATA_DIR`. `npm run bootstrap` creates the first app in it",
  ),
  DATABASE_DIRECT_URL: optional(
    POSTGRES,
    "the same database without the pooler in transaction mode, for what needs a session: [containers](../operate/containers.md)",
    "`DATABASE_URL`",
  ),
  DATA_DIR: variable(values.text, ".data", "folder of the embedded database, the first credentials and the keys"),
  ROLES: variable<Role[]>(
    values.list(`a comma-separated list of ${ROLES.join(", ")}`, (part) => ROLES.find((role) => role === part)),
    [...ROLES],
    "parts that this process runs",
    "`api,scheduler,runner`",
  ),
  CHROME_PATH: optional(values.text, "the Chromium to use", "found"),
  PUPPETEER_CACHE_DIR: optional(values.text, "folder in which Puppeteer looks for its browsers", "Puppeteer's own"),
  CHROME_SANDBOX: variable(
    values.flag("on", "off"),
    true,
    "`off` runs the code of authors without Chromium's sandbox, with a warning at each start",
    "`on`",
  ),
  BROWSER_WS_ENDPOINTS: variable<string[]>(
    values.webSockets,
    [],
    "DevTools addresses of browsers that others started, separated by commas, used instead of a local one",
    "unset",
  ),
  EGRESS_PROXY_HOST: variable(
    values.reachableAddress,
    "127.0.0.1",
    "the address of this machine at which those browsers reach the egress proxy",
  ),
  RATE_LIMIT_MANAGE: variable(
    REQUESTS,
    limits.RATE_LIMIT_MANAGE,
    "requests that manage an app, per 60 s; 0: unlimited",
  ),
  RATE_LIMIT_RUN: variable(
    REQUESTS,
    limits.RATE_LIMIT_RUN,
    "requests that run actions, per 60 s and app; 0: unlimited",
  ),
  RATE_LIMIT_PUBLISH: variable(REQUESTS, limits.RATE_LIMIT_PUBLISH, "publications, per 60 s and app; 0: unlimited"),
  RATE_LIMIT_HTTP: variable(
    REQUESTS,
    limits.RATE_LIMIT_HTTP,
    "authorized requests to [HTTP triggers](http-triggers.md), per 60 s and app, and ten times as many per address; 0: unlimited",
  ),
  RATE_LIMIT_MCP: variable(
    REQUESTS,
    limits.RATE_LIMIT_MCP,
    "tool calls of [agents](agents.md), per 60 s and app; 0: unlimited",
  ),
  RATE_LIMIT_COMMUNICATE: variable(
    REQUESTS,
    limits.RATE_LIMIT_COMMUNICATE,
    "requests that send messages, per 30 s and app; 0: unlimited",
  ),
  SMTP_URL: optional(
    values.parsed("an address such as smtp://user:password@mail.example.com:587", (input) =>
      MAIL_SERVER.test(input) && URL.canParse(input) ? input : undefined,
    ),
    "mail server of apps without `__smtp`: `smtp://` or `smtps://user:password@host:port`; requires `MAIL_FROM`",
  ),
  MAIL_FROM: optional(
    values.matching(MAIL_SENDER, "an e-mail address, perhaps as Name <address>"),
    "sender of that mail; requires `SMTP_URL`",
  ),
  SERVER_TIMEOUT_MS: variable(
    values.integer(1, 3_600_000),
    limits.SERVER_TIMEOUT_MS,
    "execution time limit of server actions",
  ),
  CLIENT_TIMEOUT_MS: variable(
    values.integer(1, 3_600_000),
    limits.CLIENT_TIMEOUT_MS,
    "execution time limit of client actions",
  ),
  SHUTDOWN_GRACE_MS: variable(values.integer(0, 3_600_000), 30_000, "time that running actions have after SIGTERM"),
  RUNNER_CONCURRENCY: variable(
    values.integer(1, 1_000),
    2 * availableParallelism(),
    "server actions that run at the same time in this process; up to four times as many if several apps run. Each takes 20 to 45 MB",
    "twice the number of cores",
  ),
  ALLOW_PRIVATE_NETWORK: variable(
    values.flag("1", "0"),
    false,
    "`1` lets actions reach private addresses, for development. Without it, host names in requests of apps are resolved by the name servers only, not by the hosts file",
    "`0`",
  ),
  SETTINGS_KEY: optional(
    values.keys,
    "32 bytes in base64; several, separated by commas, the current one first",
    "a file in `DATA_DIR`",
  ),
  EGRESS_ADDRESS: optional(values.ipAddress, "local address of each connection that a run makes", "the system's"),
  DEFAULT_TIMEZONE: variable(values.timeZone, "UTC", "time zone of schedules that name none"),
  PACKAGES_FILE: optional(
    values.text,
    "JSON array of further packages for the catalogue, each a `PackageEntry` (`src/rules/packages.ts`)",
  ),
  NPM_PACKAGES: variable(
    values.flag("on", "off"),
    true,
    "`off`: only packages of the catalogue and addresses can be dependencies",
    "`on`",
  ),
  NPM_SANDBOX: variable(
    values.flag("on", "off"),
    true,
    "`off` bundles packages in a process with network access if there are no user namespaces, with a warning at each start",
    "`on`",
  ),
  NPM_REGISTRY: variable(
    values.url(values.ADDRESS, "the address of an npm registry such as https://registry.example.com/npm"),
    "https://registry.npmjs.org",
    "registry of packages",
  ),
  NPM_TOKEN: optional(
    values.matching(/^[\x21-\x7e]+$/, "a token in one line, without spaces"),
    "token for that registry",
  ),
  NPM_MIN_AGE_DAYS: variable(
    values.integer(0, 365),
    limits.NPM_MIN_AGE_DAYS,
    "a version published more recently is not chosen for a range, a tag or no version; 0 allows any age",
  ),
  NPM_LICENSES: optional(
    values.list("SPDX identifiers separated by commas, such as MIT,ISC,Apache-2.0", (part) =>
      /^[A-Za-z0-9.+-]+$/.test(part) ? part : undefined,
    ),
    "SPDX identifiers separated by commas: packages with other licences are refused",
    "any",
  ),
  QUEUE_MAX: variable(
    values.integer(limits.QUEUE_MIN_PER_APP, 10_000_000),
    limits.QUEUE_MAX,
    "runs that may wait, of all apps",
  ),
  QUEUE_MAX_PER_APP: variable(
    values.integer(limits.QUEUE_MIN_PER_APP, 10_000_000),
    limits.QUEUE_MAX_PER_APP,
    "runs that may wait, of one app",
  ),
  QUEUE_MAX_MB: variable(
    values.integer(1, 1_000_000),
    limits.QUEUE_MAX_MB,
    "total size of the payloads that wait; one app may have a tenth of it",
  ),
  LOG_RETENTION_DAYS: variable(values.integer(1, 36_500), 30, "older logs are deleted"),
  LOG_MAX_MB: variable(
    values.integer(0, 1_000_000),
    limits.LOG_MAX_MB,
    "disk space for the runs and logs of an app, and as much again for its events; the oldest are deleted. Measured at the start, each hour, and when an app has written an eighth of it; 0: unlimited",
  ),
  INTAKE_QUOTA_MB: variable(
    values.integer(0, 1_000_000),
    limits.INTAKE_QUOTA_MB,
    "what an app may send as events and settings in a minute; its visitors half of it, one address an eighth; 0: unlimited",
  ),
  DATA_SOURCE_QUOTA_MB: variable(
    values.integer(0, 100_000_000),
    limits.DATA_SOURCE_QUOTA_MB,
    "size of the entries of an app's data sources, and as much again for their snapshots; 0: unlimited",
  ),
  MEDIA_URL: optional(
    values.bucket,
    "bucket for the files of apps: `s3://bucket/prefix?endpoint=…&region=…`, with the usual AWS variables",
    "`DATA_DIR/media`",
  ),
  // One request of S3 carries 5 GB.
  MEDIA_MAX_MB: variable(values.integer(1, 5_000), limits.MEDIA_MAX_MB, "size of one file"),
  MEDIA_QUOTA_MB: variable(
    values.integer(0, 1_000_000_000),
    limits.MEDIA_QUOTA_MB,
    "size of all files of an app; 0: unlimited",
  ),
  DISK_FREE_MIN_MB: variable(
    values.integer(0, 1_000_000),
    limits.DISK_FREE_MIN_MB,
    "free space below which events are refused, and below half of it new runs; 0 never refuses",
  ),
  DATABASE_MAX_MB: variable(
    values.integer(0, 1_000_000_000),
    0,
    "with `DATABASE_URL`: how large the database may become before the same are refused; 0: any size",
  ),
  GRAPHQL_DOCUMENTS: variable(
    values.oneOf("any", "persisted"),
    "any",
    "`persisted`: app users may send only the GraphQL documents of the client library",
  ),
  OTEL_EXPORTER_OTLP_ENDPOINT: optional(
    values.url(values.ADDRESS, "an address such as http://collector:4318"),
    "address of a collector to which traces of requests and runs are sent, such as `http://collector:4318`",
  ),
  LOG_LEVEL: variable(values.oneOf(...LOG_LEVELS), "info", "lowest level that is logged, as in pino"),
};

const ENVIRONMENT = z.object(VARIABLES);

export type Variables = z.output<typeof ENVIRONMENT>;

/** What is known of the variables: their values, or a fault for each that is wrong. */
type ReadVariables = { values: Variables } | { faults: string[] };

/** @param environment blank variables count as unset */
export function readVariables(environment: Readonly<Record<string, string | undefined>>): ReadVariables {
  const texts = Object.keys(VARIABLES).map((name) => [name, environment[name]?.trim() || undefined]);
  const { data, error } = ENVIRONMENT.safeParse(Object.fromEntries(texts));
  if (data) return { values: data };
  // The value is not named: DATABASE_URL and SETTINGS_KEY are secrets.
  return { faults: error.issues.map(({ path, message }) => `${String(path[0])} must be ${message}`) };
}

/** For the reference. */
export const describedVariables = (): [name: string, Description][] =>
  Object.entries(VARIABLES).map(([name, schema]) => [name, descriptions.get(schema)!]);
