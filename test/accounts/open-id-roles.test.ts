import { expect } from "chai";
import { MEMBERS_PER_ORGANIZATION_OR_APP_MAX } from "../../src/limits.js";
import { type OpenIdProviderServer, startOpenIdProvider } from "../harness/open-id-provider.js";
import { RedirectBrowser } from "../harness/redirect-browser.js";
import { startTestService, type TestService } from "../harness/service.js";

describe("roles by groups of an OpenID provider", () => {
  let provider: OpenIdProviderServer;
  let service: TestService;
  before(async () => {
    provider = await startOpenIdProvider();
    service = await startTestService({
      ROLES: "api",
      OIDC_ISSUER: provider.issuer,
      OIDC_CLIENT_ID: provider.clientId,
      OIDC_CLIENT_SECRET: provider.clientSecret,
      OIDC_AUTO_CREATE: "1",
      OIDC_ROLES: "staff=editor,guests=reader",
    });
    provider.redirectUris.push(`${service.url}/v1/auth/oidc/oidc/callback`);
  });
  after(async () => {
    await service.stop();
    await provider.stop();
  });

  /** Signs in as the account `sub` with these groups. Returns the browser, and the path of the page to which the sign-in leads. */
  async function signIn(sub: string, groups: string[]) {
    const claims = { email: `${sub}@example.com`, email_verified: true, given_name: "Ada", family_name: sub, groups };
    provider.accounts.set(sub, claims);
    provider.current = sub;
    const browser = new RedirectBrowser();
    const isLast = (next: string) => next.startsWith(`${service.url}/studio`);
    const landed = await browser.follow(`${service.url}/v1/auth/oidc/oidc/start`, isLast);
    return { browser, landed: landed.slice(service.url.length) };
  }
  const sessionOf = ({ browser }: { browser: RedirectBrowser }) => browser.request(`${service.url}/v1/auth/session`);
  const envScript = async (token: string) =>
    (await service.rest("GET", `/v1/apps/${service.appId}/env.js`, { as: token })).http;

  it("a sign-in without groups ends the earlier sessions and the tokens of the person", async () => {
    const earlier = await signIn("leaving", ["staff"]);
    const { user } = (await (await sessionOf(earlier)).json()) as { user: { id: number } };
    const path = `/v1/apps/${service.appId}/tokens`;
    const { body } = await service.rest("POST", path, { as: "admin", body: { kind: "viewer", userId: user.id } });
    expect(await envScript(body.token)).to.equal(200);
    const later = await signIn("leaving", []);
    expect((await sessionOf(earlier)).status).to.equal(401);
    expect(await envScript(body.token)).to.equal(401);
    const session = await (await sessionOf(later)).json();
    expect(session).to.deep.include({ user, organizations: [] });
  });

  it("the audit log has the network address from which a sign-in makes an account and changes its role", async () => {
    await signIn("audited", ["staff"]);
    await signIn("audited", ["guests"]);
    const { body } = await service.rest("GET", "/v1/organizations/1/audit?limit=5", { as: "admin" });
    const facts = body.entries.map(({ type, address }: { type: string; address: string }) => `${type} ${address}`);
    const types = ["person.signIn", "member.role", "person.signIn", "member.role", "person.create"];
    expect(facts).to.deep.equal(types.map((type) => `${type} 127.0.0.1`));
  });

  it("a sign-in that removes or lowers the role revokes older invitations to the person", async () => {
    const invite = async (email: string): Promise<string> => {
      const body = { email, role: "admin" };
      return (await service.rest("POST", "/v1/organizations/1/invitations", { as: "admin", body })).body.link;
    };
    for (const [sub, groups, status] of [
      ["removed", [], 410],
      ["lowered", ["guests"], 410],
      ["kept", ["staff"], 200],
    ] as const) {
      await signIn(sub, ["staff"]);
      const link = await invite(`${sub}@example.com`);
      const { browser } = await signIn(sub, [...groups]);
      const accepted = await browser.request(`${service.url}/v1/auth/invitations/accept`, {
        method: "POST",
        headers: { "content-type": "application/json", origin: service.url },
        body: JSON.stringify({ token: link.slice(link.indexOf("=") + 1) }),
      });
      expect(accepted.status, `${sub}: ${await accepted.text()}`).to.equal(status);
    }
  });

  it("a sign-in that needs a role in a full organization is rejected; members can sign in", async () => {
    const member = await signIn("member", ["staff"]);
    await service.db.query(
      `WITH people AS (
         INSERT INTO person (organization_id, first_name, last_name, email)
         SELECT 1, 'Ada', 'Member', 'full' || n || '@example.com' FROM generate_series(1, $1) AS n RETURNING id)
       INSERT INTO organization_member (organization_id, person_id, role) SELECT 1, id, 'reader' FROM people`,
      [MEMBERS_PER_ORGANIZATION_OR_APP_MAX],
    );
    expect((await signIn("late", ["staff"])).landed).to.equal("/studio?sign-in=too-many-members");
    expect((await signIn("late", [])).landed).to.equal("/studio");
    expect((await signIn("member", ["staff"])).landed).to.equal(member.landed);
  });
});
