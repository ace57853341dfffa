import { expect } from "chai";
import type { Db } from "../../src/data/database.js";
import { insertRunByActionId } from "../../src/operations/runs/run-inserts.js";
import { type ConnectedDatabase, connectedDatabase, emptyTables } from "../harness/connected-database.js";

const HOLDER = "00000000-0000-4000-8000-000000000001";
const RUN = {
  appId: 1,
  actionId: 1,
  copy: "master",
  trigger: "manual",
  payload: "{}",
  personId: null,
  credentialId: 1,
} as const;

describe("the idempotency key of a run", () => {
  let database: ConnectedDatabase;
  let db: Db;

  before(async () => {
    database = await connectedDatabase(6);
    ({ db } = database);
  });
  beforeEach(async () => {
    await emptyTables(db, ["run", "credential", "app", "organization"]);
    await db.query(`
      INSERT INTO organization (name) VALUES ('o');
      INSERT INTO app (organization_id, name) VALUES (1, 'a');
      INSERT INTO credential (kind, hash, app_id) VALUES ('api', 'x', 1), ('api', 'y', 1)`);
  });
  after(() => database.stop());

  const finish = (id: number, state: string) =>
    db.query("UPDATE run SET state = $2, holder = NULL, finished_at = now() WHERE id = $1", [id, state]);
  const count = async () => Number((await db.query("SELECT count(*) AS n FROM run"))[0].n);

  it("starts one run for any number of concurrent requests, and another one for another credential or action", async () => {
    const keyedRun = { ...RUN, idempotencyKey: "k" };
    const all = await Promise.all(Array.from({ length: 8 }, () => insertRunByActionId(db, keyedRun, HOLDER)));
    expect(new Set(all.map(({ id }) => id)).size).to.equal(1);
    expect(all.filter(({ isRepeated }) => !isRepeated)).to.have.length(1);
    expect((await insertRunByActionId(db, { ...keyedRun, credentialId: 2 }, HOLDER)).isRepeated).to.equal(false);
    expect((await insertRunByActionId(db, { ...keyedRun, actionId: 2 }, HOLDER)).isRepeated).to.equal(false);
    expect(await count()).to.equal(3);
  });

  it("keeps a failed run, unless a repeat asks for another one: then one run follows, for any number of requests", async () => {
    const keyedRun = { ...RUN, idempotencyKey: "k" };
    const { id } = await insertRunByActionId(db, keyedRun, HOLDER);
    await finish(id, "failed");
    expect(await insertRunByActionId(db, keyedRun, HOLDER)).to.deep.equal({ id, isRepeated: true });
    const again = await Promise.all(
      Array.from({ length: 6 }, () => insertRunByActionId(db, { ...keyedRun, retryFailed: true }, HOLDER)),
    );
    expect(again.filter(({ isRepeated }) => !isRepeated)).to.have.length(1);
    expect(new Set(again.map((answer) => answer.id))).to.have.property("size", 1);
    expect(again[0]!.id).to.be.above(id);
  });

  it("keeps a run that is active or completed, whatever its repeat asks for", async () => {
    const keyedRun = { ...RUN, idempotencyKey: "k", retryFailed: true };
    const { id } = await insertRunByActionId(db, keyedRun, HOLDER);
    expect(await insertRunByActionId(db, keyedRun, HOLDER)).to.deep.equal({ id, isRepeated: true });
    await finish(id, "completed");
    expect(await insertRunByActionId(db, keyedRun, HOLDER)).to.deep.equal({ id, isRepeated: true });
  });

  it("is free if its run is deleted or after a day", async () => {
    const keyedRun = { ...RUN, idempotencyKey: "k" };
    const { id } = await insertRunByActionId(db, keyedRun, HOLDER);
    await db.query("DELETE FROM run WHERE id = $1", [id]);
    const second = await insertRunByActionId(db, keyedRun, HOLDER);
    expect(second.isRepeated).to.equal(false);
    await db.query("UPDATE run_key SET created_at = now() - interval '25 hours'");
    expect((await insertRunByActionId(db, keyedRun, HOLDER)).isRepeated).to.equal(false);
  });
});
