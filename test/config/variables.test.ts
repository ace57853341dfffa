/** Tests environment variables: their defaults match the reference, and a faulty value stops the start with the variable's name. */
import { expect } from "chai";
import { listVariableDescriptions } from "../../src/config/variables.js";
import { ConfigError, readConfig } from "../../src/config.js";

/** Invalid values, separated by spaces, of each variable that can have one. */
const FAULTY: Record<string, string> = {
  PORT: "-1 65536 4e3 port",
  TRUST_PROXY: "0 10 all 0.0.0.0/0 10.0.0.1/33 10.0.0.1,",
  PUBLIC_URL: "actions.example.com ftp://a.example https://a.example/?b https://user@a.example",
  RUNTIME_URL: "apps.example.net https://apps.example.net/path",
  DATABASE_URL: "mysql://a",
  DATABASE_DIRECT_URL: "mysql://a",
  ROLES: "web api,web api,",
  CHROME_SANDBOX: "yes 0",
  BROWSER_WS_ENDPOINTS: "http://a ws://a,x ws://a#b",
  EGRESS_PROXY_HOST: "0.0.0.0 :: localhost",
  RATE_LIMIT_MANAGE: "-1 100001",
  RATE_LIMIT_RUN: "-1 1.5",
  RATE_LIMIT_PUBLISH: "x",
  RATE_LIMIT_HTTP: "x",
  RATE_LIMIT_MCP: "x",
  RATE_LIMIT_COMMUNICATE: "x",
  SMTP_URL: "mail.example.com http://mail.example.com smtp://a:b:c",
  MAIL_FROM: "shop shop@ a<b",
  SERVER_TIMEOUT_MS: "0 3600001",
  CLIENT_TIMEOUT_MS: "0",
  SHUTDOWN_GRACE_MS: "-1",
  RUNNER_CONCURRENCY: "0 1001",
  ALLOW_PRIVATE_NETWORK: "yes true",
  SETTINGS_KEY: "short c2hvcnQ=",
  EGRESS_ADDRESS: "localhost 300.1.1.1",
  DEFAULT_TIMEZONE: "Europe/Nowhere",
  NPM_PACKAGES: "1",
  NPM_SANDBOX: "1",
  NPM_REGISTRY: "registry.example.com ftp://registry.example.com https://user:password@registry.example.com",
  NPM_TOKEN: "ä",
  NPM_MIN_AGE_DAYS: "366 -1",
  NPM_LICENSES: "MIT,,ISC (MIT) MIT;ISC",
  QUEUE_MAX: "0",
  QUEUE_MAX_PER_APP: "0",
  QUEUE_MAX_MB: "0",
  LOG_RETENTION_DAYS: "0",
  LOG_MAX_MB: "x",
  INTAKE_QUOTA_MB: "x",
  DATA_SOURCE_QUOTA_MB: "x",
  MEDIA_URL: "s3://B https://a s3://user:key@bucket s3://bucket?color=red",
  MEDIA_MAX_MB: "0 5001",
  MEDIA_QUOTA_MB: "x",
  DISK_FREE_MIN_MB: "x",
  DATABASE_MAX_MB: "x",
  GRAPHQL_DOCUMENTS: "all",
  OTEL_EXPORTER_OTLP_ENDPOINT: "collector:4318",
  LOG_LEVEL: "loud",
};
/** Variables with secret values, which error messages must not show. */
const SECRET_VARIABLES = "DATABASE_URL DATABASE_DIRECT_URL BROWSER_WS_ENDPOINTS SMTP_URL SETTINGS_KEY NPM_TOKEN".split(
  " ",
);
/** Variables that accept any text. */
const VARIABLES_WITH_ANY_TEXT = ["HOST", "DATA_DIR", "CHROME_PATH", "PUPPETEER_CACHE_DIR", "PACKAGES_FILE"];

describe("the environment variables", () => {
  for (const [name, values] of Object.entries(FAULTY)) {
    const isSecret = SECRET_VARIABLES.includes(name);
    it(`${name} rejects an invalid value, with its name and ${isSecret ? "without" : "with"} the value`, () => {
      for (const value of values.split(" ")) {
        const beside = name === "DATABASE_DIRECT_URL" ? { DATABASE_URL: "postgres://a" } : {};
        const read = () => readConfig({ ...beside, [name]: value });
        expect(read, value).to.throw(ConfigError, `${name} must be`);
        const isShown = !isSecret && !/:.*@|\?/.test(value);
        const got = isShown
          ? `"${value}")`
          : `${value.length} characters, not shown because they can contain a secret)`;
        expect(read, value).to.throw(`(got ${got}`);
      }
    });
  }

  it("are named in messages without the credentials of a URL, and without the end of a long text", () => {
    const messageOf = (variables: Record<string, string>): string => {
      try {
        readConfig(variables);
      } catch (error) {
        return (error as Error).message;
      }
      throw new Error("readConfig accepts the value");
    };
    const unscheme = "user:made-up-password@registry.example.com";
    for (const address of [unscheme, `https://${unscheme}`, "ftp://registry.example.com?key=made-up-password"]) {
      for (const name of ["NPM_REGISTRY", "PUBLIC_URL", "MEDIA_URL", "OTEL_EXPORTER_OTLP_ENDPOINT", "OIDC_ISSUER"]) {
        expect(messageOf({ [name]: address }), name)
          .to.include(`${name} must be`)
          .and.not.include("made-up-password");
      }
    }
    expect(messageOf({ MAIL_FROM: "Shop shop@example.com" })).to.include('(got "Shop shop@example.com")');
    expect(messageOf({ LOG_LEVEL: "x".repeat(1_000) })).to.include(`"${"x".repeat(100)}…"`);
  });

  it("each have an invalid value in this test, unless any text is valid", () => {
    const names = listVariableDescriptions().map(([name]) => name);
    expect([...Object.keys(FAULTY), ...VARIABLES_WITH_ANY_TEXT].sort()).to.deep.equal(names.sort());
  });

  it("have the defaults of the reference, also if they are blank", () => {
    const plain = readConfig({});
    const literal = listVariableDescriptions().flatMap(([name, { defaultText: initial }]) => {
      const value = /^`([^`:]+|https:[^`]+)`$/.exec(initial)?.[1];
      return value === undefined || name === "DATABASE_DIRECT_URL" || name === "MEDIA_URL" ? [] : [[name, value]];
    });
    expect(literal.length).to.be.above(30);
    for (const [name, value] of literal) expect(readConfig({ [name!]: value }), name).to.deep.equal(plain);
    for (const [name] of listVariableDescriptions()) expect(readConfig({ [name]: "  " }), name).to.deep.equal(plain);
  });

  it("are all reported at once if several are invalid", () => {
    const openId = { OIDC_CLIENT_ID: "c", OIDC_B_C_CLIENT_SECRET: "s" };
    const faulty = () => readConfig({ PORT: "x", LOG_LEVEL: "loud", MAIL_FROM: "a@example.com", ...openId });
    for (const part of [
      "PORT must be a whole number from 0 to 65535",
      "LOG_LEVEL must be one of",
      "SMTP_URL must be set, because MAIL_FROM is set",
      "OIDC_ISSUER must be set, because OIDC_CLIENT_ID is set",
      "OIDC_B_C_ISSUER must be set, because OIDC_B_C_CLIENT_SECRET is set",
    ])
      expect(faulty).to.throw(ConfigError, part);
  });

  it("RUNTIME_URL must have another host than the service", () => {
    const read = (RUNTIME_URL: string, PUBLIC_URL?: string) => () => readConfig({ RUNTIME_URL, PUBLIC_URL });
    expect(read("https://a.example", "https://a.example:444")).to.throw("RUNTIME_URL must be an origin whose host");
    expect(read("http://127.0.0.1:9")).to.throw("RUNTIME_URL must be");
    const readConfigWithFaults = () => readConfig({ RUNTIME_URL: "http://127.0.0.1:9", PORT: "x" });
    expect(readConfigWithFaults)
      .to.throw("PORT must be")
      .and.to.have.property("message")
      .that.includes("RUNTIME_URL must be");
    expect(read("https://b.example", "https://a.example")().runtimeUrl).to.equal("https://b.example");
  });

  it("of packages have the public registry and any licence as default", () => {
    const usual = { url: "https://registry.npmjs.org", token: null, licences: null, minAgeDays: 7 };
    expect(readConfig({}).npm).to.deep.equal(usual);
    expect(readConfig({ NPM_PACKAGES: "off" }).npm).to.equal(null);
    const withoutSandbox = { NPM_SANDBOX: "off", NPM_PACKAGES: "off" };
    expect([readConfig({}).bundlerSandbox, readConfig(withoutSandbox).bundlerSandbox]).to.deep.equal([true, false]);
    const registryVariables = {
      NPM_REGISTRY: "http://10.0.0.5:4873/npm/",
      NPM_TOKEN: "t",
      NPM_LICENSES: "MIT, Apache-2.0",
    };
    const licences = ["MIT", "Apache-2.0"];
    expect(readConfig(registryVariables).npm).to.deep.equal({
      ...usual,
      url: "http://10.0.0.5:4873/npm",
      token: "t",
      licences,
    });
    expect(() => readConfig({ NPM_TOKEN: "two words" })).to.throw(ConfigError, "NPM_TOKEN must be");
  });
});
