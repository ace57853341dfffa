/** Tests API processes on one database: they must share one media store, and a process with another store cannot start. */
import { cpSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { readConfig } from "../../src/config.js";
import { type Service, startService } from "../../src/service.js";
import { longTest } from "../harness/samples.js";
import { type OwnService, startTestService } from "../harness/service.js";
import { mediaOf } from "./support.js";

const SETTINGS_KEY = Buffer.alloc(32, 5).toString("base64");

describe("media: a second process with another store", () => {
  let service: OwnService;
  const folders: string[] = [];
  const second: Service[] = [];
  const folder = () => {
    folders.push(mkdtempSync(join(tmpdir(), "svc-second-")));
    return folders.at(-1)!;
  };
  const startSecond = async (dataDir: string, more: Record<string, string> = {}) => {
    const environment = { PORT: "0", ROLES: "api", LOG_LEVEL: "silent", NPM_PACKAGES: "off", SETTINGS_KEY, ...more };
    const started = await startService(
      readConfig({ DATABASE_URL: service.databaseUrl, DATA_DIR: dataDir, ...environment }),
    );
    second.push(started);
    return started;
  };
  const refusalOf = (starting: Promise<unknown>): Promise<Error> =>
    starting.then(
      () => {
        throw new Error("the second process started");
      },
      (error: Error) => error,
    );

  beforeEach(async () => {
    service = await startTestService({ ROLES: "api", SETTINGS_KEY });
  });
  afterEach(async () => {
    for (const started of second.splice(0)) await started.stop();
    await service.stop();
    for (const path of folders.splice(0)) rmSync(path, { recursive: true, force: true });
  });

  it("is rejected while the first one lives, with both solutions", async () => {
    const { name, message } = await refusalOf(startSecond(folder()));
    expect(name).to.equal("StartError");
    expect(message).to.contain("is not the media store").and.to.contain("a shared volume").and.to.contain("MEDIA_URL");
  });

  longTest("is rejected after the first one has ended, as long as its files are in the database", async () => {
    await mediaOf(service).upload("a-file", "contents");
    await service.stopService();
    await service.db.query("DELETE FROM instance");
    expect((await refusalOf(startSecond(folder()))).message).to.contain("contains the files of this database");
    const moved = folder();
    cpSync(join(service.dataDir, "media"), join(moved, "media"), { recursive: true });
    await startSecond(moved);
  });

  it("starts with a shared volume, and serves files that were uploaded at the first one", async () => {
    const file = await mediaOf(service).upload("a-file", "contents");
    const dataDir = folder();
    symlinkSync(join(service.dataDir, "media"), join(dataDir, "media"));
    const { url } = await startSecond(dataDir);
    const answer = await fetch(`${url}/v1/apps/${service.appId}/media/files/${file.id}/contents`, {
      headers: { "auth-token": service.tokens.editor },
    });
    expect([answer.status, await answer.text()]).to.deep.equal([200, "contents"]);
  });

  longTest("starts if no file is stored and the first one has ended", async () => {
    await service.stopService();
    await startSecond(folder());
  });

  longTest("starts as a scheduler, which then does not touch files of the other store", async () => {
    const file = await mediaOf(service).upload("a-file", "contents");
    await startSecond(folder(), { ROLES: "scheduler" });
    const [row] = await service.db.query("SELECT count(*)::int AS lost FROM media_blob WHERE lost_at IS NOT NULL");
    expect(row.lost).to.equal(0);
    expect((await mediaOf(service).contents(file.id)).status).to.equal(200);
  });
});
