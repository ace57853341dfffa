/** Tests concurrent reads of settings: they share one SQL statement. It starts after the last of these reads, so none returns old data. */
import { randomBytes } from "node:crypto";
import { expect } from "chai";
import type pg from "pg";
import { createKeyRing } from "../../src/engine/key-ring.js";
import { DataKeys } from "../../src/operations/settings/data-keys.js";
import { Settings } from "../../src/operations/settings/settings.js";
import { runsAll } from "../harness/samples.js";
import type { TestService } from "../harness/service.js";
import { useSharedService } from "../harness/shared-service.js";

const READERS = 20;
const WRITE_COUNT = runsAll() ? 25 : 3;

describe("concurrent reads of settings", () => {
  let service: TestService;
  let path: string;
  before(async () => {
    service = await useSharedService("api");
    path = `/v1/apps/${service.appId}/settings`;
  });
  after(() => service.stop());

  it("are one statement for all callers of one turn", async () => {
    const { db, appId } = service;
    const set = await service.rest("POST", path, { body: { shown: { deep: [1] } } });
    const ring = createKeyRing({ keys: [randomBytes(32)], path: "" });
    const settings = new Settings({ db, dataKeys: new DataKeys({ db, ring }) } as ConstructorParameters<
      typeof Settings
    >[0]);
    const { statementPool } = db as unknown as { statementPool: pg.Pool };
    let acquisitions = 0;
    statementPool.on("acquire", () => (acquisitions += 1));
    const answers = await Promise.all(Array.from({ length: READERS }, () => settings.readResponseSettings(appId)));
    expect(acquisitions).to.equal(1);
    for (const answer of answers) expect(answer).to.deep.equal(set.body);
    expect(answers[0]!["shown"], "each has its own").not.to.equal(answers[1]!["shown"]);
  });

  it("see a write that was acknowledged before them, with any number of concurrent reads", async () => {
    let going = true;
    const reading = async () => {
      while (going) expect((await service.rest("GET", path)).http).to.equal(200);
    };
    const readers = Array.from({ length: READERS }, reading);
    for (let turn = 0; turn < WRITE_COUNT; turn += 1) {
      await service.rest("POST", path, { body: { turn, _turn: turn } });
      expect((await service.rest("GET", path)).body).to.deep.include({ turn, _turn: turn });
    }
    going = false;
    await Promise.all(readers);
  });
});
