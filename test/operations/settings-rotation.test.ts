/** Tests the rotation of SETTINGS_KEY under load, with a key in the environment and in a file. */
import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect } from "chai";
import { openDatabase } from "../../src/data/database.js";
import { createKeyRing, readKeyFile } from "../../src/engine/key-ring.js";
import { DataKeys } from "../../src/operations/settings/data-keys.js";
import { rotateSettingsKey } from "../../src/operations/settings/settings-rotation.js";
import { freshDatabase } from "../harness/postgres.js";
import { programEnvironment } from "../harness/program-environment.js";
import { startTestService, type TestService } from "../harness/service.js";

const ROTATE_COMMAND = fileURLToPath(new URL("../../src/cli/settings-rotate.js", import.meta.url));
const APP_COUNT = 4;
const ROTATIONS_PER_CASE = 2;

describe("rotation of the settings' key", () => {
  let service: TestService;
  let dataDir: string;
  let path: string;
  before(async () => {
    dataDir = mkdtempSync(join(tmpdir(), "svc-rotation-"));
    path = join(dataDir, "settings-key");
    service = await startTestService({ ROLES: "api", DATA_DIR: dataDir });
  });
  after(async () => {
    await service.stop();
    rmSync(dataDir, { recursive: true, force: true });
  });

  async function newApp(): Promise<string> {
    const { body } = await service.rest("POST", "/v1/admin/apps", { as: "admin", body: { name: "app" } });
    return `/v1/apps/${body.app.id}/settings`;
  }

  it("fails no read, no write and no first secret of a new app while it runs", async () => {
    const settled: number[] = [];
    const apps = await Promise.all(Array.from({ length: APP_COUNT }, newApp));
    const call = async (method: string, where: string, body?: object) => {
      const answer = await service.rest(method, where, { as: "admin", body });
      settled.push(answer.http);
      return answer;
    };
    for (const app of apps) await call("POST", app, { _secret: `of ${app}` });
    // Keys of a process that has read the key file before the rotation, but has not decrypted a data key yet.
    const oldRing = createKeyRing({ keys: null, path });
    const ids = apps.map((app) => Number(app.split("/")[3]));
    const dataKeys = () => new DataKeys({ db: service.db, ring: oldRing });
    const before = await Promise.all(ids.map((id) => dataKeys().find(id)));
    let isRunning = true;
    const repeatWhileRunning = async (work: (turn: number) => Promise<unknown>) => {
      for (let turn = 0; isRunning; turn += 1) await work(turn);
    };
    const load = [
      repeatWhileRunning(async (turn) => {
        const app = apps[turn % APP_COUNT]!;
        expect((await call("GET", app)).body).to.deep.include({ _secret: `of ${app}` });
      }),
      repeatWhileRunning((turn) => call("POST", apps[turn % APP_COUNT]!, { _turn: turn })),
      repeatWhileRunning(async () => {
        const app = await newApp();
        await call("POST", app, { __first: 1, _first: "x" });
        expect((await call("GET", app)).body).to.deep.equal({ _first: "x" });
      }),
      repeatWhileRunning(async (turn) => {
        expect((await dataKeys().find(ids[turn % APP_COUNT]!))?.equals(before[turn % APP_COUNT]!)).to.equal(true);
      }),
    ];
    const db = await openDatabase(service.databaseUrl, 3);
    for (let turn = 0; turn < ROTATIONS_PER_CASE; turn += 1) {
      const done = settled.length;
      await rotateSettingsKey({ db, keys: null, path });
      while (settled.length < done + 10) await call("GET", apps[0]!);
    }
    // Two rotations run at once. Neither may remove the other's key.
    await Promise.all([0, 1].map(() => rotateSettingsKey({ db, keys: null, path })));
    isRunning = false;
    await Promise.all(load);
    await db.destroy();
    expect(settled.filter((http) => http !== 200)).to.deep.equal([]);
    expect(settled.length).to.be.greaterThan(10 * ROTATIONS_PER_CASE);
  });

  it("leaves only the new key in the file, and no data key under another", async () => {
    const [current, ...others] = readKeyFile(path);
    expect(others).to.deep.equal([]);
    const ring = createKeyRing({ keys: [current!], path: "" });
    const apps = await service.db.query("SELECT id FROM app WHERE data_key IS NOT NULL");
    expect(apps).to.have.length.greaterThan(APP_COUNT);
    for (const { id } of apps) {
      expect((await new DataKeys({ db: service.db, ring }).find(id))?.symmetricKeySize).to.equal(32);
    }
  });

  it("is a command that runs beside the service", async () => {
    const old = readFileSync(path, "utf8");
    const env = { ...programEnvironment(), DATABASE_URL: service.databaseUrl, DATA_DIR: dataDir };
    const { stdout } = await promisify(execFile)(process.execPath, ["--no-node-snapshot", ROTATE_COMMAND], { env });
    expect(stdout).to.match(/^The settings of \d+ apps are encrypted with a new key in /);
    expect(readFileSync(path, "utf8")).not.to.equal(old);
    expect(stdout).not.to.include(readFileSync(path, "utf8").trim());
    const app = await newApp();
    expect((await service.rest("POST", app, { as: "admin", body: { _k: 1 } })).body).to.deep.equal({ _k: 1 });
  });

  it("uses the first key of SETTINGS_KEY, and changes nothing if the current key is not among them", async () => {
    const database = await freshDatabase();
    const db = await openDatabase(database.url, 3);
    const [first, second, stranger] = [randomBytes(32), randomBytes(32), randomBytes(32)] as const;
    const keysOf = (...keys: Buffer[]) => new DataKeys({ db, ring: createKeyRing({ keys, path: "" }) });
    await keysOf(first).start();
    await db.query("INSERT INTO organization (name) VALUES ('o')");
    const [{ id }] = await db.query("INSERT INTO app (organization_id, name) VALUES (1, 'a') RETURNING id");
    const dataKey = await db.transaction((manager) => keysOf(first).findOrCreate(id, manager));
    const refused = await rotateSettingsKey({ db, keys: [stranger, second], path: "" }).catch((error: Error) => error);
    expect(refused).to.be.instanceOf(Error);
    expect((await keysOf(first).find(id))?.equals(dataKey)).to.equal(true);
    expect(await rotateSettingsKey({ db, keys: [second, first], path: "" })).to.equal(1);
    expect((await keysOf(second).find(id))?.equals(dataKey)).to.equal(true);
    await keysOf(second).start();
    await db.destroy();
    await database.drop();
  });
});
