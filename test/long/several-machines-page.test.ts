/**
 * Runs the commands of the documentation pages on several machines and on Prometheus. Each machine has its own process and checkout. All
 * share one PostgreSQL and one bucket.
 */
import { copyFileSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { load } from "js-yaml";
import { Client } from "pg";
import { evaluate, parseExpression, type Sample, samplesIn } from "../deploy/promql.js";
import { blocksIn } from "../docs/pages.js";
import { type Content, createContent, expectContent } from "../harness/app-content.js";
import { emptyDatabase, type FreshDatabase } from "../harness/postgres.js";
import {
  type DocsReader,
  fillPlaceholders,
  freePort,
  freshCheckout,
  lastLine,
  ROOT,
  reader,
  type StartedService,
} from "../harness/reader.js";
import { startS3 } from "../harness/s3.js";
import { until } from "../harness/until.js";

const PAGE = "docs/operate/several-machines.md";
const ROLES = ["api", "api", "scheduler", "runner"] as const;
const BUCKET = "svc-files";

interface Machine {
  reader: DocsReader;
  url: string;
  started: StartedService;
}

async function query(url: string, sql: string): Promise<Record<string, unknown>[]> {
  const client = new Client({ connectionString: url });
  await client.connect();
  return client
    .query(sql)
    .then(({ rows }) => rows)
    .finally(() => client.end());
}

describe("the page on several machines", function () {
  this.timeout(600_000);
  const [once, each] = blocksIn(PAGE, "sh", 3);
  let database: FreshDatabase;
  let s3: Awaited<ReturnType<typeof startS3>>;
  let ports: number[];
  let setupLink: string;
  let token: string;
  let content: Content;
  const readers: DocsReader[] = [];
  const machines: Machine[] = [];

  before(async () => {
    database = await emptyDatabase();
    s3 = await startS3(BUCKET);
    ports = await Promise.all(ROLES.map(() => freePort()));
    for (const _ of ROLES) readers.push(reader(freshCheckout()));
  });
  after(async () => {
    await Promise.all(machines.map(({ started }) => started.stop()));
    for (const machineReader of readers) machineReader.cleanUp();
    await s3.stop();
    await database.drop();
  });

  const urlOf = (at: number) => `http://127.0.0.1:${ports[at]}`;

  /** Returns the page's command that starts a role. The block's first line reads svc.env; each other line starts one role. */
  function commandOf(role: string, port: number): string {
    const [reads, ...starts] = each!.trim().split("\n");
    const command = starts.find((line) => line.startsWith(`ROLES=${role} `))!;
    return `${reads}\n${fillPlaceholders(command, { "npm start": `PORT=${port} npm start` })}`;
  }

  it("creates the key, the file of variables and the first app on one machine", async () => {
    const commands = fillPlaceholders(once!, {
      "postgres://svc:password@db/svc": database.url,
      [`s3://${BUCKET}?region=eu-central-1`]: `s3://${BUCKET}?region=eu-central-1&endpoint=${s3.url}`,
      "AWS_ACCESS_KEY_ID=…": "AWS_ACCESS_KEY_ID=S3RVER",
      "AWS_SECRET_ACCESS_KEY=…": "AWS_SECRET_ACCESS_KEY=S3RVER",
      "https://actions.example.com": urlOf(0),
    });
    ({ setupLink } = lastLine(await readers[0]!.paste(commands)));
    expect(setupLink).to.match(new RegExp(`^http://localhost:${ports[0]}/`));
    expect(statSync(join(readers[0]!.folder, "svc.env")).mode & 0o777).to.equal(0o600);
    const credentials = JSON.parse(readFileSync(join(readers[0]!.folder, ".data/credentials.json"), "utf8"));
    token = credentials.tokens.editor;
  });

  it("starts the roles on the other machines with a copy of the file", async () => {
    for (const { folder } of readers.slice(1)) {
      copyFileSync(join(readers[0]!.folder, "svc.env"), join(folder, "svc.env"));
    }
    const starts = ROLES.map(async (role, at) => {
      const started = await readers[at]!.start(commandOf(role, ports[at]!));
      machines.push({ reader: readers[at]!, url: urlOf(at), started });
    });
    await Promise.all(starts);
    const metrics = await (await fetch(`${urlOf(3)}/metrics`)).text();
    for (const [role, count] of Object.entries({ api: 2, scheduler: 1, runner: 1 })) {
      expect(metrics).to.contain(`svc_instances{role="${role}"} ${count}`);
    }
  });

  it("serves at one API what the other one saved, with files, and runs actions on the runner", async () => {
    content = await createContent(urlOf(0), token);
    await expectContent(urlOf(0), token, content);
    await expectContent(urlOf(1), token, content);
  });

  it("runs a due tick that the scheduler of another machine claims", async () => {
    const call = (path: string, body?: object) =>
      fetch(`${urlOf(1)}${path}`, {
        method: "POST",
        headers: { "auth-token": token, "content-type": "application/json" },
        body: JSON.stringify(body ?? {}),
      }).then(async (response) => {
        expect(response.status, path).to.be.within(200, 299);
        // biome-ignore lint/suspicious/noExplicitAny: each route returns another type
        return (await response.json()) as any;
      });
    await call("/v1/apps/1/publish");
    const code = "async function execute() { return 1; }";
    const scheduled = {
      name: "ticking",
      triggers: [{ trigger: "schedule" }],
      frequency: "0 * * * *",
      active: true,
      code,
    };
    const { action } = await call("/v3/apps/1/actions", scheduled);
    await call(`/v3/apps/1/actions/${action.id}/publish`);
    await query(database.url, "UPDATE schedule SET next_tick = now() - interval '1 second'");
    await until(async () => {
      const rows = await query(database.url, "SELECT state FROM run WHERE tick IS NOT NULL");
      return rows.some(({ state }) => state === "completed");
    }, 60_000);
  });

  it("has a doctor that finds no fault on a machine of the page", async () => {
    const [reads] = each!.trim().split("\n");
    const printed = await readers[0]!.paste(`${reads}\nROLES=api npm run --silent doctor`);
    expect(printed).to.contain("ok ").and.not.contain("WRONG");
  });

  it("rejects an API with another media store, as the page says", async () => {
    const command = fillPlaceholders(commandOf("api", await freePort()), { "set +a": "set +a && unset MEDIA_URL" });
    const fault = await readers[1]!.start(command).then(
      () => "it started",
      ({ message }: Error) => message,
    );
    expect(fault).to.contain("give every process the same DATA_DIR/media on a shared volume, or the same bucket");
  });

  describe("and the page on Prometheus", () => {
    interface PrometheusConfig {
      scrape_configs: { static_configs: { targets: string[] }[] }[];
      rule_files: string[];
    }
    let config: PrometheusConfig;
    let rules: { alert: string; expr: string }[];

    before(() => {
      const [yaml] = blocksIn("docs/operate/prometheus.md", "yaml", 1);
      const hosts = ROLES.map((_, at) => `"127.0.0.1:${ports[at]}"`).join(", ");
      config = load(
        fillPlaceholders(yaml!, {
          '"10.0.0.5:4000", "10.0.0.6:4000", "10.0.0.7:4000"': hosts,
          "/etc/prometheus/svc-alerts.yaml": join(ROOT, "deploy/alerts.yaml"),
        }),
      ) as PrometheusConfig;
      const { groups } = load(readFileSync(config.rule_files[0]!, "utf8")) as { groups: { rules: typeof rules }[] };
      rules = groups.flatMap((group) => group.rules);
    });

    /** Returns the samples of all targets, each with its instance, as Prometheus stores them. */
    async function scrape(): Promise<Sample[]> {
      const targets = config.scrape_configs.flatMap((job) =>
        job.static_configs.flatMap((staticConfig) => staticConfig.targets),
      );
      const samples = targets.map(async (instance) => {
        const response = await fetch(`http://${instance}/metrics`);
        expect(response.status, instance).to.equal(200);
        return samplesIn(await response.text()).map((sample) => ({
          ...sample,
          labels: { ...sample.labels, instance },
        }));
      });
      return (await Promise.all(samples)).flat();
    }

    it("has targets that respond, and rules of which none fires while all machines are healthy", async () => {
      const before = await scrape();
      expect(before.filter(({ name }) => name === "svc_database_up").map(({ value }) => value)).to.deep.equal([
        1, 1, 1, 1,
      ]);
      await expectContent(urlOf(1), token, content);
      const after = await scrape();
      expect(rules.length).to.be.above(10);
      const firing = rules.filter(({ expr }) => evaluate(expr, before, after).length > 0);
      // On a busy machine, the event loop is late. So the rule SvcEventLoopLate may fire.
      expect(firing.map(({ alert }) => alert).filter((alert) => alert !== "SvcEventLoopLate")).to.deep.equal([]);
    });

    it("has a valid expression for ticks due in a minute, of a metric that a scheduler has", async () => {
      const [expression] = blocksIn(PAGE, "text", 1);
      parseExpression(expression!.trim());
      const [metric] = /svc_\w+/.exec(expression!)!;
      expect((await scrape()).map(({ name }) => name)).to.include(metric);
    });

    it("has a rule that fires once all machines are stopped", async () => {
      const before = await scrape();
      await Promise.all(machines.map(({ started }) => started.stop()));
      machines.length = 0;
      const { expr } = rules.find(({ alert }) => alert === "SvcNoProcess")!;
      expect(evaluate(expr, before, [])).to.have.length(1);
    });
  });
});
