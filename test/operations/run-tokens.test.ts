/** Tests the tokens of runs: only the process that issued a token caches it, until the end of the run. */
import { expect } from "chai";
import type { Db } from "../../src/data/database.js";
import type { DatabaseNotifications } from "../../src/engine/notifications.js";
import { Credentials } from "../../src/operations/access/credentials.js";
import { type CredentialsDatabase, createCredentialsDatabase } from "./credentials-database.js";

describe("the token of a run", () => {
  let database: CredentialsDatabase;
  let db: Db;
  let notifications: DatabaseNotifications;

  before(async () => {
    database = await createCredentialsDatabase();
    ({ db, notifications } = database);
  });
  after(() => database.stop());

  const create = () => new Credentials({ db, notifications });
  const issueToken = (credentials: ReturnType<typeof create>) =>
    credentials.issue({ kind: "task", appId: 1, expiresAt: new Date(Date.now() + 60_000) });
  /** Lets the token expire in the database, without a notification to the processes. */
  const expireInDatabase = (id: number) => db.query("UPDATE credential SET expires_at = now() WHERE id = $1", [id]);

  it("is read from the database once by the process that issued it, and at each use by others", async () => {
    const [issuer, other] = [create(), create()];
    const { id, token } = await issueToken(issuer);
    for (const credentials of [issuer, other])
      expect(await credentials.resolve(token)).to.include({ credentialId: id, appId: 1 });
    await expireInDatabase(id);
    expect(await issuer.resolve(token)).to.include({ credentialId: id, appId: 1 });
    expect(await other.resolve(token)).to.equal(null);
  });

  it("is not valid from the end of the run on, at once", async () => {
    const issuer = create();
    const { id, token } = await issueToken(issuer);
    expect(await issuer.resolve(token)).not.to.equal(null);
    const ended = issuer.expire(id);
    const meanwhile = issuer.resolve(token);
    await ended;
    expect(await issuer.resolve(token)).to.equal(null);
    await meanwhile;
    expect(await issuer.resolve(token), "what was asked before the end is not kept after it").to.equal(null);
  });

  it("that is revoked, or whose holder's rights change, is read from the database again", async () => {
    const issuer = create();
    const { id, token } = await issueToken(issuer);
    expect(await issuer.resolve(token)).not.to.equal(null);
    await issuer.revoke(id, 1);
    expect(await issuer.resolve(token)).to.equal(null);
    const next = await issueToken(issuer);
    expect(await issuer.resolve(next.token)).not.to.equal(null);
    await expireInDatabase(next.id);
    await issuer.clearCallerCaches();
    expect(await issuer.resolve(next.token)).to.equal(null);
  });
});
