/** Reads the environment variables into a Config. Reports all faulty variables together. No other file reads process.env. */
import { resolve } from "node:path";
import { type OpenIdProvider, readOpenIdProviders } from "./config/open-id.js";
import type { MediaBucket } from "./config/values.js";
import { HOST_DEFAULT, type Role, readVariables, type Variables } from "./config/variables.js";
import { StartError } from "./errors.js";

export { ROLES, type Role } from "./config/variables.js";

/** Configuration of one process (contract, section 1). Times are in milliseconds. */
export interface Config {
  port: number;
  host: string;
  /** Trusted proxies for `X-Forwarded-For`: their number, their addresses and networks, or false if none is trusted. */
  trustProxy: number | string[] | false;
  /** URL that people and browsers use, without a trailing slash; null for http://HOST:PORT. */
  publicUrl: string | null;
  /**
   * Separate origin for the pages that run authors' code; null if they use the service's own origin. They are sandboxed
   * in both cases.
   */
  runtimeUrl: string | null;
  /** URL of the database; null for the embedded PostgreSQL under `dataDir`. */
  databaseUrl: string | null;
  /** URL of the same database without a pooler, for connections that need a session; null if it is `databaseUrl`. */
  databaseDirectUrl: string | null;
  /** Absolute path of the folder with the service's data. */
  dataDir: string;
  roles: ReadonlySet<Role>;
  chromePath: string | null;
  /**
   * `ws:` and `wss:` URLs of running browsers, which replace the browser that the service would start. The URLs may
   * contain credentials.
   */
  browserWsEndpoints: readonly string[];
  /** Local address on which the egress proxies of browsers listen, and by which these browsers reach them. */
  egressProxyHost: string;
  /** Folder in which Puppeteer stores its browsers; null for its default. */
  puppeteerCacheDir: string | null;
  /** False only with CHROME_SANDBOX=off, for which each start logs a warning. */
  chromeSandbox: boolean;
  /** Maximum requests of an app in 60 s, for `communicate` in 30 s. 0 is unlimited. */
  rateLimits: { manage: number; run: number; publish: number; communicate: number; http: number; mcp: number };
  serverTimeoutMs: number;
  clientTimeoutMs: number;
  shutdownGraceMs: number;
  runnerConcurrency: number;
  allowPrivateNetwork: boolean;
  /** Local address from which runs connect; null leaves the choice to the system. */
  egressAddress: string | null;
  /**
   * Keys of 32 bytes that encrypt the apps' settings, the current key first; null if the keys are in a file in
   * `dataDir`.
   */
  settingsKeys: readonly Buffer[] | null;
  /** Maximum queued runs in total and per app, and maximum megabytes of all queued payloads together. */
  queueMax: number;
  queueMaxPerApp: number;
  queueMaxMb: number;
  logRetentionDays: number;
  /** Maximum megabytes of an app's finished runs with their logs, and separately of its events. 0 is unlimited. */
  logMaxMb: number;
  /**
   * Maximum megabytes that one app's own credentials can store per minute. Its visitors can store half of that. 0 is
   * unlimited.
   */
  intakeQuotaMb: number;
  /** Maximum megabytes of one app's entries, and separately of its snapshots. 0 is unlimited. */
  dataSourceQuotaMb: number;
  /** Free megabytes on the disk below which events are rejected; with 0, they are never rejected. */
  diskFreeMinMb: number;
  /** Maximum megabytes of the database of DATABASE_URL; with 0, the service sets no limit. */
  databaseMaxMb: number;
  /**
   * S3 bucket for media files; null if they are in a folder in `dataDir`. The AWS client finds the credentials itself.
   */
  mediaBucket: MediaBucket | null;
  /**
   * Maximum megabytes of one media file (`mediaMaxMb`), and of all files of one app (`mediaQuotaMb`, where 0 is
   * unlimited).
   */
  mediaMaxMb: number;
  mediaQuotaMb: number;
  /** IANA name of the time zone for actions that set none. It is the same in every process and does not depend on the machine. */
  defaultTimezone: string;
  /** File with a JSON array of packages that extend the catalogue; null if there are only the built-in ones. */
  packagesFile: string | null;
  /**
   * Registry from which dependencies are fetched, without a trailing slash, its token, and the allowed licences (SPDX; null: any). Null if
   * npm packages are switched off. `sandbox` is false only with NPM_SANDBOX=off, for which each start logs a warning.
   */
  npm: {
    url: string;
    token: string | null;
    licences: readonly string[] | null;
    sandbox: boolean;
    /** Minimum age in days of a package version, unless a dependency names the exact version. */
    minAgeDays: number;
  } | null;
  /** Mail server of the operator, for apps without their own: smtp:// or smtps://. The URL may contain credentials. */
  smtpUrl: string | null;
  /** Sender address of the service's mail, with an optional name. */
  mailFrom: string | null;
  /** OpenID providers at which people sign in. */
  openIdProviders: readonly OpenIdProvider[];
  /** With "persisted", app users can send only the GraphQL documents of the client library. */
  graphqlDocuments: "any" | "persisted";
  /** URL of an OpenTelemetry collector, without `/v1/traces`; null if nothing is traced. */
  otlpEndpoint: string | null;
  logLevel: string;
}

export class ConfigError extends StartError {
  override readonly name = "ConfigError";
}

type Environment = Readonly<Record<string, string | undefined>>;

/** Returns an error message for each variable that contradicts another variable. */
function faultsOfPairs(env: Environment): string[] {
  const isSet = (name: string) => Boolean(env[name]?.trim());
  const requiredTogether = [
    ["MAIL_FROM", "SMTP_URL"],
    ["SMTP_URL", "MAIL_FROM"],
    ["DATABASE_URL", "DATABASE_DIRECT_URL"],
  ] as const;
  const faults = requiredTogether
    .filter(([name, beside]) => isSet(beside) && !isSet(name))
    .map(([name, beside]) => `${name} must be set, because ${beside} is set`);
  // Compares host names without ports: pages on another port of the service's host would get its cookies. Reads `env`,
  // because the parsed values are missing if another variable is faulty.
  const hostOf = (name: string) => URL.parse(env[name]?.trim() ?? "")?.hostname;
  const ownHost = isSet("PUBLIC_URL") ? hostOf("PUBLIC_URL") : env.HOST?.trim() || HOST_DEFAULT;
  const isSameHost = isSet("RUNTIME_URL") && ownHost !== undefined && hostOf("RUNTIME_URL") === ownHost;
  return isSameHost
    ? [...faults, `RUNTIME_URL must be an origin whose host is not the service's own (got ${ownHost})`]
    : faults;
}

function npmOf(values: Variables): Config["npm"] {
  if (!values.NPM_PACKAGES) return null;
  return {
    url: values.NPM_REGISTRY,
    token: values.NPM_TOKEN,
    licences: values.NPM_LICENSES,
    sandbox: values.NPM_SANDBOX,
    minAgeDays: values.NPM_MIN_AGE_DAYS,
  };
}

function configOf(values: Variables, openIdProviders: OpenIdProvider[]): Config {
  return {
    port: values.PORT,
    host: values.HOST,
    trustProxy: values.TRUST_PROXY ?? false,
    publicUrl: values.PUBLIC_URL,
    runtimeUrl: values.RUNTIME_URL,
    databaseUrl: values.DATABASE_URL,
    databaseDirectUrl: values.DATABASE_DIRECT_URL,
    dataDir: resolve(values.DATA_DIR),
    roles: new Set(values.ROLES),
    chromePath: values.CHROME_PATH,
    browserWsEndpoints: values.BROWSER_WS_ENDPOINTS,
    egressProxyHost: values.EGRESS_PROXY_HOST,
    puppeteerCacheDir: values.PUPPETEER_CACHE_DIR,
    chromeSandbox: values.CHROME_SANDBOX,
    rateLimits: {
      manage: values.RATE_LIMIT_MANAGE,
      run: values.RATE_LIMIT_RUN,
      publish: values.RATE_LIMIT_PUBLISH,
      communicate: values.RATE_LIMIT_COMMUNICATE,
      http: values.RATE_LIMIT_HTTP,
      mcp: values.RATE_LIMIT_MCP,
    },
    serverTimeoutMs: values.SERVER_TIMEOUT_MS,
    clientTimeoutMs: values.CLIENT_TIMEOUT_MS,
    shutdownGraceMs: values.SHUTDOWN_GRACE_MS,
    runnerConcurrency: values.RUNNER_CONCURRENCY,
    allowPrivateNetwork: values.ALLOW_PRIVATE_NETWORK,
    egressAddress: values.EGRESS_ADDRESS,
    settingsKeys: values.SETTINGS_KEY,
    queueMax: values.QUEUE_MAX,
    queueMaxPerApp: values.QUEUE_MAX_PER_APP,
    queueMaxMb: values.QUEUE_MAX_MB,
    logRetentionDays: values.LOG_RETENTION_DAYS,
    logMaxMb: values.LOG_MAX_MB,
    intakeQuotaMb: values.INTAKE_QUOTA_MB,
    dataSourceQuotaMb: values.DATA_SOURCE_QUOTA_MB,
    diskFreeMinMb: values.DISK_FREE_MIN_MB,
    databaseMaxMb: values.DATABASE_MAX_MB,
    mediaBucket: values.MEDIA_URL,
    mediaMaxMb: values.MEDIA_MAX_MB,
    mediaQuotaMb: values.MEDIA_QUOTA_MB,
    defaultTimezone: values.DEFAULT_TIMEZONE,
    packagesFile: values.PACKAGES_FILE,
    npm: npmOf(values),
    smtpUrl: values.SMTP_URL,
    mailFrom: values.MAIL_FROM,
    openIdProviders,
    graphqlDocuments: values.GRAPHQL_DOCUMENTS,
    otlpEndpoint: values.OTEL_EXPORTER_OTLP_ENDPOINT,
    logLevel: values.LOG_LEVEL,
  };
}

/** Reads the environment (contract, section 1). @throws ConfigError with one message that names every faulty variable */
export function readConfig(env: Environment = process.env): Config {
  const readResult = readVariables(env);
  const faults = [...("faults" in readResult ? readResult.faults : []), ...faultsOfPairs(env)];
  const openIdProviders = readOpenIdProviders(env, (name, expected) => faults.push(`${name} must be ${expected}`));
  if ("faults" in readResult || faults.length > 0) throw new ConfigError(`Cannot start: ${faults.join("; ")}.`);
  return configOf(readResult.values, openIdProviders);
}
