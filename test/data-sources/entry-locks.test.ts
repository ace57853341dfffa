/** Tests changes and removals of data sources while other transactions hold locks on their rows. */
import { expect } from "chai";
import { openDatabase, rows } from "../../src/data/database.js";
import { EntryChangeCleanup } from "../../src/operations/data-sources/entry-change-cleanup.js";
import { countLockWaits, untilLockWait } from "../harness/lock-waits.js";
import { type Answer, startTestService, type TestService } from "../harness/service.js";
import { createStages } from "../harness/stages.js";
import { until } from "../harness/until.js";

describe("data sources under locks", () => {
  let service: TestService;
  let base: string;

  before(async () => {
    service = await startTestService({ ROLES: "api" });
    base = `/v1/apps/${service.appId}/data-sources`;
  });
  after(() => service.stop());

  const make = async (name: string, more: object = {}) =>
    (await service.rest("POST", base, { body: { name, ...more } })).body.dataSource;
  const refusal = ({ http, body }: { http: number; body: { status: string } }) => `${http} ${body.status}`;

  it("are renamed while an insert adds a column, without a deadlock", async () => {
    await make("Renamed");
    const rename = await service.db.transaction(async (manager) => {
      // Locks the row as the insert of an entry does, by its foreign key.
      await manager.query("SELECT FROM data_source WHERE name = 'Renamed' FOR KEY SHARE");
      const sent = service.rest("PUT", `${base}/Renamed`, { body: { name: "Renamed again" } });
      await untilLockWait(manager, sent);
      await manager.query("UPDATE data_source SET columns = '[\"a\"]' WHERE name IN ('Renamed', 'Renamed again')");
      return { sent };
    });
    const { http, body } = await rename.sent;
    expect([http, body.dataSource?.name]).to.deep.equal([200, "Renamed again"]);
  });

  describe("with an entry that another transaction has locked", () => {
    const TOUCH_DATA_SOURCE = "UPDATE data_source SET updated_at = updated_at + interval '1 second' WHERE name = $1";
    const tagOf = async (path: string) => (await service.rest("GET", path)).headers.get("etag")!;
    const remove = (path: string, tag = "*") => service.rest("DELETE", path, { headers: { "if-match": tag } });

    /** Locks the `locked` oldest entries. Sends each request when all earlier ones wait or have ended. Then executes the statement `last`. */
    async function whileLocked(
      name: string,
      requests: (() => Promise<Answer>)[],
      { last, locked = 100 }: { last?: string; locked?: number } = {},
    ): Promise<Answer[]> {
      const sent = await service.db.transaction(async (manager) => {
        const entries = `SELECT FROM data_source_entry
          WHERE data_source_id = (SELECT id FROM data_source WHERE name = $1) ORDER BY id LIMIT ${locked} FOR UPDATE`;
        await manager.query(entries, [name]);
        const started: Promise<Answer>[] = [];
        let answerCount = 0;
        for (const send of requests) {
          const answer = send();
          started.push(answer);
          answer.then(
            () => (answerCount += 1),
            () => undefined,
          );
          await until(async () => (await countLockWaits(manager)) + answerCount >= started.length);
        }
        if (last !== undefined) await manager.query(last, [name]);
        return started;
      });
      return Promise.all(sent);
    }

    async function prepareRestore(name: string): Promise<() => Promise<Answer>> {
      await make(name, { entries: [{ a: 1 }] });
      const commit = { append: false, entries: [{ data: { a: 2 } }] };
      expect((await service.rest("POST", `${base}/${name}/commit`, { body: commit })).http).to.equal(200);
      const { versions } = (await service.rest("GET", `${base}/${name}/versions`)).body;
      return () => service.rest("POST", `${base}/${name}/versions/${versions[0].id}/restore`);
    }

    /** Ends the lifetime of the stage, and deletes expired stages as the scheduler does, on a separate connection. */
    async function expireStages(stageId: number): Promise<void> {
      const db = await openDatabase(service.databaseUrl, 1);
      const sql = "UPDATE app_stage SET expires_at = least(expires_at, now() - interval '1 minute') WHERE app_id = $1";
      await db.query(sql, [stageId]);
      await createStages(db)
        .expire()
        .finally(() => db.destroy());
    }

    it("are removed after an update that adds a column, without a deadlock", async () => {
      await make("Behind", { entries: [{ a: 1 }] });
      const [removed] = await whileLocked("Behind", [() => remove(`${base}/Behind`)], { last: TOUCH_DATA_SOURCE });
      expect([removed!.http, removed!.body.status]).to.deep.equal([200, "DATA_SOURCE_DELETED"]);
      expect(refusal(await service.rest("GET", `${base}/Behind`))).to.equal("404 DATA_SOURCE_NOT_FOUND");
    });

    it("stay with their entries if If-Match of the removal names the state before the update", async () => {
      const { id } = await make("Ahead", { entries: [{ a: 1 }] });
      const tag = await tagOf(`${base}/Ahead`);
      const [removed] = await whileLocked("Ahead", [() => remove(`${base}/Ahead`, tag)], { last: TOUCH_DATA_SOURCE });
      expect(refusal(removed!)).to.equal("409 RESOURCE_CHANGED");
      const left = await rows(service.db, "SELECT data FROM data_source_entry WHERE data_source_id = $1", [id]);
      expect(left).to.deep.equal([{ data: { a: 1 } }]);
    });

    it("are restored after an update that adds a column, without a deadlock", async () => {
      const [restored] = await whileLocked("Restored", [await prepareRestore("Restored")], { last: TOUCH_DATA_SOURCE });
      expect(restored!.http, JSON.stringify(restored!.body)).to.equal(200);
    });

    it("are removed before a restore that arrives later, without a deadlock", async () => {
      const restore = await prepareRestore("Removed first");
      const [removed, restored] = await whileLocked("Removed first", [() => remove(`${base}/Removed first`), restore]);
      expect([removed!.http, refusal(restored!)]).to.deep.equal([200, "404 VERSION_NOT_FOUND"]);
    });

    for (const [title, path, body, indexes] of [
      ["an import that replaces", "import", [{ a: 2 }], []],
      ["an import that replaces unique values", "import", [{ a: 2 }], [{ columns: ["a"], unique: true }]],
      ["a commit that replaces", "commit", { append: false, entries: [{ data: { a: 2 } }] }, []],
      ["a commit that leaves nothing", "commit", { append: false }, []],
      ["a removal of many entries", "query", { type: "delete", where: {} }, []],
    ] as const) {
      it(`are removed before ${title} that arrives later, without a deadlock`, async () => {
        const name = `Removed before ${title}`;
        const entries = Array.from({ length: 1_001 }, (_, a) => ({ a }));
        await make(name, { entries, indexes });
        const later = () => service.rest("POST", `${base}/${encodeURIComponent(name)}/${path}`, { body });
        const [removed, refused] = await whileLocked(name, [
          () => remove(`${base}/${encodeURIComponent(name)}`),
          later,
        ]);
        expect([removed!.http, refusal(refused!)]).to.deep.equal([200, "404 DATA_SOURCE_NOT_FOUND"]);
      });
    }

    it("are changed by a commit that replaces and by an update of the same entries, without a deadlock", async () => {
      await make("Crossed", { entries: [{ a: 1 }, { a: 2 }, { a: 3 }] });
      const { entries } = (await service.rest("POST", `${base}/Crossed/query`, { body: {} })).body;
      const [, second, third] = entries.map(({ id }: { id: number }) => id);
      const commit = (append: boolean, ids: number[]) => () =>
        service.rest("POST", `${base}/Crossed/commit`, {
          body: { append, entries: ids.map((id) => ({ id, data: { a: 9 } })) },
        });
      const answers = await whileLocked("Crossed", [commit(false, [third]), commit(true, [second, third])], {
        locked: 1,
      });
      expect(answers.map(({ http, body }) => [http, body.status])).to.deep.equal([
        [200, undefined],
        [200, undefined],
      ]);
    });

    it("are changed while a removal holds the data source's row, without a deadlock", async () => {
      const { id } = await make("Held", { entries: [{ a: 1 }] });
      const { entries } = (await service.rest("POST", `${base}/Held/query`, { body: {} })).body;
      const body = { append: true, entries: [{ id: entries[0].id, data: { a: 2 } }] };
      const sent = await service.db.transaction(async (manager) => {
        await manager.query("SELECT FROM data_source WHERE id = $1 FOR UPDATE", [id]);
        const answer = service.rest("POST", `${base}/Held/commit`, { body });
        await untilLockWait(manager, answer);
        // Locks the counts of the data source, as a removal does after it has locked the row of the data source.
        await manager.query("SELECT FROM data_source_tally WHERE data_source_id = $1 FOR UPDATE", [id]);
        return { answer };
      });
      const { http, body: changed } = await sent.answer;
      expect(http, JSON.stringify(changed)).to.equal(200);
    });

    it("are removed with an entry that was inserted and locked meanwhile, without a deadlock", async () => {
      const { id } = await make("Grown", { entries: [{ a: 1 }] });
      const insert = "INSERT INTO data_source_entry (app_id, data_source_id, data) VALUES ($1, $2, $3) RETURNING id";
      const restarted = `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
                           AND query_start > $1::timestamptz`;
      const sent = await service.db.transaction(async (manager) => {
        // Makes the update of an entry wait after it has locked the entry, and before it locks the data source.
        await manager.query("LOCK TABLE log_event IN SHARE MODE");
        await manager.query("SAVEPOINT without_entry");
        await manager.query("SELECT FROM data_source_entry WHERE data_source_id = $1 FOR UPDATE", [id]);
        const removal = remove(`${base}/Grown`);
        await untilLockWait(manager, removal);
        const [late] = await rows<{ id: number }>(service.db, insert, [service.appId, id, '{"a":2}']);
        const body = { append: true, entries: [{ id: late!.id, data: { a: 3 } }] };
        const update = service.rest("POST", `${base}/Grown/commit`, { body });
        await until(async () => (await countLockWaits(manager)) === 2);
        const [{ now }] = await manager.query("SELECT clock_timestamp()::text AS now");
        await manager.query("ROLLBACK TO SAVEPOINT without_entry");
        await until(async () => (await rows(service.db, restarted, [now])).length > 0);
        return { removal, update };
      });
      const [removed, updated] = [await sent.removal, await sent.update];
      expect([removed.http, updated.http], JSON.stringify([removed.body, updated.body])).to.deep.equal([200, 200]);
    });

    it("are kept by a pruning manifest while a commit inserts an entry and adds a column, without a deadlock", async () => {
      const { id } = await make("Pruned");
      const manifestPath = `/v1/apps/${service.appId}/manifest`;
      const { body: manifest } = await service.rest("GET", manifestPath);
      const dataSources = manifest.dataSources.filter(({ name }: { name: string }) => name !== "Pruned");
      const sent = await service.db.transaction(async (manager) => {
        const insert = "INSERT INTO data_source_entry (app_id, data_source_id, data) VALUES ($1, $2, '{}')";
        await manager.query(insert, [service.appId, id]);
        const body = { ...manifest, dataSources };
        const pruning = service.rest("PUT", `${manifestPath}?prune=true`, { body });
        await untilLockWait(manager, pruning);
        await manager.query(TOUCH_DATA_SOURCE, ["Pruned"]);
        return { pruning };
      });
      expect(refusal(await sent.pruning)).to.equal("409 DATA_SOURCE_NOT_EMPTY");
    });

    it("keep old changes while a removal holds their counts, without a wait", async () => {
      const { id } = await make("Cleaned");
      await service.rest("POST", `${base}/Cleaned/commit`, { body: { append: true, entries: [{ data: { a: 1 } }] } });
      const select = "SELECT FROM data_source_change WHERE data_source_id = $1";
      const age = "UPDATE data_source_change SET created_at = now() - interval '1 day' WHERE data_source_id = $1";
      await service.db.query(age, [id]);
      // Adds more old changes than one batch deletes. They must not prevent the deletion of another data source's old changes.
      const copy =
        "INSERT INTO data_source_change (app_id, data_source_id, bulk, inserted, replaced, created_at) SELECT $1, $2, true, '{}', '[]', now() - interval '1 day'";
      await service.db.query(`${copy} FROM generate_series(1, 1500)`, [service.appId, id]);
      const other = await make("Cleaned too");
      await service.db.query(copy.replace("1 day", "1 hour"), [service.appId, other.id]);
      const upkeep = new EntryChangeCleanup({ db: service.db });
      await service.db.transaction(async (manager) => {
        await manager.query("SELECT FROM data_source_tally WHERE data_source_id = $1 FOR UPDATE", [id]);
        const cleaned = upkeep.clean();
        await untilLockWait(manager, cleaned);
        expect(await countLockWaits(manager)).to.equal(0);
        await cleaned;
        expect(await rows(service.db, select, [id])).to.have.length(1501);
        expect(await rows(service.db, select, [other.id])).to.have.length(0);
      });
      await upkeep.clean();
      expect(await rows(service.db, select, [id])).to.have.length(0);
      const forgotten = "SELECT FROM data_source_tally WHERE data_source_id = $1 AND forgotten > 0";
      expect(await rows(service.db, forgotten, [id])).to.have.length(1);
    });

    it("are changed by a commit while their stage expires, without a deadlock", async () => {
      const body = { name: "expires", expiresInHours: 1 };
      const stage = (await service.rest("POST", `/v1/apps/${service.appId}/stages`, { body })).body.app.id;
      const path = `/v1/apps/${stage}/data-sources`;
      await service.rest("POST", path, { body: { name: "Changed", entries: [{ a: 1 }] } });
      const { entries } = (await service.rest("POST", `${path}/Changed/query`, { body: {} })).body;
      const change = { append: true, entries: [{ id: entries[0].id, data: { a: 2 } }] };
      const sent = await service.db.transaction(async (manager) => {
        // Makes the commit wait after it has locked the entry, and before it locks the data source.
        await manager.query("LOCK TABLE log_event IN SHARE MODE");
        const commit = service.rest("POST", `${path}/Changed/commit`, { body: change });
        await untilLockWait(manager, commit);
        const expiry = expireStages(stage);
        await untilLockWait(manager, expiry, 2);
        return { commit, expiry };
      });
      const { http, body: changed } = await sent.commit;
      expect(http, JSON.stringify(changed)).to.equal(200);
      await sent.expiry;
      // The first expiry skipped the stage, because it was in use. The next expiry deletes the stage.
      await expireStages(stage);
      expect(await rows(service.db, "SELECT FROM app WHERE id = $1", [stage])).to.have.length(0);
    });

    it("are removed with their stage while another transaction locks the data source before the app", async () => {
      const body = { name: "crossed", expiresInHours: 1 };
      const stage = (await service.rest("POST", `/v1/apps/${service.appId}/stages`, { body })).body.app.id;
      await service.rest("POST", `/v1/apps/${stage}/data-sources`, { body: { name: "Locked" } });
      const sent = await service.db.transaction(async (manager) => {
        await manager.query("SELECT FROM data_source WHERE app_id = $1 FOR NO KEY UPDATE", [stage]);
        const expiry = expireStages(stage);
        await untilLockWait(manager, expiry);
        // Inserting this row locks the app, to which it has a foreign key.
        await manager.query("INSERT INTO media_usage (app_id, bytes) VALUES ($1, 0)", [stage]);
        return { expiry };
      });
      await sent.expiry;
      await expireStages(stage);
      expect(await rows(service.db, "SELECT FROM app WHERE id = $1", [stage])).to.have.length(0);
    });

    it("stay while their removed stage is in use, and its expiry delays no other stage", async () => {
      const stages: number[] = [];
      for (const name of ["used", "unused"]) {
        const { app } = (
          await service.rest("POST", `/v1/apps/${service.appId}/stages`, { body: { name, expiresInHours: 1 } })
        ).body;
        stages.push(app.id);
        await service.rest("POST", `/v1/apps/${app.id}/data-sources`, { body: { name: "Kept" } });
      }
      const [used, unused] = stages as [number, number];
      await service.db.transaction(async (manager) => {
        await manager.query("SELECT FROM data_source WHERE app_id = $1 FOR NO KEY UPDATE", [used]);
        const { http, body } = await service.rest("DELETE", `/v1/apps/${service.appId}/stages/${used}`);
        expect([http, body.status]).to.deep.equal([200, "STAGE_REMOVED"]);
        await expireStages(unused);
        expect(await rows(service.db, "SELECT id FROM app WHERE id = ANY ($1)", [stages])).to.deep.equal([
          { id: used },
        ]);
      });
      await expireStages(used);
      expect(await rows(service.db, "SELECT id FROM app WHERE id = $1", [used])).to.deep.equal([]);
    });

    it("are not restored in part if another change deletes the snapshot meanwhile", async () => {
      const restore = await prepareRestore("Deleted snapshot");
      await service.db.query(`
        CREATE FUNCTION delete_parts() RETURNS trigger LANGUAGE plpgsql AS
          $$ BEGIN DELETE FROM data_source_version_part WHERE app_id = OLD.app_id; RETURN NULL; END $$;
        CREATE TRIGGER delete_parts AFTER DELETE ON data_source_entry FOR EACH ROW EXECUTE FUNCTION delete_parts()`);
      try {
        expect(refusal(await restore())).to.equal("404 VERSION_NOT_FOUND");
      } finally {
        await service.db.query("DROP FUNCTION delete_parts CASCADE");
      }
      const stored = await service.db.query(
        "SELECT data_source_entry.data FROM data_source_entry JOIN data_source ON data_source.id = data_source_id WHERE name = $1",
        ["Deleted snapshot"],
      );
      expect(JSON.stringify(stored)).to.equal('[{"data":{"a":2}}]');
      expect((await restore()).http).to.equal(200);
    });

    it("are restored twice, one after the other", async () => {
      const restore = await prepareRestore("Twice");
      const answers = await whileLocked("Twice", [restore, restore]);
      expect(answers.map(({ http }) => http)).to.deep.equal([200, 200]);
    });
  });
});
