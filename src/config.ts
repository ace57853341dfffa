/** The sole reader of process.env. Turns it into a Config, or names every faulty variable at once. */
import { isIP } from "node:net";
import { availableParallelism } from "node:os";
import { resolve } from "node:path";
import { StartError } from "./errors.js";
import {
  CLIENT_TIMEOUT_MS,
  DATA_SOURCE_QUOTA_MB,
  DISK_FREE_MIN_MB,
  INTAKE_QUOTA_MB,
  LOG_MAX_MB,
  MEDIA_MAX_MB,
  MEDIA_QUOTA_MB,
  NPM_MIN_AGE_DAYS,
  QUEUE_MAX,
  QUEUE_MAX_MB,
  QUEUE_MAX_PER_APP,
  QUEUE_MIN_PER_APP,
  RATE_LIMIT_COMMUNICATE,
  RATE_LIMIT_HTTP,
  RATE_LIMIT_MANAGE,
  RATE_LIMIT_MCP,
  RATE_LIMIT_PUBLISH,
  RATE_LIMIT_RUN,
  SERVER_TIMEOUT_MS,
} from "./limits.js";
import { type OpenIdProvider, readOpenIdProviders } from "./open-id-config.js";

export const ROLES = ["api", "scheduler", "runner"] as const;
export type Role = (typeof ROLES)[number];

/** What one process needs to know to start (contract, section 1). Times are in milliseconds. */
export interface Config {
  port: number;
  host: string;
  /** Whose `X-Forwarded-For` is believed: so many proxies before this service, those addresses and networks, or nobody's. */
  trustProxy: number | string[] | false;
  /** The address that people and browsers use, without a closing slash; unset: http://HOST:PORT. */
  publicUrl: string | null;
  /** An origin of its own for the pages that run authors' code; null: they share the service's, sandboxed there as here. */
  runtimeUrl: string | null;
  /** null: the embedded PostgreSQL under `dataDir`. */
  databaseUrl: string | null;
  /** The same database without a pooler between, for what needs a session of its own; null: that of `databaseUrl`. */
  databaseDirectUrl: string | null;
  /** Absolute path. */
  dataDir: string;
  roles: ReadonlySet<Role>;
  chromePath: string | null;
  /** `ws:` and `wss:` URLs of browsers that others started, used instead of one of our own; may hold credentials. */
  browserWsEndpoints: readonly string[];
  /** The local address at which the browsers' ways out listen, and under which those browsers reach it. */
  egressProxyHost: string;
  /** Where Puppeteer keeps its browsers; null: its usual place. */
  puppeteerCacheDir: string | null;
  /** false only by CHROME_SANDBOX=off, which is warned about at every start. */
  chromeSandbox: boolean;
  /** Requests per 60 s and app, of Communicate per 30 s; 0 is unlimited. */
  rateLimits: { manage: number; run: number; publish: number; communicate: number; http: number; mcp: number };
  serverTimeoutMs: number;
  clientTimeoutMs: number;
  shutdownGraceMs: number;
  runnerConcurrency: number;
  allowPrivateNetwork: boolean;
  /** The local address of every connection that a run makes; null leaves it to the system. */
  egressAddress: string | null;
  /** 32 bytes each, the current one first; null: a file made in `dataDir`. */
  settingsKeys: readonly Buffer[] | null;
  /** Runs that may wait, in all and of one app, and what all their payloads may take. */
  queueMax: number;
  queueMaxPerApp: number;
  queueMaxMb: number;
  logRetentionDays: number;
  /** What an app's finished runs with their logs may take on disk, and its events once more; 0 is unlimited. */
  logMaxMb: number;
  /** What one app's own credentials may have stored in a minute, and its visitors half of; 0 is unlimited. */
  intakeQuotaMb: number;
  /** What the entries of one app may take together, and its snapshots of them once more; 0 is unlimited. */
  dataSourceQuotaMb: number;
  /** Room below which events are refused; 0 never refuses. */
  diskFreeMinMb: number;
  /** What a database of DATABASE_URL may grow to; 0 leaves that to whoever runs it. */
  databaseMaxMb: number;
  /** The bucket that media lie in; null: a folder of `dataDir`. Its credentials are the AWS client's to find. */
  mediaBucket: { bucket: string; prefix: string; endpoint: string | null; region: string } | null;
  /** One file, and all of one app; the latter 0 is unlimited. */
  mediaMaxMb: number;
  mediaQuotaMb: number;
  /** IANA name; the zone of actions that name none. The same in every process, whatever zone its machine is in. */
  defaultTimezone: string;
  /** JSON array of further packages for the catalogue; null: the built-in ones alone. */
  packagesFile: string | null;
  /**
   * The registry from which dependencies are fetched, without a closing slash, its token and the licences that are allowed (SPDX; null:
   * any); null: packages of npm are switched off. `sandbox` is false only by NPM_SANDBOX=off, which is warned about at every start.
   */
  npm: {
    url: string;
    token: string | null;
    licences: readonly string[] | null;
    sandbox: boolean;
    /** Days for which a version is not chosen unless it is named. */
    minAgeDays: number;
  } | null;
  /** The operator's mail server, for apps without one of their own: smtp:// or smtps://, may hold credentials. */
  smtpUrl: string | null;
  /** The sender of what goes by it: an address, perhaps with a name. */
  mailFrom: string | null;
  /** OpenID providers at which people sign in. */
  openIdProviders: readonly OpenIdProvider[];
  /** persisted: app users send no GraphQL documents but those of the client library. */
  graphqlDocuments: "any" | "persisted";
  /** The address of an OpenTelemetry collector, without `/v1/traces`; null: nothing is traced. */
  otlpEndpoint: string | null;
  logLevel: string;
}

export class ConfigError extends StartError {
  override readonly name = "ConfigError";
}

type Environment = Record<string, string | undefined>;

const LOG_LEVELS = ["trace", "debug", "info", "warn", "error", "fatal", "silent"];
const ORIGIN = /^https?:\/\/[^/?#\s@]+\/?$/;
const BUCKET = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/;
/** An origin and perhaps a path of plain segments. */
const ADDRESS = /^https?:\/\/[^/?#\s@]+(\/[\w~-][\w.~-]*)*\/?$/;

const DEFAULT_REGISTRY = "https://registry.npmjs.org";

/** User and password percent-encoded. */
const SMTP_ADDRESS = /^smtps?:\/\/([^/?#\s@]+@)?[^/?#\s@]+\/?$/;
const MAIL_SENDER = /^([^<>\r\n]*<[^<>@\s]+@[^<>@\s]+>|[^<>@\s]+@[^<>@\s]+)$/;

/** An address, or a network such as 10.0.0.0/8 that is not the whole internet. */
function isNetwork(text: string): boolean {
  const [address = "", bits, more] = text.split("/");
  const family = isIP(address);
  if (family === 0 || more !== undefined) return false;
  return bits === undefined || (/^[1-9]\d{0,2}$/.test(bits) && Number(bits) <= (family === 4 ? 32 : 128));
}

class Reader {
  readonly faults: string[] = [];

  constructor(private readonly env: Environment) {}

  private fault<T>(name: string, expected: string, fallback: T): T {
    // The value is not echoed: DATABASE_URL and SETTINGS_KEY are secrets.
    this.faults.push(`${name} must be ${expected}`);
    return fallback;
  }

  text(name: string): string | null {
    return this.env[name]?.trim() || null;
  }

  integer(name: string, fallback: number, min: number, max: number): number {
    const text = this.text(name);
    if (text === null) return fallback;
    const value = Number(text);
    const valid = /^\d+$/.test(text) && value >= min && value <= max;
    return valid ? value : this.fault(name, `a whole number from ${min} to ${max}`, fallback);
  }

  oneOf(name: string, allowed: readonly string[], fallback: string): string {
    const text = this.text(name) ?? fallback;
    return allowed.includes(text) ? text : this.fault(name, `one of ${allowed.join(", ")}`, fallback);
  }

  /** A mail server and its sender, which go together. */
  mail(): Pick<Config, "smtpUrl" | "mailFrom"> {
    const smtpUrl = this.matching(
      "SMTP_URL",
      SMTP_ADDRESS,
      "an address such as smtp://user:password@mail.example.com:587",
    );
    const mailFrom = this.matching("MAIL_FROM", MAIL_SENDER, "an e-mail address, perhaps as Name <address>");
    if (smtpUrl !== null && !URL.canParse(smtpUrl)) this.fault("SMTP_URL", "an address of a mail server", null);
    const isAlone = (name: string, other: string) => this.text(name) !== null && this.text(other) === null;
    if (isAlone("SMTP_URL", "MAIL_FROM")) this.fault("MAIL_FROM", "set where SMTP_URL is", null);
    if (isAlone("MAIL_FROM", "SMTP_URL")) this.fault("SMTP_URL", "set where MAIL_FROM is", null);
    return { smtpUrl, mailFrom };
  }

  /** Of no use alone: the embedded database has no pooler before it. */
  direct(): string | null {
    const name = "DATABASE_DIRECT_URL";
    const url = this.matching(name, /^postgres(ql)?:\/\//, "a postgres:// URL");
    if (url === null || this.text("DATABASE_URL") !== null) return url;
    return this.fault(name, "given beside DATABASE_URL, as the way to the same database", null);
  }

  roles(): ReadonlySet<Role> {
    const names = (this.text("ROLES") ?? ROLES.join(",")).split(",").map((name) => name.trim());
    const known = names.every((name): name is Role => (ROLES as readonly string[]).includes(name));
    return new Set(known ? names : this.fault("ROLES", `a comma-separated list of ${ROLES.join(", ")}`, ROLES));
  }

  matching(name: string, pattern: RegExp, expected: string): string | null {
    const text = this.text(name);
    return text === null || pattern.test(text) ? text : this.fault(name, expected, null);
  }

  /** Without a closing slash. */
  url(name: string, pattern: RegExp, expected: string): string | null {
    const text = this.matching(name, pattern, expected)?.replace(/\/$/, "") ?? null;
    return text === null || URL.canParse(text) ? text : this.fault(name, expected, null);
  }

  /** An origin whose host is another than the service's: browsers share cookies between the ports of a host. */
  otherHost(name: string, own: string): string | null {
    const expected = "an origin such as https://apps.example.net, whose host is not the service's own";
    const text = this.url(name, ORIGIN, expected);
    return text === null || new URL(text).hostname !== own ? text : this.fault(name, expected, null);
  }

  address(name: string): string | null {
    const text = this.text(name);
    return text === null || isIP(text) !== 0 ? text : this.fault(name, "an IP address of this machine", null);
  }

  /** An address that others can connect to. */
  listenAddress(name: string, fallback: string): string {
    const text = this.text(name) ?? fallback;
    const usable = isIP(text) !== 0 && !/^0\.0\.0\.0$|^[0:]+$|%/.test(text);
    return usable ? text : this.fault(name, "one IP address of this machine, under which browsers reach it", fallback);
  }

  /** A count of proxies, or their addresses and networks; never all. */
  proxies(name: string): number | string[] | false {
    const text = this.text(name);
    if (text === null) return false;
    if (/^[1-9]$/.test(text)) return Number(text);
    const networks = text.split(",").map((part) => part.trim());
    const expected = "how many proxies stand before this service (1 to 9), or their addresses and networks, by commas";
    return networks.every(isNetwork) ? networks : this.fault(name, expected, false);
  }

  /** Where packages come from, and which may. */
  npm(): Config["npm"] {
    const isOn = this.oneOf("NPM_PACKAGES", ["on", "off"], "on") === "on";
    const expected = "the address of an npm registry such as https://registry.example.com/npm";
    const url = this.url("NPM_REGISTRY", ADDRESS, expected) ?? DEFAULT_REGISTRY;
    const token = this.matching("NPM_TOKEN", /^[\x21-\x7e]+$/, "a token in one line, without spaces");
    const licences =
      this.text("NPM_LICENSES")
        ?.split(",")
        .map((one) => one.trim()) ?? null;
    const known = licences?.every((one) => /^[A-Za-z0-9.+-]+$/.test(one)) ?? true;
    if (!known) this.fault("NPM_LICENSES", "SPDX identifiers separated by commas, such as MIT,ISC,Apache-2.0", null);
    const sandbox = this.oneOf("NPM_SANDBOX", ["on", "off"], "on") === "on";
    const minAgeDays = this.integer("NPM_MIN_AGE_DAYS", NPM_MIN_AGE_DAYS, 0, 365);
    return isOn ? { url, token, licences, sandbox, minAgeDays } : null;
  }

  webSockets(name: string): readonly string[] {
    const texts = (this.text(name) ?? "").split(",").map((text) => text.trim());
    if (texts.join("") === "") return [];
    const urls = texts.map((text) => URL.parse(text));
    const expected = "ws:// or wss:// addresses separated by commas (a comma in one is %2C)";
    const usable = urls.every((url) => url !== null && /^wss?:$/.test(url.protocol) && url.hash === "");
    return usable ? urls.map((url) => url!.href) : this.fault(name, expected, []);
  }

  /** `s3://bucket/prefix?endpoint=…&region=…` */
  bucket(name: string): Config["mediaBucket"] {
    const text = this.text(name);
    if (text === null) return null;
    const expected = "an address such as s3://bucket/prefix?endpoint=https://s3.example.com&region=eu-central-1";
    const url = /\s/.test(text) ? null : URL.parse(text);
    const known = url !== null && [...url.searchParams.keys()].every((key) => key === "endpoint" || key === "region");
    if (!known || url.protocol !== "s3:" || url.username || url.password || url.port || url.hash) {
      return this.fault(name, `${expected}, and no credentials in it`, null);
    }
    const endpoint = url.searchParams.get("endpoint");
    const region = url.searchParams.get("region") ?? "us-east-1";
    const prefix = url.pathname.split("/").filter(Boolean).join("/");
    const fits =
      BUCKET.test(url.hostname) &&
      /^[\w!.*'()/-]*$/.test(prefix) &&
      /^[a-z0-9-]{1,40}$/.test(region) &&
      (endpoint === null || (ORIGIN.test(endpoint) && URL.canParse(endpoint)));
    return fits ? { bucket: url.hostname, prefix, endpoint, region } : this.fault(name, expected, null);
  }

  timezone(name: string, fallback: string): string {
    const timeZone = this.text(name) ?? fallback;
    try {
      new Intl.DateTimeFormat("en", { timeZone });
      return timeZone;
    } catch {
      return this.fault(name, "an IANA time zone such as Europe/Berlin", fallback);
    }
  }

  keys(name: string): Buffer[] | null {
    const text = this.text(name);
    if (text === null) return null;
    const keys = text.split(",").map((part) => Buffer.from(part, "base64"));
    const expected = "32 bytes in base64, or several such keys separated by commas, the current one first";
    return keys.every((key) => key.length === 32) ? keys : this.fault(name, expected, null);
  }
}

/**
 * Reads the environment (contract, section 1).
 * @throws ConfigError one message that names every faulty variable
 */
export function readConfig(env: Environment = process.env): Config {
  const read = new Reader(env);
  const host = read.text("HOST") ?? "127.0.0.1";
  const publicUrl = read.url(
    "PUBLIC_URL",
    ADDRESS,
    "an address such as https://actions.example.com or https://example.com/actions",
  );
  const config: Config = {
    port: read.integer("PORT", 4000, 0, 65_535),
    host,
    trustProxy: read.proxies("TRUST_PROXY"),
    publicUrl,
    runtimeUrl: read.otherHost("RUNTIME_URL", publicUrl === null ? host : new URL(publicUrl).hostname),
    databaseUrl: read.matching("DATABASE_URL", /^postgres(ql)?:\/\//, "a postgres:// URL"),
    databaseDirectUrl: read.direct(),
    dataDir: resolve(read.text("DATA_DIR") ?? ".data"),
    roles: read.roles(),
    chromePath: read.text("CHROME_PATH"),
    browserWsEndpoints: read.webSockets("BROWSER_WS_ENDPOINTS"),
    egressProxyHost: read.listenAddress("EGRESS_PROXY_HOST", "127.0.0.1"),
    puppeteerCacheDir: read.text("PUPPETEER_CACHE_DIR"),
    chromeSandbox: read.oneOf("CHROME_SANDBOX", ["on", "off"], "on") === "on",
    rateLimits: {
      manage: read.integer("RATE_LIMIT_MANAGE", RATE_LIMIT_MANAGE, 0, 100_000),
      run: read.integer("RATE_LIMIT_RUN", RATE_LIMIT_RUN, 0, 100_000),
      publish: read.integer("RATE_LIMIT_PUBLISH", RATE_LIMIT_PUBLISH, 0, 100_000),
      communicate: read.integer("RATE_LIMIT_COMMUNICATE", RATE_LIMIT_COMMUNICATE, 0, 100_000),
      http: read.integer("RATE_LIMIT_HTTP", RATE_LIMIT_HTTP, 0, 100_000),
      mcp: read.integer("RATE_LIMIT_MCP", RATE_LIMIT_MCP, 0, 100_000),
    },
    serverTimeoutMs: read.integer("SERVER_TIMEOUT_MS", SERVER_TIMEOUT_MS, 1, 3_600_000),
    clientTimeoutMs: read.integer("CLIENT_TIMEOUT_MS", CLIENT_TIMEOUT_MS, 1, 3_600_000),
    shutdownGraceMs: read.integer("SHUTDOWN_GRACE_MS", 30_000, 0, 3_600_000),
    runnerConcurrency: read.integer("RUNNER_CONCURRENCY", 2 * availableParallelism(), 1, 1_000),
    allowPrivateNetwork: read.oneOf("ALLOW_PRIVATE_NETWORK", ["0", "1"], "0") === "1",
    egressAddress: read.address("EGRESS_ADDRESS"),
    settingsKeys: read.keys("SETTINGS_KEY"),
    logRetentionDays: read.integer("LOG_RETENTION_DAYS", 30, 1, 36_500),
    logMaxMb: read.integer("LOG_MAX_MB", LOG_MAX_MB, 0, 1_000_000),
    queueMax: read.integer("QUEUE_MAX", QUEUE_MAX, QUEUE_MIN_PER_APP, 10_000_000),
    queueMaxPerApp: read.integer("QUEUE_MAX_PER_APP", QUEUE_MAX_PER_APP, QUEUE_MIN_PER_APP, 10_000_000),
    queueMaxMb: read.integer("QUEUE_MAX_MB", QUEUE_MAX_MB, 1, 1_000_000),
    intakeQuotaMb: read.integer("INTAKE_QUOTA_MB", INTAKE_QUOTA_MB, 0, 1_000_000),
    dataSourceQuotaMb: read.integer("DATA_SOURCE_QUOTA_MB", DATA_SOURCE_QUOTA_MB, 0, 100_000_000),
    diskFreeMinMb: read.integer("DISK_FREE_MIN_MB", DISK_FREE_MIN_MB, 0, 1_000_000),
    databaseMaxMb: read.integer("DATABASE_MAX_MB", 0, 0, 1_000_000_000),
    mediaBucket: read.bucket("MEDIA_URL"),
    // One request of S3 carries 5 GB.
    mediaMaxMb: read.integer("MEDIA_MAX_MB", MEDIA_MAX_MB, 1, 5_000),
    mediaQuotaMb: read.integer("MEDIA_QUOTA_MB", MEDIA_QUOTA_MB, 0, 1_000_000_000),
    defaultTimezone: read.timezone("DEFAULT_TIMEZONE", "UTC"),
    packagesFile: read.text("PACKAGES_FILE"),
    npm: read.npm(),
    ...read.mail(),
    openIdProviders: readOpenIdProviders(env, (name, expected) => read.faults.push(`${name} must be ${expected}`)),
    graphqlDocuments: read.oneOf("GRAPHQL_DOCUMENTS", ["any", "persisted"], "any") === "any" ? "any" : "persisted",
    otlpEndpoint: read.url("OTEL_EXPORTER_OTLP_ENDPOINT", ADDRESS, "an address such as http://collector:4318"),
    logLevel: read.oneOf("LOG_LEVEL", LOG_LEVELS, "info"),
  };
  if (read.faults.length > 0) throw new ConfigError(`Cannot start: ${read.faults.join("; ")}.`);
  return config;
}
