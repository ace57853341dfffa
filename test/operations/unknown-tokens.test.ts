/** Tests requests with unknown tokens: which of them cost a query, and how many one network address can send. */
import { hash } from "node:crypto";
import { crc32 } from "node:zlib";
import { expect } from "chai";
import type { CredentialKind } from "../../src/data/credential.js";
import type { Db } from "../../src/data/database.js";
import type { DatabaseNotifications } from "../../src/engine/notifications.js";
import type { ActionError } from "../../src/errors.js";
import { UNKNOWN_TOKENS_PER_ADDRESS_AND_MINUTE } from "../../src/limits.js";
import { Credentials } from "../../src/operations/access/credentials.js";
import { generateToken, hashToken, isWellFormedToken } from "../../src/operations/access/tokens.js";
import { longTest } from "../harness/samples.js";
import { type CredentialsDatabase, createCredentialsDatabase } from "./credentials-database.js";

const KINDS: CredentialKind[] = ["editor", "admin", "api", "task", "viewer", "live"];
const BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

describe("a token", () => {
  it("is svc_<kind>_, 43 characters of base64url and the CRC32 of these in six digits of base62", () => {
    for (const kind of KINDS) {
      for (let count = 0; count < 200; count += 1) {
        const token = generateToken(kind);
        expect(token).to.match(new RegExp(`^svc_${kind}_[\\w-]{43}[0-9A-Za-z]{6}$`));
        const sum = [...token.slice(-6)].reduce((value, digit) => value * 62n + BigInt(BASE62.indexOf(digit)), 0n);
        expect(sum).to.equal(BigInt(crc32(token.slice(0, -6))));
        expect(isWellFormedToken(token)).to.equal(true);
      }
    }
  });

  it("is recognized in no other form: one changed character, another kind, more or fewer characters", () => {
    const token = generateToken("live");
    for (let at = 0; at < token.length; at += 1) {
      const other = token[at] === "A" ? "B" : "A";
      const changed = token.slice(0, at) + other + token.slice(at + 1);
      expect(isWellFormedToken(changed), changed).to.equal(false);
    }
    for (const text of [
      token.replace("live", "viewer"),
      `${token}A`,
      token.slice(0, -1),
      ` ${token}`,
      `${token}\n`,
      "",
    ]) {
      expect(isWellFormedToken(text), text).to.equal(false);
    }
  });
});

describe("an unknown token", () => {
  let database: CredentialsDatabase;
  let db: Db;
  let notifications: DatabaseNotifications;

  before(async () => {
    database = await createCredentialsDatabase();
    ({ db, notifications } = database);
  });
  after(() => database.stop());

  /**
   * Creates a `Credentials` object whose queries are counted and run one after the other. The limit of unknown tokens refills only when the
   * test advances `clock`.
   */
  function createCountedCredentials() {
    let queries = 0;
    let lastQuery: Promise<unknown> = Promise.resolve();
    const clock = { now: 0 };
    const counting = {
      query: (sql: string, values: unknown[]) => {
        queries += 1;
        const result = lastQuery.then(() => db.query(sql, values));
        lastQuery = result.catch(() => undefined);
        return result;
      },
    };
    return {
      credentials: new Credentials({
        db: counting as unknown as Db,
        notifications,
        rateClock: () => clock.now,
      }),
      queries: () => queries,
      clock,
    };
  }

  const statusOf = (work: Promise<unknown>) =>
    work.then(
      (caller) => (caller ? "known" : "unknown"),
      (error: ActionError) => error.status,
    );

  it("costs no query if its checksum is wrong or it was unknown a moment ago", async () => {
    const { credentials, queries } = createCountedCredentials();
    for (const kind of KINDS) {
      const madeUp = `svc_${kind}_${"A".repeat(43)}000000`;
      for (let time = 0; time < 20; time += 1) expect(await credentials.resolve(madeUp, "203.0.113.1")).to.equal(null);
    }
    expect(queries()).to.equal(0);
    for (const token of [generateToken("live"), `svc_live_${"A".repeat(43)}`]) {
      const before = queries();
      for (let time = 0; time < 20; time += 1) expect(await credentials.resolve(token, "203.0.113.1")).to.equal(null);
      expect(queries() - before).to.equal(1);
    }
  });

  it("is accepted as soon as a change of rights makes it valid", async () => {
    const { credentials } = createCountedCredentials();
    const token = generateToken("live");
    expect(await credentials.resolve(token)).to.equal(null);
    await db.query("INSERT INTO credential (kind, hash, app_id) VALUES ('live', $1, 1)", [hashToken(token)]);
    await credentials.clearCallerCaches();
    expect(await credentials.resolve(token)).to.include({ kind: "live", appId: 1 });
  });

  it("is looked up again if rights changed while the database responded", async () => {
    let queries = 0;
    const changingDatabase = {
      async query(sql: string, values: unknown[]) {
        const found = await db.query(sql, values);
        // Counts only the lookup of the token. All other statements write or notify.
        if (/UPDATE|pg_notify/.test(sql)) return found;
        queries += 1;
        if (queries === 1) await credentials.clearCallerCaches();
        return found;
      },
    };
    // Notifications of the database could arrive at any moment, so this test uses none.
    const silent = {
      listen: () => undefined,
      onGap: () => undefined,
      isHealthy: () => true,
    } as unknown as DatabaseNotifications;
    const credentials = new Credentials({ db: changingDatabase as unknown as Db, notifications: silent });
    const { token } = await createCountedCredentials().credentials.issue({ kind: "live", appId: 1 });
    const queryCounts = [];
    for (let time = 0; time < 3; time += 1) {
      await credentials.resolve(token);
      queryCounts.push(queries);
    }
    expect(queryCounts).to.deep.equal([1, 2, 2]);
  });

  it("without a checksum is looked up: a token of an earlier release still works", async () => {
    const { credentials } = createCountedCredentials();
    const token = `svc_api_${hash("sha256", "an earlier release", "base64url")}`;
    await db.query("INSERT INTO credential (kind, hash, app_id) VALUES ('api', $1, 1)", [hashToken(token)]);
    expect(await credentials.resolve(token, "203.0.113.1")).to.include({ kind: "api", appId: 1 });
  });

  it("counts for its address: too many are rejected without a query; other addresses and known tokens are not affected", async () => {
    const { credentials, queries, clock } = createCountedCredentials();
    const floodingAddress = "203.0.113.2";
    const flood = () => statusOf(credentials.resolve(generateToken("live"), floodingAddress));
    const { token: known } = await credentials.issue({ kind: "live", appId: 1 });
    // A token counts after its lookup, so the first token above the limit is still looked up.
    for (let sent = 0; sent < UNKNOWN_TOKENS_PER_ADDRESS_AND_MINUTE + 1; sent += 1)
      expect(await flood()).to.equal("unknown");
    const before = queries();
    const refusal = await credentials
      .resolve(generateToken("live"), floodingAddress)
      .catch((error: ActionError) => error);
    expect(refusal).to.have.property("status", "RATE_LIMIT_EXCEEDED");
    expect((refusal as ActionError).details).to.have.keys("retryAfter", "nextValidRequestDate");
    expect(queries()).to.equal(before);
    expect(await statusOf(credentials.resolve(generateToken("live"), "203.0.113.3"))).to.equal("unknown");
    expect(await statusOf(credentials.resolve(known, floodingAddress))).to.equal("known");
    clock.now += (refusal as ActionError).details.retryAfter! * 1_000;
    expect(await flood()).to.equal("unknown");
  });

  it("counts separately from known tokens, of which an address may send any number", async () => {
    const { credentials } = createCountedCredentials();
    const tokens = Array.from({ length: UNKNOWN_TOKENS_PER_ADDRESS_AND_MINUTE + 50 }, () => generateToken("live"));
    await db.query("INSERT INTO credential (kind, hash, app_id) SELECT 'live', unnest($1::bytea[]), 1", [
      tokens.map(hashToken),
    ]);
    for (const token of tokens) {
      expect(await statusOf(credentials.resolve(token, "203.0.113.4"))).to.equal("known");
    }
  });

  longTest(
    "does not count before the database has responded: known tokens are accepted during any number of lookups",
    async () => {
      const { credentials } = createCountedCredentials();
      const elsewhere = new Credentials({ db, notifications });
      const tokens: string[] = [];
      for (let made = 0; made < UNKNOWN_TOKENS_PER_ADDRESS_AND_MINUTE + 50; made += 1) {
        tokens.push((await elsewhere.issue({ kind: "live", appId: 1 })).token);
      }
      const statuses = await Promise.all(tokens.map((token) => statusOf(credentials.resolve(token, "203.0.113.5"))));
      expect(new Set(statuses)).to.deep.equal(new Set(["known"]));
    },
  );

  it("does not count when the query fails", async () => {
    let isAway = true;
    const failing = {
      query: (sql: string, values: unknown[]) => {
        if (isAway) throw new Error("the database is away");
        return db.query(sql, values);
      },
    };
    const credentials = new Credentials({ db: failing as unknown as Db, notifications });
    const { token } = await new Credentials({ db, notifications }).issue({ kind: "live", appId: 1 });
    for (let sent = 0; sent < UNKNOWN_TOKENS_PER_ADDRESS_AND_MINUTE * 2; sent += 1) {
      const failure = await credentials.resolve(token, "203.0.113.6").catch((error: Error) => error);
      expect((failure as Error).message).to.equal("the database is away");
    }
    isAway = false;
    expect(await statusOf(credentials.resolve(token, "203.0.113.6"))).to.equal("known");
  });

  it("counts if lookups of many unknown ones were in progress together", async () => {
    const { credentials, queries } = createCountedCredentials();
    const flood = () => statusOf(credentials.resolve(generateToken("live"), "203.0.113.7"));
    const statuses = await Promise.all(Array.from({ length: UNKNOWN_TOKENS_PER_ADDRESS_AND_MINUTE + 20 }, flood));
    expect(new Set(statuses)).to.deep.equal(new Set(["unknown"]));
    const before = queries();
    expect(await flood()).to.equal("RATE_LIMIT_EXCEEDED");
    expect(queries()).to.equal(before);
  });
});
