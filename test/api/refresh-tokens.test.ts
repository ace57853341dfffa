/** Tests secret bindings whose token endpoint replaces the refresh token with each access token. */
import { expect } from "chai";
import { longTest } from "../harness/samples.js";
import { BoundRequests, REQUEST_CODE } from "./bound-requests.js";

describe("refresh tokens of secret bindings", () => {
  let bound: BoundRequests;
  /** Refresh tokens that the token endpoint received. */
  let received: (string | null)[];
  /** Lifetime in seconds of the access tokens. */
  let lifetime: number;
  const tokenOf = (number: number) => `refresh-${number}-${"d".repeat(20)}`;
  const run = () => bound.run(REQUEST_CODE, { options: { auth: "__refresh" } });

  before(async () => {
    bound = await BoundRequests.start();
  });
  after(() => bound.stop());
  beforeEach(async () => {
    received = [];
    lifetime = 20;
    bound.answer = (request, response) => {
      if (request.url !== "/token") return response.end("done");
      const { text } = request as typeof request & { text: string };
      received.push(new URLSearchParams(text).get("refresh_token"));
      const access = `access-${received.length}-${"c".repeat(20)}`;
      const token = { access_token: access, refresh_token: tokenOf(received.length), expires_in: lifetime };
      response.end(JSON.stringify(token));
    };
    await bound.service.db.query("DELETE FROM integration_token");
    await bound.set({ __refresh: tokenOf(0) });
    await bound.bind([binding()]);
  });
  const binding = () => {
    const oauth = { tokenUrl: `${bound.origin}/token`, clientId: "client", grant: "refresh_token" };
    return { key: "__refresh", origin: bound.origin, in: "oauth2", ...oauth };
  };

  it("that the service sends are the newest ones that the endpoint returned", async () => {
    for (let turn = 0; turn < 3; turn += 1) await run();
    expect(received).to.deep.equal([0, 1, 2].map(tokenOf));
  });

  longTest("are stored by a later attempt if the database rejects the first ones", async () => {
    const { db } = bound.service;
    // A rollback does not reset a sequence, so exactly the first two writes fail.
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

  const settings = () => `/v1/apps/${bound.service.appId}/settings`;
  const removals: [title: string, remove: () => Promise<unknown>][] = [
    ["binding", () => bound.bind([])],
    ["setting", () => bound.service.rest("DELETE", settings(), { body: { keys: ["__refresh"] } })],
  ];
  for (const [title, remove] of removals) {
    it(`and access tokens are deleted with their ${title}, and not used if the same one is stored again`, async () => {
      lifetime = 3600;
      await run();
      await run();
      expect(received).to.deep.equal([tokenOf(0)]);
      await remove();
      expect(await bound.service.db.query("SELECT FROM integration_token")).to.deep.equal([]);
      await bound.set({ __refresh: tokenOf(0) });
      await bound.bind([binding()]);
      const { result, error } = await run();
      expect(result, error).to.include({ status: 200 });
      expect(received).to.deep.equal([tokenOf(0), tokenOf(0)]);
    });
  }

  it("and access tokens stay if another setting or binding changes", async () => {
    lifetime = 3600;
    await run();
    await bound.set({ _other: "other" });
    await bound.bind([binding(), { key: "_other", origin: bound.origin, in: "header", name: "x-other" }]);
    await bound.service.rest("DELETE", settings(), { body: { keys: ["_other"] } });
    await run();
    expect(received).to.deep.equal([tokenOf(0)]);
  });
});
