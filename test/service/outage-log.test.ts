/** The log of a process whose database is away. */
import { expect } from "chai";
import { createOutageLog } from "../../src/service/outage-log.js";

const AWAY = new Error("connect ECONNREFUSED");

describe("the log while the database is away", () => {
  let time = 0;
  const lines: Record<string, unknown>[] = [];
  beforeEach(() => {
    time = 1_000;
    lines.length = 0;
  });
  const create = (level = "info") =>
    createOutageLog({
      level,
      isAway: (error) => error === AWAY,
      destination: { write: (line) => void lines.push(JSON.parse(line)) },
      now: () => time,
    });
  const messages = () => lines.map(({ msg }) => msg);

  it("has one line at the start, one a minute and one at the end, with counts", () => {
    const { log, reached } = create();
    for (let second = 0; second < 150; second += 1) {
      for (let line = 0; line < 15; line += 1) log.warn({ err: AWAY }, "a heartbeat failed");
      reached();
      time += 1_000;
    }
    time += 1_000;
    reached();
    reached();
    expect(messages()).to.deep.equal([
      "the database is away: failures are counted until it is back",
      "the database is still away",
      "the database is still away",
      "the database is back",
    ]);
    expect(lines[0]).to.include({ first: "a heartbeat failed" });
    expect(lines[0]!["err"]).to.include({ message: "connect ECONNREFUSED" });
    expect(lines[1]).to.include({ awayMs: 60_000, failures: 60 * 15 + 1 });
    expect(lines[3]).to.include({ awayMs: 149_000, failures: 150 * 15 });
  });

  it("has every other line, and starts over with the next outage", () => {
    const { log, reached } = create();
    reached();
    log.error({ err: AWAY }, "a request failed");
    log.error({ err: new Error("another") }, "a request failed");
    log.warn("plain");
    time += 5_000;
    reached();
    log.error({ err: AWAY }, "a request failed");
    expect(messages()).to.deep.equal([
      "the database is away: failures are counted until it is back",
      "a request failed",
      "plain",
      "the database is back",
      "the database is away: failures are counted until it is back",
    ]);
  });

  it("names an outage where only errors are written", () => {
    const { log } = create("error");
    log.warn({ err: AWAY }, "not written");
    expect(messages()).to.deep.equal([]);
    log.error({ err: AWAY }, "written");
    expect(messages()).to.have.length(1);
  });
});
