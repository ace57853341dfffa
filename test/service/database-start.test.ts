/** Starts of a process whose database is away, full, or of another release. */
import { existsSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { expect } from "chai";
import { Client } from "pg";
import { startRestartablePostgres } from "../harness/gateway.js";
import { type FreshDatabase, freshDatabase } from "../harness/postgres.js";
import { type ServiceProcess, startProcess } from "../harness/process.js";
import { until } from "../harness/until.js";
import { get } from "./support.js";

describe("the start of a process", function () {
  this.timeout(120_000);
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

  it("waits for its database, is live and not ready meanwhile, and says so in one line", async () => {
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
      expect(linesOf(service, "the database answers")).to.have.length(1);
      expect(service.stderr()).to.not.contain("Error");
      service.signal("SIGTERM");
      await service.ended;
    } finally {
      await postgres.stop();
    }
  });

  it("logs an outage in one line at its start and one at its end", async () => {
    const postgres = await startRestartablePostgres();
    try {
      const service = start({ DATABASE_URL: postgres.url, ROLES: "api,scheduler,runner" });
      const url = await service.ready();
      const before = service.log.length;
      const restore = await postgres.lose("SIGINT");
      await until(async () => (await get(`${url}/health/ready`)).http === 503);
      const request = { headers: { "auth-token": `svc_api_${"a".repeat(43)}` } };
      for (let turn = 0; turn < 20; turn += 1) await fetch(`${url}/v3/apps/1/actions`, request);
      await restore();
      await until(() => linesOf(service, "the database is back").length > 0);
      const lines = service.log.slice(before);
      const [first] = linesOf(service, "the database is away: failures are counted until it is back");
      const [last] = linesOf(service, "the database is back");
      expect(first).to.have.property("err");
      expect(Number(last!["failures"])).to.be.above(20);
      const messages = lines.map(({ msg }) => String(msg)).sort();
      expect(messages, "each once").to.deep.equal([...new Set(messages)]);
      // The line of the queue, which may lose its connections in two ways, has the error or none.
      expect(messages.filter((message) => !message.startsWith("the queue ended"))).to.deep.equal([
        "lost the connection for notices",
        "notices are back",
        "the database is away: failures are counted until it is back",
        "the database is back",
      ]);
    } finally {
      await postgres.stop();
    }
  });

  it("ends at once on SIGTERM while it waits for its database", async () => {
    const service = start({ DATABASE_URL: "postgres://nobody:a-password-7788@127.0.0.1:9/none" });
    await until(() => linesOf(service, "waiting for the database").length > 0);
    service.signal("SIGTERM");
    expect(await service.ended).to.deep.equal({ code: 0, signal: null });
    expect(JSON.stringify(service.log) + service.stderr()).to.not.contain("a-password-7788");
  });

  it("says how many connections it needs where PostgreSQL has none left", async () => {
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
    const service = start({ DATABASE_URL: `postgres://svc@127.0.0.1:${port}/svc`, ROLES: "api" });
    const line = await until(() => linesOf(service, "waiting for the database")[0]);
    expect(line["reason"]).to.match(/no connection left: this process needs up to 23\. Raise max_connections/);
    expect(service.stderr()).to.equal("");
    service.signal("SIGTERM");
    await service.ended;
    full.close();
  });

  it("names the key file of DATA_DIR where that is another one, and makes none", async () => {
    const database = await freshDatabase();
    const client = new Client({ connectionString: database.url });
    await client.connect();
    await client.query("INSERT INTO settings_key (fingerprint) VALUES ('0123456789abcdef')");
    await client.end();
    const service = start({ DATABASE_URL: database.url });
    expect(await service.ended).to.deep.equal({ code: 1, signal: null });
    const path = join(service.dataDir, "settings-key");
    expect(service.stderr()).to.contain(`${path} of DATA_DIR is missing`).and.to.contain("or set SETTINGS_KEY");
    expect(existsSync(path)).to.equal(false);
    await service.clean();
    await database.drop();
  });

  describe("on the schema of another release", () => {
    let database: FreshDatabase;
    beforeEach(async () => {
      database = await freshDatabase();
    });
    afterEach(() => database.drop());

    async function onDatabase(sql: string): Promise<void> {
      const client = new Client({ connectionString: database.url });
      await client.connect();
      await client.query(sql).finally(() => client.end());
    }

    it("is refused in one line that names the migration and the versions, where no release declares that it fits", async () => {
      await onDatabase("INSERT INTO migration (timestamp, name) VALUES (1999999999999, 'OfTomorrow1999999999999')");
      const service = start({ DATABASE_URL: database.url });
      expect(await service.ended).to.deep.equal({ code: 1, signal: null });
      expect(service.stderr()).to.match(
        /^the database's schema is of a newer release \(it has the migration OfTomorrow1999999999999\); this release runs with schemas up to version \d{13}.*\n$/,
      );
    });

    it("comes up where the next release declares that it fits", async () => {
      await onDatabase(`
        INSERT INTO migration (timestamp, name) VALUES (1999999999999, 'OfTomorrow1999999999999');
        COMMENT ON TABLE migration IS '{"newest": 1999999999999, "oldest": 1763600190100}'`);
      const service = start({ DATABASE_URL: database.url });
      await service.ready();
      service.signal("SIGTERM");
      expect(await service.ended).to.deep.equal({ code: 0, signal: null });
    });

    it("is refused where a later release declares that it does not fit any longer", async () => {
      await onDatabase(`
        INSERT INTO migration (timestamp, name) VALUES (1999999999999, 'OfTomorrow1999999999999');
        COMMENT ON TABLE migration IS '{"newest": 1999999999999, "oldest": 1999999999998}'`);
      const service = start({ DATABASE_URL: database.url });
      expect(await service.ended).to.deep.equal({ code: 1, signal: null });
      expect(service.stderr()).to.contain("newer release");
    });
  });
});
