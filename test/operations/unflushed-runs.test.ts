/** A run that can act on nothing does not wait for its row to be on the database's disk: what a crash takes then, nobody has heard of. */
import { randomUUID } from "node:crypto";
import { expect } from "chai";
import pino from "pino";
import type { DataSource } from "typeorm";
import { migrate, openDatabase } from "../../src/data/database.js";
import type { PageRun, RealmKind } from "../../src/engine/browser/run.js";
import { ActionError } from "../../src/errors.js";
import type { RunConsole } from "../../src/operations/runs/console.js";
import { createExecution } from "../../src/operations/runs/execution.js";
import { createLedger, type Ledger } from "../../src/operations/runs/ledger.js";
import type { HeldRun } from "../../src/operations/runs/run-facts.js";
import type { Secrecy } from "../../src/operations/runs/secrecy.js";
import { type RestartablePostgres, startRestartablePostgres } from "../harness/gateway.js";
import { publishDirectly } from "../harness/production-copies.js";

const HOLDER = randomUUID();
const ENDING = { state: "completed", type: "app.task.completed", data: { text: "{}", payloadAt: null } } as const;

describe("a row that the database's disk may not have yet", function () {
  this.timeout(120_000);
  let postgres: RestartablePostgres;
  let db: DataSource;
  let ledger: Ledger;

  before(async () => {
    postgres = await startRestartablePostgres();
    await migrate(postgres.url);
    db = await openDatabase(postgres.url, 2);
    await db.query("INSERT INTO organization (name) VALUES ('o')");
    await db.query("INSERT INTO app (organization_id, name) VALUES (1, 'a')");
    await publishDirectly(db, 1, [{ name: "sum", triggers: [{ trigger: "manual" }] }]);
    // Nothing else brings it there meanwhile.
    await db.query("ALTER SYSTEM SET wal_writer_delay = '10s'");
    await db.query("ALTER SYSTEM SET autovacuum = off");
    await db.query("SELECT pg_reload_conf()");
    await db.query("CHECKPOINT");
  });
  beforeEach(() => {
    ledger = createLedger(db);
  });
  after(async () => {
    await db.destroy();
    await postgres.stop();
  });

  async function accept(flushed: boolean): Promise<number> {
    const asked = { appId: 1, copy: "production", nameOrId: "sum", payload: "{}" } as const;
    const nobody = { personId: null, credentialId: null, idempotencyKey: null };
    return (await ledger.acceptTarget({ ...asked, ...nobody }, HOLDER, db, flushed)).id!;
  }

  /** Ends the server where it stands, and brings it back. */
  async function crash(): Promise<void> {
    await db.destroy();
    await (await postgres.lose("SIGQUIT"))();
    db = await openDatabase(postgres.url, 2);
  }

  const stateOf = async (id: number) => (await db.query("SELECT state FROM run WHERE id = $1", [id]))[0]?.state ?? null;

  it("is lost with a crash", async () => {
    const id = await accept(false);
    expect(await stateOf(id)).to.equal("running");
    await crash();
    expect(await stateOf(id)).to.equal(null);
    expect(await createLedger(db).flush(id, HOLDER)).to.equal(false);
  });

  it("is there afterwards where it was flushed, had an end or was written as ever", async () => {
    const lost = await accept(false);
    const flushed = await accept(false);
    expect(await ledger.flush(flushed, HOLDER)).to.equal(true);
    await crash();
    expect(await Promise.all([lost, flushed].map(stateOf))).to.deep.equal(["running", "running"]);
    ledger = createLedger(db);
    const ended = await accept(false);
    expect(await ledger.end(ended, HOLDER, ENDING)).to.equal(true);
    await crash();
    ledger = createLedger(db);
    const asEver = await accept(true);
    await crash();
    expect(await Promise.all([ended, asEver].map(stateOf))).to.deep.equal(["completed", "running"]);
  });

  it("is flushed by its holder alone", async () => {
    expect(await ledger.flush(await accept(true), randomUUID())).to.equal(false);
  });
});

const RUN: HeldRun = {
  ...{ id: 1, appId: 1, actionId: 1, copy: "master", trigger: "manual", payload: "{}", secretsVersion: 1 },
  ...{ personId: null, credentialId: null, replayOf: null, versionId: null, startedAt: null },
  code: { name: "a", code: "", environment: "server", dependencies: [], assets: [] },
};

/** What is asked of a ledger that has that row, or lost it, by a run in these realms, one after the other. */
function played(isThere: boolean, realms: readonly RealmKind[]) {
  const asked: string[] = [];
  const note = <T>(what: string, answer: T) => {
    asked.push(what);
    return answer;
  };
  const ledger = {
    flush: async () => note("flush", isThere),
    end: async () => note("end", isThere),
    findAny: async () => note("find", isThere ? RUN : null),
  } as unknown as Ledger;
  const exit = {
    version: 1,
    judgeResult: async () => null,
    judgeError: async () => null,
    maskPayload: async () => "{}",
  };
  const kept = {
    needed: false,
    contextSettings: () => "{}",
    maskPayload: async () => "{}",
    mask: (text: string) => text,
  };
  const secrecy = {
    begin: async () => ({ ...kept, cutOff: () => {}, outdated: async () => false, exit: () => exit }),
  } as unknown as Secrecy;
  const printer = { print: () => {}, finish: async () => {} };
  const execution = createExecution({
    ...{ db: { isInitialized: true } as DataSource, ledger, secrecy, timeoutMs: 1_000 },
    async runPage(request: PageRun) {
      for (const realm of realms) {
        await request.onRealm?.(realm);
        asked.push(realm);
      }
      return { ok: true, data: "7" };
    },
    scripts: {
      prepare: async () => ({ packages: [], hasToken: false, revoke: async () => {} }),
      shared: async () => null,
    },
    console: { printer: () => printer } as unknown as RunConsole,
    measures: { runEnded: () => {} },
    traces: { begin: async () => ({ page: (run, request) => run(request), end: () => {} }) },
    serviceRequests: null,
    log: pino({ level: "silent" }),
  });
  const perform = (isUnflushed: boolean) =>
    execution.execute({ ...RUN, isUnflushed }, HOLDER, new AbortController().signal);
  return { asked, perform };
}

describe("a run whose row the database's disk may not have yet", () => {
  it("has it there before it begins where it can act, once", async () => {
    const { asked, perform } = played(true, ["fetch", "network"]);
    expect(await perform(true)).to.deep.equal({ ok: true, data: "7" });
    expect(asked).to.deep.equal(["flush", "fetch", "network", "end"]);
  });

  it("does not wait for it in a realm of the language, and one whose row is there nowhere", async () => {
    for (const [realm, isUnflushed] of [
      ["language", true],
      ["document", false],
    ] as const) {
      const { asked, perform } = played(true, [realm]);
      expect(await perform(isUnflushed)).to.deep.equal({ ok: true, data: "7" });
      expect(asked).to.deep.equal([realm, "end"]);
    }
  });

  it("tells nobody a result, and is to be asked for again, where the row was lost meanwhile", async () => {
    const { asked, perform } = played(false, ["language"]);
    const refused = await perform(true).catch((error: unknown) => error);
    expect(refused).to.be.instanceOf(ActionError).and.to.include({ status: "OVERLOADED" });
    expect((refused as ActionError).details.retryAfter).to.be.above(0);
    expect(asked).to.deep.equal(["language", "end", "find"]);
  });

  it("begins nowhere where it could act, where the row was lost", async () => {
    const { asked, perform } = played(false, ["document"]);
    const refused = await perform(true).catch((error: unknown) => error);
    expect(refused).to.be.instanceOf(ActionError).and.to.include({ status: "OVERLOADED" });
    expect(asked).to.deep.equal(["flush", "end", "find"]);
  });
});
