/** Tests the lease of a process on its runs: when it is renewed, and when other processes can declare the process dead. */
import { mock } from "node:test";
import { expect } from "chai";
import { type Logger, pino } from "pino";
import { countConnections, type Db, openDatabase } from "../../src/data/database.js";
import { DatabaseContactMonitor, Lease } from "../../src/operations/upkeep/lease.js";
import { startCuttingProxy } from "../harness/cutting-proxy.js";
import { freshDatabase } from "../harness/postgres.js";

const RENEWAL_LIMIT_MS = 12_000;

const settled = async () => {
  for (let turn = 0; turn < 5; turn += 1) await new Promise(setImmediate);
};

describe("contact with the database", () => {
  let now: number;
  const createContact = (...times: number[]) => {
    now = 0;
    const contact = new DatabaseContactMonitor(RENEWAL_LIMIT_MS, () => now);
    for (const at of times) {
      now = at;
      contact.onReached();
    }
    return contact;
  };

  it("is steady after a whole lease with responses, and not before", () => {
    const contact = createContact(0, 3_000, 6_000, 9_000);
    now = 11_999;
    expect(contact.isSteady()).to.equal(false);
    now = 12_000;
    expect(contact.isSteady()).to.equal(true);
  });

  it("is not steady before the first response", () => {
    expect(createContact().isSteady()).to.equal(false);
  });

  it("starts again after the database was not reachable", () => {
    const contact = createContact(0, 3_000, 6_000, 9_000, 12_000);
    contact.onLost();
    expect(contact.isSteady()).to.equal(false);
    now = 13_000;
    contact.onReached();
    expect(contact.isSteady()).to.equal(false);
    for (now = 16_000; now < 25_000; now += 3_000) contact.onReached();
    expect(contact.isSteady()).to.equal(true);
  });

  it("starts again after a pause without a failed attempt", () => {
    const contact = createContact(0, 3_000, 6_000, 9_000, 12_000);
    now = 40_000;
    expect(contact.isSteady()).to.equal(false);
    contact.onReached();
    expect(contact.isSteady()).to.equal(false);
  });

  it("has no gap at six seconds between two responses, and has one beyond", () => {
    expect(createContact(0, 6_000, 12_000).isSteady()).to.equal(true);
    expect(createContact(0, 6_001, 12_000).isSteady()).to.equal(false);
    const contact = createContact(0, 6_000, 12_000);
    now = 18_000;
    expect(contact.isSteady()).to.equal(true);
    now = 18_001;
    expect(contact.isSteady()).to.equal(false);
  });
});

describe("the connection that renews the lease", () => {
  it("is replaced by another one within the lease if it goes silent", async () => {
    const database = await freshDatabase();
    const proxy = await startCuttingProxy(database.url);
    const db = await openDatabase(proxy.url, 1);
    const warnings: unknown[] = [];
    let onRenewal = () => {};
    const nextRenewal = () => new Promise<void>((resolve) => (onRenewal = resolve));
    const lease = new Lease({
      db,
      roles: new Set(["runner"]),
      isOnlyProcess: false,
      onRenewal: async () => onRenewal(),
      onDatabaseReached: () => undefined,
      log: { warn: ({ err }: { err: Error }) => warnings.push(err.message) } as unknown as Logger,
    });
    mock.timers.enable({ apis: ["setTimeout"] });
    try {
      const renewed = nextRenewal();
      await lease.start();
      await renewed;
      await settled();
      const withheld = proxy.withhold("renew-lease");
      mock.timers.tick(3_000);
      const cut = await withheld;
      mock.timers.tick(3_000);
      await settled();
      // Without a warning, the client waits without a time limit. Cutting the connection then ends the wait, so that the test can fail.
      if (warnings.length === 0) cut();
      expect(warnings).to.deep.equal(["Query read timeout"]);
      const renewedAgain = nextRenewal();
      mock.timers.tick(500);
      await renewedAgain;
      expect(countConnections(db)).to.deep.equal({ busy: 0, idle: 2, waiting: 0 });
    } finally {
      await lease.stop();
      mock.timers.reset();
      await db.destroy();
      await proxy.stop();
      await database.drop();
    }
  });
});

describe("the lease of a process", () => {
  const { now: realNow } = performance;
  let now: number;
  let lease: Lease;
  let statements: { text: string; values: unknown[] }[];
  let events: unknown[];
  let fails: boolean;
  /** Promise for which statements wait; null if each statement ends at once. */
  let blocked: Promise<void> | null;

  const pass = async (ms: number) => {
    now += ms;
    mock.timers.tick(ms);
    await settled();
  };
  const renewals = () => statements.filter(({ text }) => /INSERT INTO instance/.test(text));

  function create(alone = false): void {
    const query = async (text: string, values: unknown[]) => {
      await blocked;
      if (fails) throw new Error("away");
      statements.push({ text, values });
      return [];
    };
    lease = new Lease({
      db: { query } as unknown as Db,
      roles: new Set(["api", "runner"]),
      isOnlyProcess: alone,
      onRenewal: async (mayDeclareDead) => {
        events.push(mayDeclareDead);
        if (events.length === 2) throw new Error("the work failed");
      },
      onDatabaseReached: () => {},
      log: pino({ level: "silent" }),
    });
  }

  beforeEach(() => {
    // The clock does not start at zero, as in a process that has run for a while.
    now = 20_000;
    statements = [];
    events = [];
    fails = false;
    blocked = null;
    performance.now = () => now;
    mock.timers.enable({ apis: ["setTimeout"] });
  });
  afterEach(async () => {
    fails = false;
    blocked = null;
    await lease.stop();
    mock.timers.reset();
    performance.now = realNow;
  });

  it("is renewed every three seconds, and after a failure in half a second", async () => {
    create();
    await lease.start();
    await settled();
    const renewalsBefore = renewals().length;
    expect(renewals()[0]!.values).to.deep.equal([lease.holder, ["api", "runner"], null]);
    await pass(2_999);
    expect(renewals()).to.have.length(renewalsBefore);
    await pass(1);
    expect(renewals()).to.have.length(renewalsBefore + 1);
    fails = true;
    await pass(3_000);
    fails = false;
    await pass(499);
    expect(renewals()).to.have.length(renewalsBefore + 1);
    await pass(1);
    expect(renewals()).to.have.length(renewalsBefore + 2);
    await pass(3_000);
    expect(renewals()).to.have.length(renewalsBefore + 3);
  });

  it("lets others be declared dead once this process has reached the database for a whole lease without a gap", async () => {
    create();
    await lease.start();
    await settled();
    for (let time = 0; time < 4; time += 1) await pass(3_000);
    expect(events).to.deep.equal([false, false, false, false, true]);
    fails = true;
    await pass(3_000);
    fails = false;
    await pass(500);
    expect(events.at(-1)).to.equal(false);
    expect(events).to.have.length(6);
  });

  it("removes the rows of all other processes when one starts that may declare them dead", async () => {
    create(true);
    await lease.start();
    await settled();
    expect(statements[0]!.text).to.match(/^DELETE FROM instance WHERE id <> /);
    expect(events).to.deep.equal([true]);
    create();
    await lease.start();
    await settled();
    expect(statements.filter(({ text }) => text.startsWith("DELETE"))).to.have.length(1);
  });

  it("is not renewed after the process has stopped, also by a renewal in progress, and its row is removed", async () => {
    create();
    await lease.start();
    await settled();
    const renewalsBefore = renewals().length;
    const { promise, resolve } = Promise.withResolvers<void>();
    blocked = promise;
    await pass(3_000);
    const stopped = lease.stop();
    resolve();
    await stopped;
    blocked = null;
    expect(renewals()).to.have.length(renewalsBefore + 1);
    expect(statements.at(-1)).to.deep.equal({ text: "DELETE FROM instance WHERE id = $1", values: [lease.holder] });
    await pass(60_000);
    expect(renewals()).to.have.length(renewalsBefore + 1);
  });

  it("stores the first proxy that is ignored", async () => {
    create();
    await lease.start();
    await settled();
    lease.reportIgnoredProxy("10.0.0.1");
    lease.reportIgnoredProxy("10.0.0.2");
    await pass(3_000);
    expect(renewals().at(-1)!.values[2]).to.equal("10.0.0.1");
  });
});
