/**
 * Tests that the deletion of old data treats each app separately, and that the batches become smaller after a statement that takes too
 * long.
 */
import { expect } from "chai";
import type { Db } from "../../src/data/database.js";
import {
  ACTION_VERSIONS_PER_APP_MAX_BYTES,
  IDEMPOTENT_RESPONSES_PER_APP_MAX_BYTES,
  SENT_MESSAGES_PER_APP_MAX_BYTES,
} from "../../src/limits.js";
import { createDataRetention } from "../../src/operations/upkeep/retention.js";
import { createFailureSkipper } from "../../src/operations/upkeep/skipped-failures.js";
import { POOLER_CONNECTION_OPTIONS, TIME_LIMITED_POOL_OPTIONS } from "../../src/postgres.js";
import { type ConnectedDatabase, connectedDatabase, emptyTables } from "../harness/connected-database.js";
import { countRowsReadBy } from "../harness/plans.js";
import { insertPublishedActions } from "../harness/published-actions.js";

const LOW_LIMIT_BYTES = 2_500;
const BYTE_LIMITS: readonly unknown[] = [
  IDEMPOTENT_RESPONSES_PER_APP_MAX_BYTES,
  SENT_MESSAGES_PER_APP_MAX_BYTES,
  ACTION_VERSIONS_PER_APP_MAX_BYTES,
];
/** JSON text of about 1,000 bytes that PostgreSQL stores without compression. */
const TEXT = `to_json((SELECT string_agg(md5(part::text), '') FROM generate_series(1, 31) AS part))`;
const TIMEOUT = "RAISE EXCEPTION 'canceling statement due to statement timeout' USING ERRCODE = '57014'";

describe("the retention of an app's data", () => {
  let database: ConnectedDatabase;
  let db: Db;
  let statements: { sql: string; values: unknown[] }[];

  before(async () => {
    database = await connectedDatabase(2);
    ({ db } = database);
    await db.query(`
      INSERT INTO organization (name) VALUES ('o');
      INSERT INTO app (organization_id, name) VALUES (1, 'a'), (1, 'b');
      INSERT INTO credential (kind, hash, app_id) VALUES ('api', 'x', 1)`);
  });
  beforeEach(() => {
    statements = [];
  });
  afterEach(() => emptyTables(db, ["message", "idempotency", "action_version"]));
  after(() => database.stop());

  /** Deletes old data, with LOW_LIMIT_BYTES in place of each limit in BYTE_LIMITS. Returns the number of warnings. */
  async function clean(): Promise<number> {
    let warnings = 0;
    const watched = new Proxy(db, {
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name, target);
        if (name !== "query") return value;
        return (sql: string, values: unknown[] = []) => {
          const lowered = values.map((value) => (BYTE_LIMITS.includes(value) ? LOW_LIMIT_BYTES : value));
          statements.push({ sql, values: lowered });
          return target.query(sql, lowered);
        };
      },
    });
    await createDataRetention({ db: watched, days: 30, log: { warn: () => (warnings += 1) } }).clean();
    return warnings;
  }
  const addMessages = (app: number, count: number, days = 0) =>
    db.query(
      `INSERT INTO message (app_id, kind, status, content, recipients, reference, created_at)
       SELECT $1, 'email', 'sent', ${TEXT}, '[]', gen_random_uuid(), now() - $3 * interval '1 day' FROM generate_series(1, $2::int) AS n`,
      [app, count, days],
    );
  const countsByApp = (source: string): Promise<{ app: number; count: number }[]> =>
    db.query(`SELECT app_id::int AS app, count(*)::int AS count FROM ${source} GROUP BY 1 ORDER BY 1`);

  it("continues with other apps if the rows of one app cannot be deleted", async () => {
    await addMessages(1, 5);
    await addMessages(2, 5);
    await db.query(`
      CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ${TIMEOUT}; END $$;
      CREATE TRIGGER fail BEFORE DELETE ON message FOR EACH ROW WHEN (OLD.app_id = 1) EXECUTE FUNCTION fail()`);
    try {
      expect(await clean()).to.equal(1);
      expect(await countsByApp("message")).to.deep.equal([
        { app: 1, count: 5 },
        { app: 2, count: 2 },
      ]);
    } finally {
      await db.query("DROP FUNCTION fail CASCADE");
    }
  });

  it("deletes fewer rows at a time after a statement that took too long", async () => {
    await addMessages(1, 1_200, 31);
    await db.query(`
      CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN IF (SELECT count(*) FROM old) > 300 THEN ${TIMEOUT}; END IF; RETURN NULL; END $$;
      CREATE TRIGGER fail AFTER DELETE ON message REFERENCING OLD TABLE AS old FOR EACH STATEMENT EXECUTE FUNCTION fail()`);
    try {
      expect(await clean()).to.equal(0);
      expect(await countsByApp("message")).to.deep.equal([]);
    } finally {
      await db.query("DROP FUNCTION fail CASCADE");
    }
  });

  it("keeps the newest messages, versions and responses of each app up to their size, and reads no other app's for it", async () => {
    for (const [app, count] of [
      [1, 5],
      [2, 2],
    ] as const) {
      const [action] = await insertPublishedActions(db, app, [{ name: "task", triggers: [] }]);
      await addMessages(app, count);
      await db.query(
        `INSERT INTO action_version (action_id, data, summary) SELECT $1, ${TEXT}, '{}' FROM generate_series(1, $2::int) AS n`,
        [action!.masterId, count],
      );
      await db.query(
        `INSERT INTO idempotency (credential_id, app_id, key, request, answer, created_at)
         SELECT 1, $1, n::text, '', ${TEXT}, now() - (10 - n) * interval '1 second' FROM generate_series(1, $2::int) AS n`,
        [app, count],
      );
    }
    expect(await clean()).to.equal(0);
    const versions = "action_version AS version JOIN action ON action.id = version.action_id";
    for (const source of ["message", versions, "idempotency"])
      expect(await countsByApp(source), source).to.deep.equal([
        { app: 1, count: 2 },
        { app: 2, count: 2 },
      ]);
    const keys = await db.query("SELECT key FROM idempotency WHERE app_id = 1 ORDER BY 1");
    expect(keys).to.deep.equal([{ key: "4" }, { key: "5" }]);
    const sorting = statements.filter(({ sql }) => sql.includes("OVER ("));
    expect(sorting.map(({ sql, values }) => [/app_id = \$1/.test(sql), values])).to.deep.equal(
      Array(3).fill([true, [1, LOW_LIMIT_BYTES]]),
    );
  });

  it("finds deleted apps without reading the audit entries of the others", async () => {
    await db.query(`
      INSERT INTO audit_entry (app_id, type, data) SELECT 1 + n % 2, 't', '{}' FROM generate_series(1, 4000) AS n;
      INSERT INTO audit_entry (app_id, type, data, created_at) VALUES (99, 't', '{}', now() - interval '31 days');
      ANALYZE audit_entry`);
    expect(await clean()).to.equal(0);
    expect(await countsByApp("audit_entry")).to.deep.equal([
      { app: 1, count: 2_000 },
      { app: 2, count: 2_000 },
    ]);
    const finding = statements.filter(({ sql }) => sql.includes("audit_entry") && sql.includes("FROM app "));
    expect(finding).to.have.length(1);
    expect(await countRowsReadBy(db, finding[0]!.sql, finding[0]!.values)).to.be.below(100);
  });

  it("continues after a statement through a pooler that takes too long, and lets PostgreSQL cancel it first", async () => {
    const skipFailure = createFailureSkipper({ warn: () => {} });
    expect(await skipFailure(Promise.reject(new Error("Query read timeout")))).to.equal(undefined);
    expect(POOLER_CONNECTION_OPTIONS.query_timeout).to.be.above(TIME_LIMITED_POOL_OPTIONS.statement_timeout);
  });
});
