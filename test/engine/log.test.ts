/** Tests which parts of an error a log line can contain. */
import { expect } from "chai";
import type { Db } from "../../src/data/database.js";
import { createLog, redirectConsoleToLog } from "../../src/engine/log.js";
import { type ConnectedDatabase, connectedDatabase } from "../harness/connected-database.js";

describe("the log", () => {
  let database: ConnectedDatabase;
  let db: Db;
  before(async () => {
    database = await connectedDatabase();
    ({ db } = database);
  });
  after(() => database.stop());

  async function lineOf(work: () => unknown): Promise<string> {
    const lines: string[] = [];
    const log = createLog("info", { destination: { write: (line) => void lines.push(line) } });
    try {
      await work();
    } catch (error) {
      log.error({ err: error }, "it failed");
    }
    return lines.join("");
  }

  it("has a failed statement's error and constraint, and none of its parameters or rows", async () => {
    const sql = "INSERT INTO setting (app_id, key, value) VALUES ($1, $2, $3)";
    const line = await lineOf(() => db.query(sql, [1, "_key", "CANARY"]));
    expect(JSON.parse(line).err).to.include({ type: "QueryFailedError", code: "23514", table: "setting" });
    expect(line).not.to.include("CANARY");
  });

  it("does not quote a text that could not be parsed, also not of a cause", async () => {
    const parse = () => JSON.parse("CANARY");
    expect(await lineOf(parse))
      .to.include("a text could not be parsed")
      .and.not.to.include("CANARY");
    const wrapped = await lineOf(() => {
      try {
        parse();
      } catch (cause) {
        throw new Error("outer", { cause });
      }
    });
    expect(wrapped).to.include("outer").and.not.to.include("CANARY");
    expect(await lineOf(() => Promise.reject("CANARY"))).not.to.include("CANARY");
  });

  it("contains what a library writes to the console, by the same rules", () => {
    const lines: string[] = [];
    const target = { ...console };
    redirectConsoleToLog(createLog("info", { destination: { write: (line) => void lines.push(line) } }), target);
    target.trace(Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET", row: "CANARY" }));
    target.warn("attempt", 2, { row: "CANARY" });
    const [first, second] = lines.map((line) => JSON.parse(line));
    expect(first).to.include({ level: 40, console: "trace" });
    expect(first.err).to.include({ type: "Error", message: "read ECONNRESET", code: "ECONNRESET" });
    expect(second).to.include({ level: 40, console: "warn", msg: "attempt" });
    expect(lines.join("")).not.to.include("CANARY");
  });
});
