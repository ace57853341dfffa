/**
 * Tests that a reset of a passphrase ends all access to the account. Also tests that requests that are in progress during the reset cannot
 * regain access.
 */
import { expect } from "chai";
import { rows } from "../../src/data/database.js";
import { oauthCalls } from "../api/oauth-support.js";
import { createSignedInPerson, PASSPHRASE } from "../harness/people.js";
import { NEW_PASSPHRASE, prepareReset, resetDuring } from "../harness/resets.js";
import { type Answer, startTestService, type TestService } from "../harness/service.js";
import { until } from "../harness/until.js";

interface RequestInProgress {
  title: string;
  /** The test locks this table, so that the request stops after its authorization. By default, the test locks the person's row. */
  table?: string;
  prepare: (token: string, email: string) => Promise<() => Promise<Answer>>;
}

describe("a reset of a passphrase", () => {
  let service: TestService;
  before(async () => {
    service = await startTestService({ ROLES: "api" });
  });
  after(() => service.stop());

  const signIn = (email: string, passphrase: string) =>
    service.rest("POST", "/v1/auth/sign-in", { as: null, body: { email, passphrase } });
  const change = (as: string, body: object) => service.rest("PUT", "/v1/auth/account", { as, body });

  const reset = async (personId: number) => (await prepareReset(service, personId))();

  it("ends the person's tokens, so that the former owner of the account loses access", async () => {
    const person = { firstName: "Vic", lastName: "Tim", email: "made-by-another@example.com" };
    const { body } = await service.rest("POST", "/v1/admin/users", { as: "admin", body: person });
    const mine = () => service.rest("GET", "/v1/apps", { as: body.token });
    expect((await mine()).http).to.equal(200);
    await reset(body.user.id);
    await until(async () => (await mine()).http === 401);
    expect((await signIn(person.email, NEW_PASSPHRASE)).http).to.equal(200);
  });

  it("ends the access of programs that the person's sessions allowed, and of no other program", async () => {
    const { authorizeClient, may, refresh } = oauthCalls(() => service);
    const [account, other] = [await createSignedInPerson(service), await createSignedInPerson(service)];
    const [ended, untouched] = [
      await authorizeClient(["read"], account.token),
      await authorizeClient(["read"], other.token),
    ];
    expect([await may(ended.tokens.access_token), await may(untouched.tokens.access_token)]).to.deep.equal([200, 200]);
    await reset(account.user.id);
    await until(async () => (await may(ended.tokens.access_token)) === 401);
    expect((await refresh(ended.clientId, ended.tokens.refresh_token)).body.error).to.equal("invalid_grant");
    expect((await refresh(untouched.clientId, untouched.tokens.refresh_token)).http).to.equal(200);
  });

  const REQUESTS: RequestInProgress[] = [
    {
      title: "a sign-in with the old passphrase",
      prepare: async (_token, email) => () => signIn(email, PASSPHRASE),
    },
    {
      title: "a change that sets the old passphrase again",
      prepare: async (token) => () => change(token, { passphrase: PASSPHRASE, currentPassphrase: PASSPHRASE }),
    },
    {
      title: "a decision that authorizes a program",
      table: "app",
      prepare: async (token) => {
        const { newClient, newRequest, decide } = oauthCalls(() => service);
        const { query } = newRequest(await newClient());
        return () => decide(query, {}, token);
      },
    },
  ];
  describe("during another request", () => {
    for (const { title, table, prepare } of REQUESTS) {
      it(`rejects ${title} (401)`, async () => {
        const { user, email, token } = await createSignedInPerson(service);
        const request = await prepare(token, email);
        expect((await service.rest("GET", "/v1/auth/session", { as: token })).http).to.equal(200);
        const { http, body } = await resetDuring(service, user.id, request, table);
        expect(http, JSON.stringify(body)).to.equal(401);
        expect((await signIn(email, NEW_PASSPHRASE)).http).to.equal(200);
        expect((await signIn(email, PASSPHRASE)).http).to.equal(401);
        const [counts] = await rows<{ sessions: number; grants: number }>(
          service.db,
          `SELECT (SELECT count(*)::int FROM credential WHERE person_id = $1 AND revoked_at IS NULL) AS sessions,
                  (SELECT count(*)::int FROM oauth_grant WHERE person_id = $1 AND revoked_at IS NULL) AS grants`,
          [user.id],
        );
        expect(counts).to.deep.equal({ sessions: 1, grants: 0 });
      });
    }
  });
});
