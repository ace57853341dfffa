/** Tests secret bindings whose token endpoint replaces the refresh token with each access token. */
import { expect } from "chai";
import { BoundRequests, REQUEST_CODE } from "./bound-requests.js";

describe("refresh tokens of secret bindings", () => {
  let bound: BoundRequests;
  /** Refresh tokens that the token endpoint received. */
  let received: (string | null)[];
  const tokenOf = (number: number) => `refresh-${number}-${"d".repeat(20)}`;
  const run = () => bound.run(REQUEST_CODE, { options: { auth: "__refresh" } });

  before(async () => {
    bound = await BoundRequests.start();
  });
  after(() => bound.stop());
  beforeEach(async () => {
    received = [];
    bound.answer = (request, response) => {
      if (request.url !== "/token") return response.end("done");
      const { text } = request as typeof request & { text: string };
      received.push(new URLSearchParams(text).get("refresh_token"));
      const access = `access-${received.length}-${"c".repeat(20)}`;
      const token = { access_token: access, refresh_token: tokenOf(received.length), expires_in: 20 };
      response.end(JSON.stringify(token));
    };
    await bound.service.db.query("DELETE FROM integration_token");
    await bound.set({ __refresh: tokenOf(0) });
    const oauth = { tokenUrl: `${bound.origin}/token`, clientId: "client", grant: "refresh_token" };
    await bound.bind([{ key: "__refresh", origin: bound.origin, in: "oauth2", ...oauth }]);
  });

  it("are the last ones of the endpoint", async () => {
    for (let turn = 0; turn < 3; turn += 1) await run();
    expect(received).to.deep.equal([0, 1, 2].map(tokenOf));
  });

  it("are stored by a later attempt if the database rejects the first ones", async () => {
    const { db } = bound.service;
    // A sequence keeps its number when a transaction fails, so exactly the first two writes fail.
    await db.query(`CREATE SEQUENCE token_writes;
      CREATE FUNCTION reject_first_writes() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF nextval('token_writes') <= 2 THEN RAISE EXCEPTION 'rejected'; END IF;
        RETURN NEW;
      END $$;
      CREATE TRIGGER reject_first BEFORE UPDATE ON integration_token FOR EACH ROW EXECUTE FUNCTION reject_first_writes()`);
    try {
      const { result, error } = await run();
      expect(result, error).to.include({ status: 200 });
      await run();
      expect(received).to.deep.equal([0, 1].map(tokenOf));
    } finally {
      await db.query("DROP FUNCTION reject_first_writes CASCADE; DROP SEQUENCE token_writes");
    }
  });
});
