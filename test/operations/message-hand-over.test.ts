/** Checks that only the process that claimed a message sends it, and only while its lease is valid. */
import { randomUUID } from "node:crypto";
import { expect } from "chai";
import { Outbox } from "../../src/operations/communicate/outbox.js";
import { type ConnectedDatabase, connectedDatabase } from "../harness/connected-database.js";

describe("the content of a message", () => {
  let database: ConnectedDatabase;
  before(async () => {
    database = await connectedDatabase();
    await database.db.query(
      "INSERT INTO organization (name) VALUES ('o'); INSERT INTO app (organization_id, name) VALUES (1, 'a')",
    );
  });
  after(() => database.stop());

  it("is sent only during its holder's lease, and not by another process", async () => {
    const { db } = database;
    const outbox = new Outbox(db);
    const [holder, other] = [randomUUID(), randomUUID()];
    const insert =
      "INSERT INTO instance (id, roles, lease_until) VALUES ($1, '{scheduler}', now() + interval '1 hour')";
    for (const id of [holder, other]) await db.query(insert, [id]);
    const now = new Date();
    const message = {
      appId: 1,
      status: "queued",
      recipients: [],
      reference: randomUUID(),
      runId: null,
      personId: null,
    };
    const content = { kind: "email", subject: "s" };
    const id = await outbox.accept(db, { ...message, content } as unknown as Parameters<typeof outbox.accept>[1], now);
    const [claimed] = await outbox.claim(holder, { sendingByApp: [[], []], limitPerApp: 1, limit: 1, now });
    expect(claimed?.id).to.equal(id);
    expect(await outbox.markSending(other, id)).to.equal(false);
    expect(await outbox.markSending(holder, id)).to.equal(true);
    await db.query("UPDATE instance SET lease_until = now() - interval '1 second' WHERE id = $1", [holder]);
    expect(await outbox.markSending(holder, id)).to.equal(false);
  });
});
