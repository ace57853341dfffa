import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { Client } from "pg";
import { createDataFolder } from "../harness/fleet.js";
import { emptyDatabase, type FreshDatabase } from "../harness/postgres.js";
import { type ServiceProcess, startProcess } from "../harness/process.js";
import { get } from "../service/support.js";

const INSTANCES = 3;

describe("service processes that start together", () => {
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

  it(`migrate an empty database once, and all ${INSTANCES} serve`, async () => {
    database = await emptyDatabase();
    const environment = {
      DATABASE_URL: database.url,
      ROLES: "api,scheduler",
      SETTINGS_KEY: "A".repeat(43).concat("="),
    };
    const media = folder("svc-media-");
    const services = Array.from({ length: INSTANCES }, () =>
      start({ ...environment, DATA_DIR: createDataFolder(media) }),
    );
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
});
