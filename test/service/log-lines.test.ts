/** Tests the log lines on exported spans, clocks and the disk of DATA_DIR. lifecycle.test.ts tests the lines of a process. */
import { tmpdir } from "node:os";
import { expect } from "chai";
import { pino } from "pino";
import { readConfig } from "../../src/config.js";
import type { Db } from "../../src/data/database.js";
import { createDiskSpaceMonitor } from "../../src/engine/disk-space.js";
import { createSpanExportLog } from "../../src/operations/watch/tracing.js";
import { createDatabaseClock } from "../../src/service/database-clock.js";
import { createDataDirDiskSpaceMonitor, getFreeDiskBytes } from "../../src/service/disk-space.js";

const MB = 2 ** 20;

describe("the log of exported spans", () => {
  it("has one line a minute while batches fail, with the number of lost spans, and one when they succeed again", () => {
    const lines: Record<string, unknown>[] = [];
    let time = 0;
    const log = pino({}, { write: (line) => void lines.push(JSON.parse(line)) });
    const report = createSpanExportLog("http://collector:4318", log, () => time);
    report({ code: 0 }, 3);
    for (let at = 0; at < 130; at += 1) {
      report({ code: 1, error: new Error("connect ECONNREFUSED") }, 2);
      time += 1_000;
    }
    report({ code: 0 }, 3);
    report({ code: 0 }, 3);
    expect(lines.map(({ msg, lostSpans }) => [msg, lostSpans])).to.deep.equal([
      ["the trace collector does not accept spans", 2],
      ["the trace collector does not accept spans", 122],
      ["the trace collector does not accept spans", 242],
      ["the trace collector accepts spans again", 260],
    ]);
    expect(lines[0]).to.include({ reason: "connect ECONNREFUSED", collector: "http://collector:4318" });
  });
});

describe("the log of the database's clock", () => {
  it("has one line when the clocks differ by more than two seconds, and one when they agree again", async () => {
    const lines: Record<string, unknown>[] = [];
    const log = pino({}, { write: (line) => void lines.push(JSON.parse(line)) });
    const { now: realNow } = Date;
    const time = realNow();
    let aheadMs = 0;
    const db = { query: async () => [{ ms: time + aheadMs }] } as unknown as Db;
    const clock = createDatabaseClock({ db, log });
    Date.now = () => time;
    try {
      for (aheadMs of [1_900, -1_900, 2_100, 2_100, 1_900, -2_100]) await clock.measureSkew();
    } finally {
      Date.now = realNow;
    }
    const differ = "this machine's clock differs from the database's; schedules follow the database's";
    expect(lines.map(({ msg, databaseAheadSeconds }) => [msg, databaseAheadSeconds])).to.deep.equal([
      [differ, 2.1],
      ["this machine's clock and the database's clock agree again", undefined],
      [differ, -2.1],
    ]);
  });
});

describe("the log of the free space of DATA_DIR", () => {
  const lines: Record<string, unknown>[] = [];
  const log = pino({}, { write: (line) => void lines.push(JSON.parse(line)) });
  beforeEach(() => void lines.splice(0));
  const spaceLines = () => lines.map(({ level, msg, room, freeMb }) => [level, msg, room, freeMb]);
  const changed = [pino.levels.values["warn"], "the level of the free space of DATA_DIR has changed"];

  it("has one line for each change of the level, with the free megabytes", async () => {
    let freeMb = 0;
    const space = createDiskSpaceMonitor({
      diskName: "DATA_DIR",
      readFreeBytes: async () => freeMb * MB,
      minimumBytes: 200 * MB,
      intervalMs: 1_000,
      log,
    });
    space.stop();
    for (freeMb of [200, 199, 100, 99, 1, 0, 200]) await space.start();
    expect(spaceLines()).to.deep.equal([
      [...changed, "low", 199],
      [...changed, "spent", 99],
      [...changed, "enough", 200],
    ]);
  });

  it("has a line at the start if the disk has less free space than DISK_FREE_MIN_MB", async () => {
    const freeMb = Math.floor((await getFreeDiskBytes(tmpdir())) / MB);
    for (const [minimumMb, room] of [
      [Math.floor(freeMb / 2), "enough"],
      [freeMb * 4, "spent"],
    ] as const) {
      lines.splice(0);
      const config = readConfig({
        DATABASE_URL: "postgres://svc@127.0.0.1:1/svc",
        DATA_DIR: tmpdir(),
        DISK_FREE_MIN_MB: String(minimumMb),
      });
      const watch = createDataDirDiskSpaceMonitor(config, log);
      await watch.start();
      watch.stop();
      expect(watch.level()).to.equal(room);
      const expected = room === "enough" ? [] : [[...changed, room]];
      expect(spaceLines().map((line) => line.slice(0, 3))).to.deep.equal(expected);
    }
  });
});
