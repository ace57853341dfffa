/** Reads the environment variables into a Config. No other file reads process.env. */
import { resolve } from "node:path";
import { type OpenIdProvider, readOpenIdProviders } from "./config/open-id.js";
import type { MediaBucket } from "./config/values.js";
import {
  type EnvironmentVariables,
  HOST_DEFAULT,
  type ProcessRole,
  readEnvironmentVariables,
} from "./config/variables.js";
import { StartError } from "./errors.js";

export { PROCESS_ROLES, type ProcessRole } from "./config/variables.js";

/** Configuration of one process of the service (contract, section 1). Times are in milliseconds. */
export interface Config {
  port: number;
  host: string;
  /** Proxies whose `X-Forwarded-For` header the service trusts: their number, or their addresses and networks; false for none. */
  trustProxy: number | string[] | false;
  /** URL at which browsers reach the service, without a trailing slash; null if it is http://HOST:PORT. */
  publicUrl: string | null;
  /** Origin of the pages that run authors' code, without a trailing slash; null if these pages have the service's origin. */
  runtimeUrl: string | null;
  /** URL of the database; null for the embedded PostgreSQL, whose data is in `dataDir`. */
  databaseUrl: string | null;
  /** URL of the same database without its connection pooler; null if `databaseUrl` does not lead to a pooler. */
  databaseDirectUrl: string | null;
  dataDir: string;
  roles: ReadonlySet<ProcessRole>;
  chromePath: string | null;
  /** `ws:` and `wss:` URLs of running browsers, which the service uses instead of starting one. The URLs may contain credentials. */
  browserWsEndpoints: readonly string[];
  /** Local address at which the egress proxies listen. The browsers of BROWSER_WS_ENDPOINTS connect to it. */
  egressProxyHost: string;
  /** Folder in which Puppeteer stores its browsers; null for Puppeteer's default folder. */
  puppeteerCacheDir: string | null;
  chromeSandbox: boolean;
  /** Maximum requests for an app in 60 s (`communicate`: in 30 s), by kind of request. 0 means unlimited. */
  rateLimits: { manage: number; run: number; publish: number; communicate: number; http: number; mcp: number };
  serverTimeoutMs: number;
  clientTimeoutMs: number;
  shutdownGraceMs: number;
  runnerConcurrency: number;
  allowPrivateNetwork: boolean;
  /** Local address from which runs connect to other servers; null if the operating system chooses it. */
  egressAddress: string | null;
  /** Keys of 32 bytes that encrypt the apps' settings, the current key first; null if the keys are in a file in `dataDir`. */
  settingsKeys: readonly Buffer[] | null;
  /** Maximum number of queued runs of all apps. */
  queueMax: number;
  queueMaxPerApp: number;
  queueMaxMb: number;
  logRetentionDays: number;
  /**
   * Maximum megabytes of an app's finished runs with their logs. The same maximum applies separately to its log events. Runs and events
   * that visitors cause have a separate maximum of half the size. 0 means unlimited.
   */
  logMaxMb: number;
  /** Maximum megabytes that all callers of an app except its visitors can store in a minute. 0 means unlimited. */
  intakeQuotaMb: number;
  /**
   * Maximum megabytes of an app's entries in data sources. The same maximum applies separately to the snapshots of these entries. 0 means
   * unlimited.
   */
  dataSourceQuotaMb: number;
  /**
   * Minimum free megabytes: on the disk of the embedded database, or below DATABASE_MAX_MB if it is set. With less, the service rejects
   * events and changes. 0 switches this check off.
   */
  diskFreeMinMb: number;
  /** Maximum megabytes of the database of DATABASE_URL; 0 means unlimited. */
  databaseMaxMb: number;
  /** S3 bucket for media files; null if the files are in a folder in `dataDir`. */
  mediaBucket: MediaBucket | null;
  /** Maximum megabytes of one media file. */
  mediaMaxMb: number;
  mediaQuotaMb: number;
  /** IANA time zone of actions without a time zone of their own. Every process of the service must have the same value. */
  defaultTimezone: string;
  /** Path of a JSON file with packages that are added to the built-in catalogue; null for none. */
  packagesFile: string | null;
  /** False (NPM_SANDBOX=off): on a machine without user namespaces, the bundler runs in a process that has network access. */
  bundlerSandbox: boolean;
  /** Npm settings; null if npm packages are switched off. `url` is the registry's URL. `licences` are SPDX names; null allows all. */
  npm: {
    url: string;
    token: string | null;
    licences: readonly string[] | null;
    /** Minimum age in days of a package version that the service chooses. An action can name an exact version of any age. */
    minAgeDays: number;
  } | null;
  /** URL (smtp: or smtps:) of the operator's mail server, for apps without their own server. The URL may contain credentials. */
  smtpUrl: string | null;
  /** From address of the service's mail, optionally with a name: `Name <address>`. */
  mailFrom: string | null;
  openIdProviders: readonly OpenIdProvider[];
  /** GraphQL documents that app users may send: any, or only those of the client library and Studio ("persisted"). */
  graphqlDocuments: "any" | "persisted";
  /** URL of an OpenTelemetry collector, without `/v1/traces`; null if the service sends no traces. */
  otlpEndpoint: string | null;
  logLevel: string;
}

/** Error with one message about all invalid variables. */
export class ConfigError extends StartError {
  override readonly name = "ConfigError";

  constructor(faults: readonly string[]) {
    super(`Cannot start: ${faults.join("; ")}.`);
  }
}

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Returns an error message for each missing variable that another variable requires. Also rejects a RUNTIME_URL that has the service's
 * host.
 */
function findVariableConflicts(env: Environment): string[] {
  const isSet = (name: string) => Boolean(env[name]?.trim());
  const requiredVariablePairs = [
    ["MAIL_FROM", "SMTP_URL"],
    ["SMTP_URL", "MAIL_FROM"],
    ["DATABASE_URL", "DATABASE_DIRECT_URL"],
  ] as const;
  const faults = requiredVariablePairs
    .filter(([name, dependentName]) => isSet(dependentName) && !isSet(name))
    .map(([name, beside]) => `${name} must be set, because ${beside} is set`);
  // Compares hosts without ports: a page on another port of the service's host would receive the service's cookies.
  const readUrlHost = (name: string) => URL.parse(env[name]?.trim() ?? "")?.hostname;
  const serviceHost = isSet("PUBLIC_URL") ? readUrlHost("PUBLIC_URL") : env.HOST?.trim() || HOST_DEFAULT;
  const isSameHost = isSet("RUNTIME_URL") && serviceHost !== undefined && readUrlHost("RUNTIME_URL") === serviceHost;
  return isSameHost
    ? [...faults, `RUNTIME_URL must be an origin whose host is not the service's own (got ${serviceHost})`]
    : faults;
}

function createNpmConfig(values: EnvironmentVariables): Config["npm"] {
  if (!values.NPM_PACKAGES) return null;
  return {
    url: values.NPM_REGISTRY,
    token: values.NPM_TOKEN,
    licences: values.NPM_LICENSES,
    minAgeDays: values.NPM_MIN_AGE_DAYS,
  };
}

function createConfig(values: EnvironmentVariables, openIdProviders: OpenIdProvider[]): Config {
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
    bundlerSandbox: values.NPM_SANDBOX,
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
    npm: createNpmConfig(values),
    smtpUrl: values.SMTP_URL,
    mailFrom: values.MAIL_FROM,
    openIdProviders,
    graphqlDocuments: values.GRAPHQL_DOCUMENTS,
    otlpEndpoint: values.OTEL_EXPORTER_OTLP_ENDPOINT,
    logLevel: values.LOG_LEVEL,
  };
}

/**
 * Reads the configuration from environment variables (contract, section 1). Each invalid variable adds a message to `faults`, and has its
 * default in `config`.
 */
export function readConfigAndFaults(env: Environment = process.env): { config: Config; faults: string[] } {
  const { values, faults: invalidValues } = readEnvironmentVariables(env);
  const faults = [...invalidValues, ...findVariableConflicts(env)];
  const openIdProviders = readOpenIdProviders(env, (name, expected) => faults.push(`${name} must be ${expected}`));
  return { config: createConfig(values, openIdProviders), faults };
}

/** Reads the configuration from environment variables. @throws ConfigError if one is invalid */
export function readConfig(env: Environment = process.env): Config {
  const { config, faults } = readConfigAndFaults(env);
  if (faults.length > 0) throw new ConfigError(faults);
  return config;
}
