import { expect } from "chai";
import { DatabaseError } from "pg";
import { clearDiskFullState } from "../../src/postgres.js";
import { createDatabaseOutageLog, describeDatabaseProblem } from "../../src/service/outage-log.js";
import { connectedDatabase } from "../harness/connected-database.js";

const CONNECTION_REFUSED = new Error("connect ECONNREFUSED");
const REFUSED_BY_CODE = Object.assign(new Error("connect"), { code: "ECONNREFUSED" });

describe("the log while the database is not available", () => {
  let time = 0;
  const lines: Record<string, unknown>[] = [];
  beforeEach(() => {
    time = 1_000;
    lines.length = 0;
  });
  const create = (level = "info") =>
    createDatabaseOutageLog({
      level,
      findProblem: (error) => (error === CONNECTION_REFUSED ? "the database is away" : null),
      destination: { write: (line) => void lines.push(JSON.parse(line)) },
      now: () => time,
    });
  const messages = () => lines.map(({ msg }) => msg);

  it("has one line at the start, one a minute and one at the end, with counts", () => {
    const { log, recordSuccess } = create();
    for (let second = 0; second < 150; second += 1) {
      for (let line = 0; line < 15; line += 1) log.warn({ err: CONNECTION_REFUSED }, "a heartbeat failed");
      recordSuccess();
      time += 1_000;
    }
    time += 1_000;
    recordSuccess();
    recordSuccess();
    expect(messages()).to.deep.equal([
      "the database is away: failures are counted until it is back",
      "the database is away, still",
      "the database is away, still",
      "the database is back",
    ]);
    expect(lines[0]).to.include({ first: "a heartbeat failed" });
    expect(lines[0]!["err"]).to.include({ message: "connect ECONNREFUSED" });
    expect(lines[1]).to.include({ awayMs: 60_000, failures: 60 * 15 + 1 });
    expect(lines[3]).to.include({ awayMs: 149_000, failures: 150 * 15 });
  });

  it("has every other line, and counts each outage separately", () => {
    const { log, recordSuccess } = create();
    recordSuccess();
    log.error({ err: CONNECTION_REFUSED }, "a request failed");
    log.error({ err: new Error("another") }, "a request failed");
    log.warn("plain");
    time += 5_000;
    recordSuccess();
    log.error({ err: CONNECTION_REFUSED }, "a request failed");
    expect(messages()).to.deep.equal([
      "the database is away: failures are counted until it is back",
      "a request failed",
      "plain",
      "the database is back",
      "the database is away: failures are counted until it is back",
    ]);
  });

  it("reports an outage also at the level error", () => {
    const { log } = create("error");
    log.warn({ err: CONNECTION_REFUSED }, "not written");
    expect(messages()).to.deep.equal([]);
    log.error({ err: CONNECTION_REFUSED }, "written");
    expect(messages()).to.have.length(1);
  });

  it("reports a full disk of PostgreSQL", async () => {
    const database = await connectedDatabase();
    try {
      const raise = "DO $$ BEGIN RAISE EXCEPTION 'No space left on device' USING ERRCODE = '53100'; END $$";
      const error = await database.db.query(raise).catch((fault: unknown) => fault);
      expect(describeDatabaseProblem(error)).to.equal("the database's disk is full");
    } finally {
      clearDiskFullState();
      await database.stop();
    }
  });

  it("distinguishes a read-only database, a lack of connections and a slow statement from an outage", () => {
    const fault = (code: string) => Object.assign(new DatabaseError("a fault", 1, "error"), { code });
    expect(describeDatabaseProblem(fault("57P01"))).to.equal("the database is away");
    expect(describeDatabaseProblem(REFUSED_BY_CODE)).to.equal("the database is away");
    expect(describeDatabaseProblem(fault("25006"))).to.equal("the database is read-only");
    expect(describeDatabaseProblem(fault("53300"))).to.equal("the database has no free connection");
    for (const code of ["57014", "23505", "42601"]) expect(describeDatabaseProblem(fault(code)), code).to.equal(null);
    expect(describeDatabaseProblem(new Error("another"))).to.equal(null);
    expect(describeDatabaseProblem(undefined)).to.equal(null);
  });
});
