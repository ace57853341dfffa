import { expect } from "chai";
import { rows } from "../../src/data/database.js";
import type { AccountModules } from "../../src/operations/accounts/people-accounts.js";
import { type ConnectedDatabase, connectedDatabase } from "../harness/connected-database.js";
import { overlap } from "../harness/lock-waits.js";
import { createAccounts, PASSPHRASE } from "../harness/people.js";

const CONNECTIONS = 4;
const LOCK_OLD_LINK = "SELECT FROM one_time_link WHERE id = $1 FOR UPDATE";
/** Lock that makes the creation of an administrator wait after it has created the account, and before its transaction ends. */
const STOP_SETUP = "LOCK TABLE access_event IN ACCESS EXCLUSIVE MODE";

describe("set-up links", () => {
  let database: ConnectedDatabase;
  let accounts: AccountModules["accounts"];
  before(async () => {
    database = await connectedDatabase(CONNECTIONS);
    const { db, url: databaseUrl } = database;
    await db.query("INSERT INTO organization (name) VALUES ('First')");
    ({ accounts } = createAccounts({ db, databaseUrl, url: "http://localhost:4000" }));
  });
  after(() => database.stop());

  const validLinks = () =>
    rows<{ id: number }>(
      database.db,
      "SELECT id FROM one_time_link WHERE kind = 'setup' AND used_at IS NULL AND revoked_at IS NULL",
    );

  it("only the newer one of two links that are created at once is valid", async () => {
    const { id } = await accounts.createSetupLink();
    const [, second] = await overlap(
      database.db,
      [LOCK_OLD_LINK, id],
      () => accounts.createSetupLink(),
      () => accounts.createFirstSetupLink(),
    );
    expect(await validLinks()).to.deep.equal([{ id: second!.id }]);
  });

  it("a process that starts while the first administrator is created creates none", async () => {
    const { token } = await accounts.createSetupLink();
    const body = { token, email: "first@example.com", firstName: "Ada", lastName: "Lovelace", passphrase: PASSPHRASE };
    const [, link] = await overlap(
      database.db,
      [STOP_SETUP],
      () => accounts.setup({ caller: null }, body),
      () => accounts.createFirstSetupLink(),
    );
    expect(link).to.equal(null);
    expect(await validLinks()).to.deep.equal([]);
  });
});
