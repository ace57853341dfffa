import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { Client } from "pg";
import { readConfig } from "../../src/config.js";
import { findChromium, usualPlaces } from "../../src/engine/chromium-path.js";
import { folderWith } from "../harness/fleet.js";
import { emptyDatabase, type FreshDatabase, freshDatabase } from "../harness/postgres.js";
import { type ServiceProcess, startProcess } from "../harness/process.js";
import { firstCredentials } from "../harness/service.js";
import { until } from "../harness/until.js";
import { asEditor, get, QUICK } from "./support.js";

const INSTANCES = 3;

describe("service processes among others", function () {
  this.timeout(90_000);
  const started: ServiceProcess[] = [];
  let database: FreshDatabase | null = null;
  const folders: string[] = [];

  const start = (environment: Record<string, string> = {}) => {
    const service = startProcess(environment);
    started.push(service);
    return service;
  };
  const folder = (prefix: string) => {
    const path = mkdtempSync(join(tmpdir(), prefix));
    folders.push(path);
    return path;
  };
  afterEach(async () => {
    for (const service of started.splice(0)) await service.clean();
    await database?.drop();
    database = null;
    for (const path of folders.splice(0)) rmSync(path, { recursive: true, force: true });
  });

  it(`of ${INSTANCES} started at once on an empty database one migrates and all serve`, async () => {
    database = await emptyDatabase();
    const environment = {
      DATABASE_URL: database.url,
      ROLES: "api,scheduler",
      SETTINGS_KEY: "A".repeat(43).concat("="),
    };
    const media = folder("svc-media-");
    const services = Array.from({ length: INSTANCES }, () => start({ ...environment, DATA_DIR: folderWith(media) }));
    const urls = await Promise.all(services.map((service) => service.ready()));
    const answers = await Promise.all(urls.map((url) => get(`${url}/health/ready`)));
    expect(answers.map(({ http }) => http)).to.deep.equal(Array(INSTANCES).fill(200));
    const client = new Client({ connectionString: database.url });
    await client.connect();
    const found = await client.query("SELECT count(*)::int AS all, count(DISTINCT name)::int AS names FROM migration");
    await client.end();
    expect(found.rows[0].all).to.equal(found.rows[0].names).and.to.be.above(0);
    for (const service of services) service.signal("SIGTERM");
    const codes = await Promise.all(services.map(({ ended }) => ended));
    expect(codes.map(({ code }) => code)).to.deep.equal(Array(INSTANCES).fill(0));
  });

  it("outlives its connections to the database: not ready without them, at work with new ones", async () => {
    database = await freshDatabase();
    const first = await firstCredentials(database.url, folder("svc-first-"));
    const service = start({ DATABASE_URL: database.url });
    const url = await service.ready();
    const editor = asEditor(url, first.tokens.editor);
    await editor.create("quick", QUICK);
    const client = new Client({ connectionString: database.url });
    await client.connect();
    const cut =
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()";
    await client.query(cut);
    await client.end();
    await until(() => service.log.some(({ msg }) => msg === "lost the connection for notices"));
    await until(async () => (await get(`${url}/health/ready`)).http === 200);
    const { body } = await editor.call("POST", "/quick/runWithResult");
    expect(body.result).to.deep.equal({ quick: true });
    service.signal("SIGTERM");
    expect(await service.ended).to.deep.equal({ code: 0, signal: null });
  });

  it("refuses to start where Chromium's sandbox does not, and starts there with a warning when told to", async () => {
    const path = findChromium(readConfig().chromePath, usualPlaces(null))!;
    const wrapper = join(folder("svc-wrapper-"), "chromium");
    chmodSync(join(wrapper, ".."), 0o755);
    // One user namespace and none inside it: what a container or a hardened kernel does to Chromium.
    const limit = "echo 1 > /proc/sys/user/max_user_namespaces";
    const inner = `${limit} && exec unshare --user --map-user=1000 "$0" "$@"`;
    writeFileSync(wrapper, `#!/bin/sh\nexec unshare --user --map-root-user sh -c '${inner}' ${path} "$@"\n`);
    chmodSync(wrapper, 0o755);
    const refused = start({ CHROME_PATH: wrapper });
    expect(await refused.ended).to.deep.equal({ code: 1, signal: null });
    expect(refused.stderr().trim().split("\n")).to.have.length(1);
    expect(refused.stderr()).to.contain("sandbox").and.to.contain("CHROME_SANDBOX=off");
    expect(refused.offspring()).to.deep.equal([]);
    database = await freshDatabase();
    const told = start({ CHROME_PATH: wrapper, CHROME_SANDBOX: "off", DATABASE_URL: database.url });
    await told.ready();
    expect(told.log.some(({ level, msg }) => level === 40 && /CHROME_SANDBOX=off/.test(String(msg)))).to.equal(true);
  });

  it("starts with its data in a folder that only its owner may enter", async () => {
    const outer = folder("svc-private-");
    chmodSync(outer, 0o700);
    const service = start({ DATA_DIR: join(outer, "data"), ROLES: "api" });
    const url = await service.ready();
    expect((await get(`${url}/health/ready`)).http).to.equal(200);
    service.signal("SIGTERM");
    expect((await service.ended).code).to.equal(0);
    expect(service.offspring()).to.deep.equal([]);
  });
});
