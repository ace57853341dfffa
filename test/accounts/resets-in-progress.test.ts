/** Tests that requests in progress cannot regain access to an account whose passphrase is reset meanwhile. */
import { expect } from "chai";
import { rows } from "../../src/data/database.js";
import { oauthCalls } from "../api/oauth-support.js";
import { PASSPHRASE, signedInPerson } from "../harness/people.js";
import { NEW_PASSPHRASE, resetDuring } from "../harness/resets.js";
import { type Answer, startTestService, type TestService } from "../harness/service.js";

interface RequestInProgress {
  title: string;
  /** Table for which the request waits after its authorization; missing if it waits for the row of the person. */
  table?: string;
  prepare: (token: string, email: string) => Promise<() => Promise<Answer>>;
}

describe("a reset of a passphrase during another request", () => {
  let service: TestService;
  before(async () => {
    service = await startTestService({ ROLES: "api" });
  });
  after(() => service.stop());

  const signIn = (email: string, passphrase: string) =>
    service.rest("POST", "/v1/auth/sign-in", { as: null, body: { email, passphrase } });
  const change = (as: string, body: object) => service.rest("PUT", "/v1/auth/account", { as, body });

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
  for (const { title, table, prepare } of REQUESTS) {
    it(`rejects ${title} (401)`, async () => {
      const { user, email, token } = await signedInPerson(service);
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
