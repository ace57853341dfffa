import { expect } from "chai";
import type { EntityManager } from "typeorm";
import type { Db } from "../../src/data/database.js";
import { RunSearch } from "../../src/operations/records/run-words.js";
import { type ConnectedDatabase, connectedDatabase } from "../harness/connected-database.js";
import { countReadings } from "../harness/plans.js";

describe("the search for words of runs", () => {
  let database: ConnectedDatabase;
  let db: Db;

  before(async () => {
    database = await connectedDatabase(2);
    ({ db } = database);
    await db.query(
      "INSERT INTO organization (name) VALUES ('o'); INSERT INTO app (organization_id, name) VALUES (1, 'a'), (1, 'b')",
    );
  });
  after(() => database.stop());

  async function end(
    appId: number,
    { data = {}, payload = {}, printed = "", hosts = [] as string[], minutesAgo = 0 },
  ): Promise<number> {
    const entry = JSON.stringify(data).replace('"PAYLOAD"', "null");
    const [{ id }] = await db.query(
      `WITH made AS (
         INSERT INTO run (app_id, action_id, copy, trigger, payload, state, finished_at, hosts, log_id)
         VALUES ($1, 1, 'master', 'manual', $2, 'completed', now() - $5::float8 * interval '1 minute', $4, nextval('execution_log_id_seq'))
         RETURNING id, log_id),
       printed AS (INSERT INTO console_line (run_id, seq, level, at, text) SELECT id, 0, 'log', now(), $3 FROM made),
       entry AS (INSERT INTO execution_log (id, app_id, task_id, run_id, type, data, payload_at)
         SELECT log_id, $1, 1, id, 'app.task.completed', $6, $7 FROM made)
       SELECT id FROM made`,
      [appId, JSON.stringify(payload), printed, hosts, minutesAgo, entry, entry.indexOf("null") + 1 || null],
    );
    return id;
  }
  const found = async (search: string, appId = 1, most = 10) => {
    const words = new RunSearch(db);
    await words.catchUp();
    return words.find(appId, search, { limit: most });
  };

  it("finds a run by the beginning of words in its payload, result, console and hosts", async () => {
    const data = { payload: "PAYLOAD", result: { data: { order: "ORD-4711", note: "line\nbreak Größe" } } };
    const id = await end(1, {
      data,
      payload: { email: "anna@example.com" },
      printed: "sent to Zoë_1",
      hosts: ["api.shop.test:443"],
    });
    for (const search of [
      "ord-4711",
      "4711",
      "anna@exam",
      "example.com",
      "break",
      "Größe",
      "sent zoë_1",
      "api.shop.test:443",
      "ORDER 47",
    ]) {
      expect(await found(search), search).to.deep.equal([id]);
    }
    for (const search of ["711", "nna", "4711 missing", "nbreak"])
      expect(await found(search), search).to.deep.equal([]);
  });

  it("finds no other app's runs, the newest first, and continues before a run", async () => {
    const ids: number[] = [];
    for (let at = 0; at < 5; at += 1) ids.push(await end(1, { data: { result: "needle" } }));
    await end(2, { data: { result: "needle @1" } });
    expect(await found("needle", 1, 3)).to.deep.equal(ids.slice(2).reverse());
    const words = new RunSearch(db);
    expect(await words.find(1, "needle", { limit: 3, before: ids[2]! })).to.deep.equal([ids[1], ids[0]]);
    expect(await found("1", 1)).to.not.include(await end(2, {}));
  });

  it("reads no further back than it takes to find enough, and to the first run if needed", async () => {
    const ids = [500_000_000, 3_000_000, 2_900_000, 2_000_000, 1_000_000];
    await db.query(
      `INSERT INTO run_search (run_id, words) SELECT id, array_to_tsvector(ARRAY['@1', 'farback'])
         FROM unnest($1::bigint[]) AS id`,
      [ids],
    );
    // These newer runs lack the word, so the search must read more than the newest runs.
    await db.query(
      `INSERT INTO run_search (run_id, words) SELECT id, array_to_tsvector(ARRAY['@1', 'other'])
         FROM generate_series(500000001, 500002500) AS id`,
    );
    const queriedIds: unknown[][] = [];
    const watched = Object.create(db, {
      transaction: {
        value: (work: (manager: unknown) => unknown) =>
          db.transaction((manager) => {
            const query = (sql: string, values: unknown[]) => {
              if (sql.includes("run_id + 0 >= $4")) queriedIds.push(values);
              return manager.query(sql, values);
            };
            return work({ query }) as Promise<unknown>;
          }),
      },
    }) as Db;
    const words = new RunSearch(watched);
    expect(await words.find(1, "farback", { limit: 1 })).to.deep.equal(ids.slice(0, 1));
    expect(queriedIds).to.have.length(1);
    expect(await words.find(1, "farback", { limit: 3 })).to.deep.equal(ids.slice(0, 3));
    expect(await words.find(1, "farback", { limit: 10 })).to.deep.equal(ids);
    expect(await words.find(1, "farback", { limit: 10, before: 2_900_000 })).to.deep.equal(ids.slice(3));
    expect(queriedIds.at(-1)![3], "to the first run").to.equal(0);
    await db.query("DELETE FROM run_search WHERE run_id >= 1000000");
  });

  it("reads only the runs that match, and the newest ones", async () => {
    await db.query(
      `INSERT INTO run_search (run_id, words)
         SELECT 1000 + n, array_to_tsvector(ARRAY['@1', 'common', CASE WHEN n % 2000 = 0 THEN 'rarest' ELSE 'n' || n END])
           FROM generate_series(1, 10000) AS n`,
    );
    await db.query("VACUUM ANALYZE run_search");
    const find = (word: string) =>
      countReadings(db, async (watched) => {
        expect(await new RunSearch(watched).find(1, word, { limit: 5 }), word).to.have.length(5);
      });
    const common = await find("common");
    expect(common.map(({ read }) => read <= 2_000)).to.deep.equal([true]);
    const [newest, ...others] = await find("rarest");
    expect(newest!.read).to.be.at.most(2_000);
    expect(others.map(({ text }) => text.includes("@@"))).to.include(true);
    for (const { text, read } of others) expect(read, text).to.be.below(50);
    await db.query("DELETE FROM run_search WHERE run_id BETWEEN 1000 AND 11000");
  });

  it("reads nothing of a search as syntax, and rejects one without a word", async () => {
    for (const search of ["needle' | 'x", "needle:* & !x", "needle\\", "needle \u0001", "(needle)", "needle <-> @2"]) {
      expect(await found(search), search).to.be.an("array");
    }
    for (const search of ["", " ", "'&|!", "@:*"]) {
      const refusal = await found(search).then(
        () => null,
        (error: Error) => error,
      );
      expect(refusal?.message, search).to.equal('"search" must contain letters or digits');
    }
  });

  it("stores the same words as a split of the text by JavaScript, for all ASCII and other characters", async () => {
    const expectedWords = (text: string) => {
      const lower = text.replace(/\\(u[0-9a-f]{4}|.)/g, " ").replace(/[A-Z]/g, (letter) => letter.toLowerCase());
      const words = lower.split(/[^a-z0-9\u0080-\u{10ffff}]+/u).filter((word) => word !== "");
      return [...new Set(["@7", ...words.map((word) => [...word].slice(0, 64).join(""))])].sort();
    };
    const others = [..."\u0080\u0085\u00a0ßÄİẞΣς\u2028\u3000\ufeff\uffff😀\u{10ffff}"];
    const characters = [...Array.from({ length: 127 }, (_, at) => String.fromCharCode(at + 1)), ...others];
    const texts = [
      ...characters.map((character) => `Abc${character}xY9${character}${character}z`),
      characters.join(""),
      JSON.stringify({ Key: 'line\nBreak \u0001 quoted " back\\slash', n: -1.5e10 }),
      `${"long".repeat(40)} ${"😀".repeat(80)} ${"long".repeat(50)}`,
      "",
      "-- !",
    ];
    const stored = await db.query(
      "SELECT tsvector_to_array(svc_search_words(7, text)) AS words FROM unnest($1::text[]) WITH ORDINALITY AS given (text, at) ORDER BY at",
      [texts],
    );
    for (const [at, { words }] of stored.entries())
      expect([...words].sort(), JSON.stringify(texts[at])).to.deep.equal(expectedWords(texts[at]!));
  });

  it("collects the words of earlier runs in batches", async () => {
    await db.query("TRUNCATE run_search; UPDATE run_search_mark SET newest = now(), oldest = now()");
    const old = await end(1, { data: { result: "ancient" }, minutesAgo: 90 });
    expect(await found("ancient")).to.deep.equal([]);
    await new RunSearch(db).indexEndedRuns();
    expect(await found("ancient")).to.deep.equal([old]);
  });

  /** Executes `work` while the indexing of the text "poison" fails with the SQLSTATE `code`. */
  async function withPoison(code: string, work: () => Promise<void>): Promise<void> {
    await db.query("TRUNCATE run_search; UPDATE run_search_mark SET newest = now(), oldest = now() - interval '1 day'");
    const [{ definition }] = await db.query("SELECT pg_get_functiondef('svc_search_words'::regproc) AS definition");
    await db.query("ALTER FUNCTION svc_search_words RENAME TO svc_search_words_real");
    await db.query(`
      CREATE FUNCTION svc_search_words(app_id bigint, given text) RETURNS tsvector IMMUTABLE LANGUAGE plpgsql AS $$
        BEGIN
          IF given LIKE '%poison%' THEN RAISE EXCEPTION 'cannot be indexed' USING ERRCODE = '${code}'; END IF;
          RETURN svc_search_words_real(app_id, given);
        END $$`);
    await work();
    await db.query("DROP FUNCTION svc_search_words; DROP FUNCTION svc_search_words_real");
    await db.query(definition);
    await db.query("DELETE FROM run WHERE log_id IN (SELECT id FROM execution_log WHERE data::text LIKE '%poison%')");
  }

  for (const [code, text] of [
    ["57014", "take too long"],
    ["54000", "cause an error"],
    ["XX001", "are damaged"],
  ] as const)
    it(`leaves out only the run whose words ${text}, and indexes all others`, () =>
      withPoison(code, async () => {
        const ids: number[] = [];
        for (const result of ["steady", "poison steady", "steady", "steady"])
          ids.push(await end(1, { data: { result } }));
        const words = new RunSearch(db);
        await words.indexEndedRuns();
        expect(await words.find(1, "steady", { limit: 3 })).to.deep.equal([ids[3], ids[2], ids[0]]);
        expect(await found("poison")).to.deep.equal([]);
      }));

  it("does not leave out a run that is committed after the attempt to index an earlier run alone", () =>
    withPoison("57014", async () => {
      const poison = await end(1, { data: { result: "poison late" } });
      let late = 0;
      const watched = Object.create(db, {
        transaction: {
          value: async (work: (manager: EntityManager) => Promise<unknown>) => {
            let isSingle = false;
            try {
              return await db.transaction((manager) => {
                const query = (sql: string, values: unknown[] = []) => {
                  isSingle ||= values[1] === 1;
                  return manager.query(sql, values);
                };
                return work({ query } as EntityManager);
              });
            } finally {
              // Adds a run that ended before the run that cannot be indexed.
              if (isSingle && late === 0) late = await end(1, { data: { result: "late" }, minutesAgo: 0.5 });
            }
          },
        },
      }) as Db;
      await new RunSearch(watched).indexEndedRuns();
      expect(late).to.be.above(poison);
      expect(await found("late")).to.deep.equal([late]);
    }));

  it("indexes at most 5,000 different words of a run", async () => {
    const many = Array.from({ length: 8_000 }, (_, number) => (number + 4_096).toString(16)).join(" ");
    const id = await end(1, { data: { result: many } });
    expect(await found("1000")).to.include(id);
    const [{ count }] = await db.query("SELECT length(words) AS count FROM run_search WHERE run_id = $1", [id]);
    // One of the words is the mark of the app.
    expect(count).to.equal(5_001);
  });

  it("finds in a payload what its log entry shows, never the original if that was masked", async () => {
    await end(1, { data: { payload: { key: "masked" } }, payload: { key: "sesame4711" } });
    expect(await found("sesame4711")).to.deep.equal([]);
    expect(await found("masked")).to.have.length(1);
  });
});
