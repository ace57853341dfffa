/**
 * Runs the commands of the documentation pages on backup, on backup by cron, and on metrics and traces. Starts one service as a reader
 * would, with an embedded database.
 */
import { existsSync, mkdirSync, readFileSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { blocksIn } from "../docs/pages.js";
import { type Content, createContent, expectContent } from "../harness/app-content.js";
import { emptyDatabase, type FreshDatabase } from "../harness/postgres.js";
import {
  type DocsReader,
  fillPlaceholders,
  freePort,
  lastLine,
  reader,
  type StartedService,
} from "../harness/reader.js";
import { startTraceCollector, type TraceCollector } from "../harness/trace-collector.js";
import { until } from "../harness/until.js";

const DAY_S = 86_400;

describe("the pages on watching and backup", function () {
  this.timeout(600_000);
  let operator: DocsReader;
  let collector: TraceCollector;
  let service: StartedService | undefined;
  let url: string;
  let token: string;
  let content: Content;
  const databases: FreshDatabase[] = [];

  before(async () => {
    operator = reader();
    collector = await startTraceCollector();
  });
  after(async () => {
    await service?.stop();
    operator.cleanUp();
    await collector.stop();
    for (const database of databases) await database.drop();
  });

  async function newDatabase(): Promise<string> {
    const database = await emptyDatabase();
    databases.push(database);
    return database.url;
  }

  async function expectRestored(databaseUrl: string, dataDir: string): Promise<void> {
    const port = await freePort();
    const restored = await operator.start(`DATABASE_URL=${databaseUrl} DATA_DIR=${dataDir} PORT=${port} npm start`);
    await expectContent(`http://127.0.0.1:${port}`, token, content).finally(() => restored.stop());
  }

  describe("docs/operate/watching.md", () => {
    const [metrics, traces] = blocksIn("docs/operate/watching.md", "sh", 2);

    it("starts a service that sends its traces to the collector", async () => {
      const port = await freePort();
      url = `http://127.0.0.1:${port}`;
      const values = { "http://collector:4318": collector.url, "npm start": `PORT=${port} npm start` };
      service = await operator.start(fillPlaceholders(traces!, values));
      token = JSON.parse(readFileSync(join(operator.folder, ".data/credentials.json"), "utf8")).tokens.editor;
      content = await createContent(url, token);
      await expectContent(url, token, content);
      await until(() => collector.spans.length > 0 && collector.paths.has("/v1/traces"), 30_000);
    });

    it("shows the metrics of runs", async () => {
      const printed = await operator.paste(fillPlaceholders(metrics!, { "http://127.0.0.1:4000": url }));
      expect(printed).to.match(/^svc_runs_total\{[^}]*outcome="completed"\} [1-9]/m);
    });

    it("has a doctor that finds no fault", async () => {
      expect(await operator.paste("npm run --silent doctor"))
        .to.contain("ok ")
        .and.not.contain("WRONG");
    });
  });

  describe("docs/operate/backup.md", () => {
    const [backup, restore] = blocksIn("docs/operate/backup.md", "sh", 2);

    it("writes everything into one file while the service runs, and restores it into an empty database", async () => {
      const made = lastLine(await operator.paste(backup!));
      const databaseUrl = await newDatabase();
      const values = { "postgres://user:password@other/svc": databaseUrl };
      const restored = lastLine(await operator.paste(fillPlaceholders(restore!, values)));
      expect(restored.rows).to.equal(made.rows).and.be.above(5);
      expect(restored.files).to.equal(made.files).and.equal(1);
      await expectRestored(databaseUrl, "other");
    });

    it("writes an unencrypted backup that tar lists", async () => {
      const printed = await operator.paste("npm run --silent backup -- open-1 --unencrypted && tar -tzf open-1");
      expect(printed.split("\n")[1]).to.equal("manifest.json");
      expect(printed.trim().split("\n").at(-1)).to.equal("end.json");
    });
  });

  describe("docs/operate/backup-by-cron.md", () => {
    const PAGE = "docs/operate/backup-by-cron.md";
    const [makeKey, restore] = blocksIn(PAGE, "sh", 2);
    const [crontab] = blocksIn(PAGE, "text", 1);
    const inFolder = (path: string) => join(operator.folder, path);
    const backups = () => inFolder("backups");
    const nameOf = (date: Date) => `svc-${date.toISOString().slice(0, 10)}`;

    /**
     * Runs the crontab's command in /bin/sh, as cron does. Replaces `\%` by `%`, and sets the variables of cron and of the crontab.
     */
    function runByCron(lines: string): Promise<string> {
      const environment: Record<string, string> = { SHELL: "/bin/sh", LOGNAME: "svc", PATH: "/usr/bin:/bin" };
      let command = "";
      for (const line of lines.trim().split("\n")) {
        const [, name, value] = /^([A-Z_]+)=(.*)$/.exec(line) ?? [];
        if (name) environment[name] = value!;
        else command = /^(?:\S+ ){5}(.*)$/.exec(line)![1]!.replaceAll("\\%", "%");
      }
      expect(command, "the crontab has a command").to.contain("npm");
      return operator.paste(`exec /bin/sh -c '${command.replaceAll("'", `'\\''`)}'`, environment);
    }

    it("creates the folders and a key that only the service's user can read", async () => {
      const values = { "/etc/svc": inFolder("etc/svc"), "/backups": backups() };
      await operator.paste(fillPlaceholders(makeKey!, values));
      const modes = await operator.paste(
        `stat -c %a ${inFolder("etc/svc")} ${inFolder("etc/svc/backup-key")} ${backups()}`,
      );
      expect(modes.trim().split("\n")).to.deep.equal(["700", "600", "700"]);
    });

    it("writes a backup with the crontab's line, and removes backups that are older than two weeks", async () => {
      const now = Date.now();
      const [old, recent] = [16, 12].map((days) => join(backups(), nameOf(new Date(now - days * DAY_S * 1_000))));
      for (const [file, days] of [
        [old!, 16],
        [recent!, 12],
      ] as const) {
        writeFileSync(file, "a backup of before");
        const time = now / 1_000 - days * DAY_S;
        utimesSync(file, time, time);
      }
      const embedded = readFileSync(inFolder(".data/database-url"), "utf8").trim();
      const values = {
        "postgres://svc:password@db/svc": embedded,
        "/opt/svc-app-actions": operator.folder,
        "/etc/svc": inFolder("etc/svc"),
        "/backups": backups(),
      };
      expect(lastLine(await runByCron(fillPlaceholders(crontab!, values))).rows).to.be.above(5);
      expect([existsSync(old!), existsSync(recent!)]).to.deep.equal([false, true]);
    });

    it("restores the night's backup on another machine", async () => {
      const databaseUrl = await newDatabase();
      mkdirSync(inFolder("srv"));
      const [name] = (await operator.paste(`ls -t ${backups()}`)).split("\n");
      const values = {
        "postgres://svc:password@other/svc": databaseUrl,
        "/srv/other": inFolder("srv/other"),
        "/backups/svc-2026-11-21": join(backups(), name!),
        "/etc/svc": inFolder("etc/svc"),
      };
      expect(lastLine(await operator.paste(fillPlaceholders(restore!, values))).files).to.equal(1);
      await expectRestored(databaseUrl, inFolder("srv/other"));
    });
  });
});
