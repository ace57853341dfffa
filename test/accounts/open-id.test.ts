/** Tests sign-in at an OpenID provider against oidc-provider: accounts, roles by groups, organizations, links, and attacks. */
import type { ServerResponse } from "node:http";
import { expect } from "chai";
import { rows } from "../../src/data/database.js";
import { countLockWaits } from "../harness/lock-waits.js";
import { type OpenIdProviderServer, startOpenIdProvider } from "../harness/open-id-provider.js";
import { createSignedInPerson, PASSPHRASE } from "../harness/people.js";
import { RedirectBrowser } from "../harness/redirect-browser.js";
import { resetDuring } from "../harness/resets.js";
import { longTest } from "../harness/samples.js";
import { startTestService, type TestService } from "../harness/service.js";
import { until } from "../harness/until.js";

describe("Sign-in at an OpenID provider", () => {
  let provider: OpenIdProviderServer;
  let service: TestService;
  let organizations: number[];
  before(async () => {
    provider = await startOpenIdProvider();
    const { issuer, clientId, clientSecret } = provider;
    const of = (name: string, more: Record<string, string> = {}) => ({
      [`OIDC_${name}ISSUER`]: issuer,
      [`OIDC_${name}CLIENT_ID`]: clientId,
      [`OIDC_${name}CLIENT_SECRET`]: clientSecret,
      ...more,
    });
    service = await startTestService({
      ROLES: "api",
      ...of("", { OIDC_AUTO_CREATE: "1", OIDC_ROLES: "staff=editor,chiefs=admin,founders=owner" }),
      ...of("CLOSED_"),
      ...of("DOMAINS_", { OIDC_DOMAINS_AUTO_CREATE: "1", OIDC_DOMAINS_ORGANIZATIONS: "second.example=2" }),
      ...of("CLAIMS_", {
        OIDC_CLAIMS_AUTO_CREATE: "1",
        OIDC_CLAIMS_ORGANIZATION_CLAIM: "organization",
        OIDC_CLAIMS_ORGANIZATIONS: "second=2",
      }),
      OIDC_GONE_ISSUER: "http://localhost:1",
      OIDC_GONE_CLIENT_ID: "x",
      OIDC_GONE_CLIENT_SECRET: "x",
    });
    await service.db.query("INSERT INTO organization (name) VALUES ('Second')");
    organizations = (await rows<{ id: number }>(service.db, "SELECT id FROM organization ORDER BY id")).map(
      ({ id }) => id,
    );
    for (const id of ["oidc", "closed", "domains", "claims"]) {
      provider.redirectUris.push(`${service.url}/v1/auth/oidc/${id}/callback`);
    }
    provider.postLogoutRedirectUris.push(`${service.url}/studio`);
  });
  after(async () => {
    await service.stop();
    await provider.stop();
  });

  const isServiceUrl = (address: string) =>
    address.startsWith(`${service.url}/`) && !address.includes("/v1/auth/oidc/");
  let accounts = 0;
  function account(claims: Record<string, unknown> = {}): string {
    accounts += 1;
    const sub = `account-${accounts}`;
    const email = `${sub}@example.com`;
    provider.accounts.set(sub, { email, email_verified: true, given_name: "Ada", family_name: sub, ...claims });
    provider.current = sub;
    return sub;
  }
  const startUrlOf = (id: string, next?: string) =>
    `${service.url}/v1/auth/oidc/${id}/start${next === undefined ? "" : `?next=${encodeURIComponent(next)}`}`;
  async function signIn(id = "oidc", next?: string, browser = new RedirectBrowser()) {
    const landingUrl = await browser.follow(
      startUrlOf(id, next),
      (address) => isServiceUrl(address) || !address.startsWith("http://"),
    );
    return { browser, landingUrl: landingUrl.slice(service.url.length) };
  }
  // biome-ignore lint/suspicious/noExplicitAny: each route returns another type
  type Json = any;
  const session = async (browser: RedirectBrowser) =>
    (await browser.request(`${service.url}/v1/auth/session`)).json() as Promise<Json>;
  const signOutAtProvider = (browser: RedirectBrowser) => {
    for (const key of browser.cookies.keys())
      if (key.startsWith(new URL(provider.issuer).host)) browser.cookies.delete(key);
  };

  it("lists the providers by ID and name", async () => {
    const { body } = await service.rest("GET", "/v1/auth/providers", { as: null });
    expect(body.providers.map(({ id, name }: { id: string; name: string }) => [id, name])).to.deep.equal([
      ["oidc", "OpenID"],
      ["claims", "Claims"],
      ["closed", "Closed"],
      ["domains", "Domains"],
      ["gone", "Gone"],
    ]);
  });

  it("creates an account at the first sign-in, with the role of the person's groups, and later signs in the same account", async () => {
    account({ groups: ["unknown", "staff", "chiefs"] });
    const { browser, landingUrl } = await signIn("oidc", "/studio?app=1#runs");
    expect(landingUrl).to.equal("/studio?app=1#runs");
    const first = await session(browser);
    expect(first.user).to.include({ firstName: "Ada", organizationId: organizations[0] });
    expect(first.organizations.map(({ role }: { role: string }) => role)).to.deep.equal(["admin"]);
    const again = await session((await signIn()).browser);
    expect(again.user).to.deep.equal(first.user);
  });

  it("removes characters from a name that the service cannot store, and cuts it", async () => {
    account({ given_name: `A\0d\ud800a\n${"🙂".repeat(200)}`, family_name: "\0" });
    const { user } = await session((await signIn()).browser);
    expect([user.firstName, user.lastName]).to.deep.equal([`A d a ${"🙂".repeat(124)}`, user.email]);
  });

  it("gives no role without a mapped group, and follows the groups at each sign-in", async () => {
    const sub = account({ groups: "staff" });
    expect((await session((await signIn()).browser)).organizations[0].role).to.equal("editor");
    provider.accounts.get(sub)!["groups"] = [];
    const { browser } = await signIn();
    const sessionWithoutRoles = await session(browser);
    expect([sessionWithoutRoles.organizations, sessionWithoutRoles.apps]).to.deep.equal([[], []]);
    expect((await browser.request(`${service.url}/v3/apps/1/actions`)).status).to.equal(403);
  });

  it("rejects sign-ins while the userinfo endpoint does not respond, and keeps the role", async () => {
    account({ groups: ["staff"] });
    const { browser } = await signIn();
    const failures = [
      (response: ServerResponse) => response.writeHead(502).end(),
      (response: ServerResponse) => response.destroy(),
    ];
    for (const failure of failures) {
      provider.answerUserInfo = failure;
      expect((await signIn()).landingUrl).to.equal("/studio?sign-in=unavailable");
    }
    provider.answerUserInfo = null;
    expect((await session(browser)).organizations[0].role).to.equal("editor");
  });

  it("keeps the last owner of an organization, whatever the groups are", async () => {
    const sub = account({ groups: ["founders"] });
    await service.db.query("DELETE FROM organization_member WHERE role = 'owner'");
    await signIn();
    provider.accounts.get(sub)!["groups"] = ["staff"];
    expect((await session((await signIn()).browser)).organizations[0].role).to.equal("owner");
  });

  it("keeps the last owner of an organization while another owner leaves it", async () => {
    const sub = account({ groups: ["founders"] });
    const { user } = await session((await signIn()).browser);
    const leavingOwner = await createSignedInPerson(service);
    const owners = [user.id, leavingOwner.user.id];
    await service.db.query("DELETE FROM organization_member WHERE role = 'owner' AND person_id <> ALL ($1)", [owners]);
    provider.accounts.get(sub)!["groups"] = ["staff"];
    const removal = service.db.createQueryRunner();
    await removal.startTransaction();
    await removal.query("SELECT FROM organization WHERE id = $1 FOR UPDATE", [organizations[0]]);
    const signedIn = signIn();
    await until(async () => (await countLockWaits(removal.manager)) > 0);
    await removal.query("DELETE FROM organization_member WHERE person_id = $1", [leavingOwner.user.id]);
    await removal.commitTransaction();
    await removal.release();
    expect((await session((await signedIn).browser)).organizations[0].role).to.equal("owner");
  });

  it("ends the invitations of a person who loses the role by a change of groups", async () => {
    const sub = account({ groups: ["chiefs"] });
    const { browser } = await signIn();
    const invited = await browser.request(`${service.url}/v1/organizations/${organizations[0]}/invitations`, {
      method: "POST",
      headers: { "content-type": "application/json", origin: service.url },
      body: JSON.stringify({ email: "second-address@example.com", role: "admin" }),
    });
    expect(invited.status).to.equal(201);
    const { link } = (await invited.json()) as { link: string };
    provider.accounts.get(sub)!["groups"] = ["staff"];
    await signIn();
    const body = { token: link.split("#token=")[1], firstName: "Ada", lastName: "Again", passphrase: PASSPHRASE };
    const accepted = await service.rest("POST", "/v1/auth/invitations/accept", { as: null, body });
    expect([accepted.http, accepted.body.status]).to.deep.equal([410, "LINK_EXPIRED"]);
  });

  it("creates no account if that is not switched on", async () => {
    account();
    const { browser, landingUrl } = await signIn("closed");
    expect(landingUrl).to.equal("/studio?sign-in=no-account");
    expect((await browser.request(`${service.url}/v1/auth/session`)).status).to.equal(401);
  });

  it("chooses the organization by the domain of a verified e-mail address, or by a claim; others have no account", async () => {
    const outcomes: [string, Record<string, unknown>, number | string][] = [
      ["domains", { email: "a@second.example" }, 1],
      ["domains", { email: "b@second.example", email_verified: false }, "no-account"],
      ["domains", { email: "c@first.example" }, "no-organization"],
      ["domains", { email: "e@second.example", email_verified: "true" }, 1],
      ["oidc", { email: "f@second.example", email_verified: "false" }, "no-account"],
      ["oidc", { email: "no address" }, "no-account"],
      ["oidc", { email: `${"long".repeat(64)}@second.example` }, "no-account"],
      ["claims", { organization: "second" }, 1],
      ["claims", { organization: ["other", "second"] }, 1],
      ["claims", { email: "d@second.example" }, "no-organization"],
    ];
    for (const [id, claims, expected] of outcomes) {
      account(claims);
      const { browser, landingUrl } = await signIn(id);
      if (typeof expected === "string")
        expect(landingUrl, JSON.stringify(claims)).to.equal(`/studio?sign-in=${expected}`);
      else
        expect((await session(browser)).user.organizationId, JSON.stringify(claims)).to.equal(organizations[expected]);
    }
  });

  it("never signs in to an existing account by its e-mail address", async () => {
    const { email } = await createSignedInPerson(service);
    for (const written of [email, email.toUpperCase()]) {
      account({ email: written });
      expect((await signIn()).landingUrl).to.equal("/studio?sign-in=email-in-use");
    }
  });

  async function person() {
    const made = await createSignedInPerson(service);
    const browser = new RedirectBrowser();
    browser.cookies.set(`${new URL(service.url).host} auth_token`, made.token);
    return { ...made, browser };
  }
  async function startLink(browser: RedirectBrowser, headers: Record<string, string> = { origin: service.url }) {
    const address = `${service.url}/v1/auth/oidc/closed/link`;
    return browser.request(address, {
      method: "POST",
      headers: { ...headers, "content-type": "application/json" },
      // Studio sends the page to return to.
      body: JSON.stringify({ next: "/studio#/account" }),
    });
  }

  it("links an identity from the account's own session, which then signs in; and unlinks it, but never the last way in", async () => {
    const { browser, user } = await person();
    account();
    const { url } = (await (await startLink(browser)).json()) as { url: string };
    expect(await browser.follow(url, isServiceUrl)).to.equal(`${service.url}/studio#/account`);
    const { browser: later } = await signIn("closed");
    expect((await session(later)).user.id).to.equal(user.id);
    expect((await session(later)).organizations).to.not.have.length(0);
    const { identities } = (await (await browser.request(`${service.url}/v1/auth/identities`)).json()) as Json;
    expect(identities).to.have.length(1);
    const remove = () =>
      browser.request(`${service.url}/v1/auth/identities/${identities[0].id}`, {
        method: "DELETE",
        headers: { origin: service.url },
      });
    await service.db.query("UPDATE person SET passphrase_hash = NULL WHERE id = $1", [user.id]);
    expect((await remove()).status).to.equal(400);
    await service.db.query("UPDATE person SET passphrase_hash = 'x' WHERE id = $1", [user.id]);
    expect((await remove()).status).to.equal(200);
    expect((await signIn("closed")).landingUrl).to.equal("/studio?sign-in=no-account");
  });

  it("links no identity if the account's passphrase is reset while the provider's answer is read", async () => {
    const { browser, user } = await person();
    account();
    const { url } = (await (await startLink(browser)).json()) as { url: string };
    const landingUrl = await resetDuring(service, user.id, () => browser.follow(url, isServiceUrl), "person_identity");
    expect(landingUrl).to.equal(`${service.url}/studio?sign-in=failed`);
    expect((await signIn("closed")).landingUrl).to.equal("/studio?sign-in=no-account");
  });

  it("links no identity for a page of another site, for another session, or if another account has the identity", async () => {
    const mine = await person();
    expect((await startLink(mine.browser, { origin: "https://evil.example" })).status).to.equal(403);
    account();
    const { url } = (await (await startLink(mine.browser)).json()) as { url: string };
    const theirs = await person();
    // Copies the cookie of the attacker's sign-in into the victim's browser, as an attack would.
    const flow = [...mine.browser.cookies].find(([key]) => key.endsWith("svc_openid"))!;
    theirs.browser.cookies.set(...flow);
    expect(await theirs.browser.follow(url, isServiceUrl)).to.equal(`${service.url}/studio?sign-in=failed`);
    const again = (await (await startLink(mine.browser)).json()) as { url: string };
    expect(await mine.browser.follow(again.url, isServiceUrl)).to.equal(`${service.url}/studio#/account`);
    const other = (await (await startLink(theirs.browser)).json()) as { url: string };
    signOutAtProvider(theirs.browser);
    expect(await theirs.browser.follow(other.url, isServiceUrl)).to.equal(
      `${service.url}/studio?sign-in=linked-elsewhere`,
    );
  });

  it("accepts a provider's answer only once, in the same browser, with its state, at that provider's address", async () => {
    account();
    const browser = new RedirectBrowser();
    const callback = await browser.follow(startUrlOf("oidc"), (address) => address.includes("/callback?"));
    const followAddress = async (visitor: RedirectBrowser, address: string) =>
      (await visitor.request(address)).headers.get("location");
    const refused = "/studio?sign-in=failed";
    expect(await followAddress(new RedirectBrowser(), callback), "another browser").to.equal(refused);
    const thiefBrowser = new RedirectBrowser();
    await thiefBrowser.follow(startUrlOf("oidc"), (address) => address.startsWith(provider.issuer));
    expect(await followAddress(thiefBrowser, callback), "another flow").to.equal(refused);
    const flows = new Map(browser.cookies);
    const setFlowCookies = () => {
      const copy = new RedirectBrowser();
      for (const entry of flows) copy.cookies.set(...entry);
      return copy;
    };
    expect(await followAddress(setFlowCookies(), callback.replace(/state=[^&]+/, "state=x")), "another state").to.equal(
      refused,
    );
    expect(
      await followAddress(setFlowCookies(), callback.replace("/oidc/oidc/", "/oidc/closed/")),
      "another provider",
    ).to.equal(refused);
    expect(await followAddress(setFlowCookies(), callback), "the right one").to.equal("/studio");
    expect(await followAddress(setFlowCookies(), callback), "a second time").to.equal(refused);
  });

  it("replaces the session of the browser, so that a session from before the sign-in is not valid", async () => {
    account({ groups: ["staff"] });
    const { browser, token } = await person();
    await signIn("oidc", undefined, browser);
    expect((await service.rest("GET", "/v1/auth/session", { as: token })).http).to.equal(401);
    expect((await session(browser)).user.lastName).to.match(/^account-/);
  });

  it("redirects only to paths of this service", async () => {
    account({ groups: ["staff"] });
    for (const next of [
      "https://evil.example",
      "//evil.example",
      "/\\evil.example",
      "/\t/evil.example",
      "/x/..//evil.example",
      "javascript:alert(1)",
      "studio",
      "/%5cevil",
      "",
    ]) {
      const { landingUrl } = await signIn("oidc", next);
      const expected = next === "/%5cevil" ? next : "/studio";
      expect(landingUrl, next).to.equal(expected);
    }
  });

  it("answers 404 for an unknown provider, and 503 for one that does not respond", async () => {
    for (const path of ["start", "callback"]) {
      expect((await service.rest("GET", `/v1/auth/oidc/none/${path}`, { as: null })).http).to.equal(404);
    }
    const { http, body } = await service.rest("GET", "/v1/auth/oidc/gone/start", { as: null });
    expect([http, body.status]).to.deep.equal([503, "OVERLOADED"]);
  });

  it("signing out also names the address at which the browser signs out at the provider", async () => {
    account({ groups: ["staff"] });
    const { browser } = await signIn();
    const out = await browser.request(`${service.url}/v1/auth/sign-out`, {
      method: "POST",
      headers: { origin: service.url },
    });
    const { endSessionUrl } = (await out.json()) as { endSessionUrl: string };
    const url = new URL(endSessionUrl);
    expect(url.origin).to.equal(provider.issuer);
    expect(url.searchParams.get("post_logout_redirect_uri")).to.equal(`${service.url}/studio`);
    expect((await browser.request(endSessionUrl)).status).to.equal(200);
    expect((await browser.request(`${service.url}/v1/auth/session`)).status).to.equal(401);
  });

  // This test must be the last one of the file. It uses up the rate limit of its client address, so later sign-ins would be refused.
  longTest("rejects answers of a provider above the limit of an address, and writes no event for them", async () => {
    const answer = async () =>
      (await fetch(`${service.url}/v1/auth/oidc/oidc/callback?code=x&state=y`, { redirect: "manual" })).status;
    const events = async () =>
      (await rows<{ count: number }>(service.db, "SELECT count(*)::int AS count FROM access_event"))[0]!.count;
    const before = await events();
    // The limit allows further requests over time. So the number of accepted requests varies, and the test ends at the second refusal.
    let [sent, refused] = [0, 0];
    for (; refused < 2 && sent < 5_000; sent += 1) if ((await answer()) === 429) refused += 1;
    expect(refused).to.equal(2);
    expect(await events()).to.equal(before + sent - refused);
  });
});
