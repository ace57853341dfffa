/**
 * Tests starts of the service with a fault of the environment, of the machine or of the schema. Starts the service inside the test's
 * process, which takes a tenth of the time of a separate process. lifecycle.test.ts tests that a process prints a fault and exits with 1.
 */
import { chmodSync, existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { Client } from "pg";
import { readConfig } from "../../src/config.js";
import { findChromium, getDefaultChromiumPaths } from "../../src/engine/chromium-path.mjs";
import { formatFatalError } from "../../src/errors.js";
import { type Service, startService } from "../../src/service.js";
import { childProcesses } from "../harness/global.js";
import { type FreshDatabase, freshDatabase, startTestServer } from "../harness/postgres.js";
import { longTest } from "../harness/samples.js";
import { startTestService } from "../harness/service.js";
import { until } from "../harness/until.js";
import { get, QUICK } from "./support.js";

describe("the start of a service", () => {
  const folders: string[] = [];
  const folder = () => {
    const path = mkdtempSync(join(tmpdir(), "svc-start-"));
    folders.push(path);
    return path;
  };
  let shared: FreshDatabase;
  let sharedFolder: string;
  /** Starts the service with the database and the folder that these tests share. If `database` is null, it starts an embedded database. */
  async function start(environment: Record<string, string>, database: string | null = shared.url): Promise<Service> {
    const given = { PORT: "0", DATA_DIR: sharedFolder, LOG_LEVEL: "silent", NPM_PACKAGES: "off" };
    return startService(readConfig({ ...given, ...(database && { DATABASE_URL: database }), ...environment }));
  }

  /** Starts a service that must fail. Returns its error, which must be one line. No process that the service started may remain. */
  async function startAndReadFault(environment: Record<string, string>, database?: string | null): Promise<string> {
    const before = childProcesses().sort();
    const outcome = await start(environment, database).catch((error: unknown) => formatFatalError(error));
    if (typeof outcome !== "string") {
      await outcome.stop({ now: true });
      throw new Error("the service started");
    }
    expect(childProcesses().sort()).to.deep.equal(before);
    expect(outcome.split("\n")).to.have.length(1);
    return outcome;
  }

  const blocked = join(tmpdir(), `svc-start-file-${process.pid}`);
  before(async () => {
    shared = await freshDatabase();
    sharedFolder = mkdtempSync(join(tmpdir(), "svc-start-"));
    writeFileSync(blocked, "");
  });
  after(async () => {
    rmSync(blocked);
    rmSync(sharedFolder, { recursive: true, force: true });
    await shared.drop();
  });
  afterEach(() => {
    for (const path of folders.splice(0)) rmSync(path, { recursive: true, force: true });
  });

  const faults: [Record<string, string>, RegExp][] = [
    [{ EGRESS_ADDRESS: "192.0.2.7" }, /^EGRESS_ADDRESS must be an address of this machine \(got 192\.0\.2\.7\)$/],
    [{ HOST: "192.0.2.7" }, /^HOST must be an address of this machine \(got 192\.0\.2\.7\)/],
    [
      { DATA_DIR: join(blocked, "data") },
      /^DATA_DIR must be a folder in which this process can create files \(got .*ENOTDIR\)$/,
    ],
    [
      { DATA_DIR: "/proc/no-folder-can-be-made-here" },
      /^DATA_DIR must be a folder in which this process can create files/,
    ],
    [
      { EGRESS_PROXY_HOST: "198.51.100.7", BROWSER_WS_ENDPOINTS: "ws://127.0.0.1:9" },
      /^EGRESS_PROXY_HOST must be an address of this machine \(got 198\.51\.100\.7\)$/,
    ],
    [{ MAIL_FROM: "shop@example.com" }, /SMTP_URL must be set, because MAIL_FROM is set/],
    [{ SMTP_URL: "smtp://mail.example.com" }, /MAIL_FROM must be set, because SMTP_URL is set/],
    [{ PACKAGES_FILE: "/nowhere/packages.json" }, /PACKAGES_FILE/],
    [{ CHROME_PATH: "/nowhere/chromium" }, /Chromium/],
  ];
  for (const [environment, line] of faults) {
    it(`fails in one line that names ${Object.entries(environment)[0]!.join("=").replace(tmpdir(), "…")}`, async () => {
      expect(await startAndReadFault(environment)).to.match(line);
    });
  }

  it("fails in one line that names every variable that this machine cannot use", async () => {
    const environment = {
      HOST: "192.0.2.7",
      EGRESS_ADDRESS: "192.0.2.8",
      CHROME_PATH: "/nowhere/chromium",
      PACKAGES_FILE: "/nowhere/packages.json",
      DATA_DIR: join(blocked, "data"),
    };
    const fault = await startAndReadFault(environment);
    for (const name of Object.keys(environment)) expect(fault).to.contain(name);
  });

  it("fails in one line if its port is in use, and the other process continues", async () => {
    const holder = createServer((_request, response) => response.end());
    await new Promise<void>((resolve) => holder.listen(0, "127.0.0.1", resolve));
    const { port } = holder.address() as AddressInfo;
    expect(await startAndReadFault({ PORT: String(port) }))
      .to.contain("EADDRINUSE")
      .and.to.contain(String(port));
    expect((await fetch(`http://127.0.0.1:${port}`)).status).to.equal(200);
    holder.closeAllConnections();
    holder.close();
  });

  longTest("fails in one line without Chromium, and leaves no database process", async () => {
    expect(await startAndReadFault({ CHROME_PATH: "/nowhere/chromium", DATA_DIR: folder() }, null))
      .to.match(/Chromium/)
      .and.to.match(/CHROME_PATH|\/nowhere\/chromium/);
  });

  it("fails in one line if its database cannot be opened", async () => {
    const url = new URL(await startTestServer());
    url.pathname = "/none-of-this-name";
    expect(await startAndReadFault({}, url.href))
      .to.contain("DATABASE_URL")
      .and.to.not.contain(url.password || "password");
  });

  longTest("fails if Chromium's sandbox does not start, and succeeds with CHROME_SANDBOX off", async () => {
    const path = findChromium(readConfig().chromePath, getDefaultChromiumPaths(null))!;
    const wrapper = join(folder(), "chromium");
    chmodSync(join(wrapper, ".."), 0o755);
    // The process has one user namespace and cannot create nested ones, as in a container or on a hardened kernel.
    const limit = "echo 1 > /proc/sys/user/max_user_namespaces";
    const inner = `${limit} && exec unshare --user --map-user=1000 "$0" "$@"`;
    writeFileSync(wrapper, `#!/bin/sh\nexec unshare --user --map-root-user sh -c '${inner}' ${path} "$@"\n`);
    chmodSync(wrapper, 0o755);
    expect(await startAndReadFault({ CHROME_PATH: wrapper }))
      .to.contain("sandbox")
      .and.to.contain("CHROME_SANDBOX=off");
    const service = await start({ CHROME_PATH: wrapper, CHROME_SANDBOX: "off" });
    await service.stop();
  });

  longTest("succeeds with its data in a folder that only its owner may enter", async () => {
    const outer = folder();
    chmodSync(outer, 0o700);
    const before = childProcesses().sort();
    const service = await start({ DATA_DIR: join(outer, "data"), ROLES: "api" }, null);
    expect((await get(`${service.url}/health/ready`)).http).to.equal(200);
    await service.stop();
    expect(childProcesses().sort()).to.deep.equal(before);
  });

  longTest("opens new connections to the database after all are cut, and runs actions again", async () => {
    const service = await startTestService();
    const actions = `/v3/apps/${service.appId}/actions`;
    const body = { name: "quick", code: QUICK, active: true, triggers: [{ trigger: "manual" }] };
    await service.rest("POST", actions, { body });
    const client = new Client({ connectionString: service.databaseUrl });
    await client.connect();
    await client.query(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()",
    );
    await client.end();
    const answer = await until(async () => {
      const { http, body } = await service.rest("POST", `${actions}/quick/runWithResult`, { body: {} });
      return http === 200 && body;
    });
    expect(answer.result).to.deep.equal({ quick: true });
    await until(async () => (await get(`${service.url}/health/ready`)).http === 200);
    await service.stop();
  });

  describe("on a database of another release or service", () => {
    let database: FreshDatabase;
    beforeEach(async () => {
      database = await freshDatabase();
    });
    afterEach(() => database.drop());

    async function queryDatabase(sql: string): Promise<void> {
      const client = new Client({ connectionString: database.url });
      await client.connect();
      await client.query(sql).finally(() => client.end());
    }
    const ROLES = { ROLES: "api,scheduler" };

    it("names the key file of DATA_DIR if the database has another key, and creates none", async () => {
      await queryDatabase("INSERT INTO settings_key (fingerprint) VALUES ('0123456789abcdef')");
      const dataDir = folder();
      const path = join(dataDir, "settings-key");
      expect(await startAndReadFault({ ...ROLES, DATA_DIR: dataDir }, database.url))
        .to.contain(`${path} of DATA_DIR is missing`)
        .and.to.contain("or set SETTINGS_KEY");
      expect(existsSync(path), String(readdirSync(dataDir))).to.equal(false);
    });

    it("fails in one line that names the migration and the versions, if no release declares compatibility", async () => {
      await queryDatabase("INSERT INTO migration (timestamp, name) VALUES (1999999999999, 'OfTomorrow1999999999999')");
      expect(await startAndReadFault(ROLES, database.url)).to.match(
        /^the database's schema is of a newer release \(it has the migration OfTomorrow1999999999999\); this release runs with schemas up to version \d{13}.*$/,
      );
    });

    it("succeeds if the next release declares compatibility", async () => {
      await queryDatabase(`
        INSERT INTO migration (timestamp, name) VALUES (1999999999999, 'OfTomorrow1999999999999');
        COMMENT ON TABLE migration IS '{"newest": 1999999999999, "oldest": 1763600190100}'`);
      await (await start(ROLES, database.url)).stop();
    });

    it("fails if a later release declares that it is no longer compatible", async () => {
      await queryDatabase(`
        INSERT INTO migration (timestamp, name) VALUES (1999999999999, 'OfTomorrow1999999999999');
        COMMENT ON TABLE migration IS '{"newest": 1999999999999, "oldest": 1999999999998}'`);
      expect(await startAndReadFault(ROLES, database.url)).to.contain("newer release");
    });
  });
});
