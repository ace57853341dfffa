/** Tests how a process opens its database: it waits for PostgreSQL, and warns if too few connections are left. */
import { syncBuiltinESMExports } from "node:module";
import { createServer } from "node:net";
import { mock } from "node:test";
import { expect } from "chai";
import { Client } from "pg";
import { pino } from "pino";
import { readConfig } from "../../src/config.js";
import { openServiceDatabase, waitUntilDatabaseReachable } from "../../src/service/database-start.js";
import { startRestartablePostgres } from "../harness/gateway.js";
import { freshDatabase } from "../harness/postgres.js";
import { type ServiceProcess, startProcess } from "../harness/process.js";
import { longTest } from "../harness/samples.js";
import { until } from "../harness/until.js";
import { get } from "./support.js";

describe("the start of a process", () => {
  const started: ServiceProcess[] = [];
  const start = (environment: Record<string, string>) => {
    const service = startProcess({ ROLES: "api,scheduler", LOG_LEVEL: "info", NPM_PACKAGES: "off", ...environment });
    started.push(service);
    return service;
  };
  const linesOf = (service: ServiceProcess, message: string) => service.log.filter(({ msg }) => msg === message);
  afterEach(async () => {
    for (const service of started.splice(0)) await service.clean();
  });

  longTest("waits for its database, is live and not ready meanwhile, and logs it in one line", async () => {
    const postgres = await startRestartablePostgres();
    try {
      const restore = await postgres.lose("SIGINT");
      const service = start({ DATABASE_URL: postgres.url });
      const url = await service.listening();
      await until(() => linesOf(service, "waiting for the database").length > 0);
      expect((await get(`${url}/health/live`)).http).to.equal(200);
      const { http, body } = await get(`${url}/health/ready`);
      expect(http).to.equal(503);
      expect(body.failing).to.include("database");
      await restore();
      await service.ready();
      expect((await get(`${url}/health/ready`)).http).to.equal(200);
      expect(linesOf(service, "waiting for the database")).to.have.length(1);
      expect(linesOf(service, "the database responds")).to.have.length(1);
      expect(service.stderr()).to.not.contain("Error");
      service.signal("SIGTERM");
      await service.ended;
    } finally {
      await postgres.stop();
    }
  });

  longTest(
    "reports how many connections it needs if PostgreSQL has none left, and ends at once on SIGTERM",
    async () => {
      const full = createServer((socket) => {
        socket.once("data", () => {
          const fields = "SFATAL\0VFATAL\0C53300\0Msorry, too many clients already\0\0";
          const length = Buffer.alloc(4);
          length.writeInt32BE(fields.length + 4);
          socket.end(Buffer.concat([Buffer.from("E"), length, Buffer.from(fields)]));
        });
      });
      await new Promise<void>((resolve) => full.listen(0, "127.0.0.1", resolve));
      const { port } = full.address() as { port: number };
      const service = start({ DATABASE_URL: `postgres://svc:a-password-7788@127.0.0.1:${port}/svc`, ROLES: "api" });
      const line = await until(() => linesOf(service, "waiting for the database")[0]);
      expect(line["reason"]).to.match(/no connection left: this process needs up to 24\. Raise max_connections/);
      expect(service.stderr()).to.equal("");
      service.signal("SIGTERM");
      expect(await service.ended).to.deep.equal({ code: 0, signal: null });
      expect(JSON.stringify(service.log) + service.stderr()).to.not.contain("a-password-7788");
      full.close();
    },
  );
});

describe("the wait for the database", () => {
  const { now: realNow } = performance;
  const lines: { at: number; msg: string }[] = [];
  const pauses: number[] = [];
  let time: number;

  beforeEach(() => {
    time = 1_000;
    lines.length = 0;
    pauses.length = 0;
    performance.now = () => time;
    const pass = async (ms = 0) => {
      pauses.push(ms);
      time += ms;
    };
    mock.method(process.getBuiltinModule("node:timers/promises"), "setTimeout", pass);
    syncBuiltinESMExports();
  });
  afterEach(() => {
    performance.now = realNow;
    mock.restoreAll();
    syncBuiltinESMExports();
  });

  it("has growing pauses of at most ten seconds, and one log line a minute", async () => {
    const log = pino({}, { write: (line) => void lines.push({ at: time, msg: JSON.parse(line).msg }) });
    const stopRequested = new AbortController().signal;
    const connect = async () => {
      if (time < 150_000) throw Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" });
      return "opened";
    };
    expect(await waitUntilDatabaseReachable(connect, { log, stopRequested, describeError: () => "refused" })).to.equal(
      "opened",
    );
    expect(pauses.slice(0, 5)).to.deep.equal([500, 1_000, 2_000, 4_000, 8_000]);
    expect(new Set(pauses.slice(5))).to.deep.equal(new Set([10_000]));
    expect(lines).to.deep.equal([
      { at: 1_000, msg: "waiting for the database" },
      { at: 66_500, msg: "waiting for the database" },
      { at: 126_500, msg: "waiting for the database" },
      { at: 156_500, msg: "the database responds" },
    ]);
  });
});

it("the start warns if PostgreSQL has fewer connections left than the process may need", async () => {
  const database = await freshDatabase();
  const client = new Client({ connectionString: database.url });
  await client.connect();
  const lines: Record<string, unknown>[] = [];
  const log = pino({}, { write: (line) => void lines.push(JSON.parse(line)) });
  const open = async () => {
    lines.length = 0;
    const config = readConfig({ DATABASE_URL: database.url, ROLES: "api" });
    const { db, notifications } = await openServiceDatabase(config, database.url, {
      log,
      stopRequested: new AbortController().signal,
    });
    await notifications.stop();
    await db.destroy();
    return lines.filter(({ msg }) => String(msg).includes("too few connections"));
  };
  try {
    expect(await open()).to.deep.equal([]);
    await client.query(`ALTER DATABASE ${client.database} CONNECTION LIMIT 20`);
    const [warning, ...others] = await open();
    expect(others).to.deep.equal([]);
    expect(warning).to.include({ needed: 24, most: 20, level: pino.levels.values["warn"] });
    expect(warning!["msg"]).to.equal(
      "PostgreSQL has too few connections left; raise max_connections, or run fewer processes",
    );
    expect(warning!["left"]).to.be.below(20);
  } finally {
    await client.end();
    await database.drop();
  }
});
