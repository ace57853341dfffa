/** Tests that the client library replaces an ended session of `Svc.init`, unless the page has configured a token or another app. */
import { expect } from "chai";
import { useClientPage } from "./client-page.js";

const VISITORS_PATH = "/v1/apps/1/visitors";

describe("the session of Svc.init", () => {
  const client = useClientPage({ isOpened: false });

  const startSession = async () => {
    const expiresAt = new Date(Date.now() + 3_600_000).toISOString();
    client.service.answers.set(`POST ${VISITORS_PATH}`, { body: { token: "first", expiresAt } });
    await client.open("/client/svc.js");
    await client.run(`localStorage.clear(); Svc.init({ app: 1, url: location.origin }).then(() => 1)`);
    client.service.answers.set(`POST ${VISITORS_PATH}`, { body: { token: "second", expiresAt } });
    const rejection = { status: 401, body: { status: "UNAUTHORIZED", error: "the session has ended" } };
    client.service.answers.set("GET /v3/apps/1/actions", rejection);
    client.service.answers.set("GET /v3/apps/2/actions", rejection);
  };
  /** Sends a request that the service rejects, because the token has ended. Returns how often the page has requested a session so far. */
  const countSessions = async () => {
    expect(await client.run("Svc.App.V3.Actions.get().catch(({ status }) => status)")).to.equal("UNAUTHORIZED");
    return client.service.received.filter(({ path }) => path === VISITORS_PATH).length;
  };

  for (const [name, configuration] of [
    ["no value", "{}"],
    ["the same service and app", "{ apiUrl: location.origin + '/', appId: 1 }"],
  ] as const)
    it(`goes on if the page configures ${name}`, async () => {
      await startSession();
      await client.run(`Svc.configure(${configuration})`);
      expect(await countSessions()).to.equal(2);
    });

  for (const [name, configuration] of [
    ["a token", "{ token: 'editor' }"],
    ["no token", "{ token: null }"],
    ["another app", "{ appId: 2 }"],
  ] as const)
    it(`ends if the page configures ${name}`, async () => {
      await startSession();
      await client.run(`Svc.configure(${configuration})`);
      expect(await countSessions()).to.equal(1);
    });

  it("is the session of the last app if the page calls init for two apps at once", async () => {
    const expiresAt = new Date(Date.now() + 3_600_000).toISOString();
    for (const app of [1, 2])
      client.service.answers.set(`POST /v1/apps/${app}/visitors`, { body: { token: `of app ${app}`, expiresAt } });
    client.service.answers.set("GET /v3/apps/2/actions", { body: [] });
    await client.open("/client/svc.js");
    await client.run(
      `localStorage.clear(); Promise.all([1, 2].map((app) => Svc.init({ app, url: location.origin }))).then(() => 1)`,
    );
    await client.run("Svc.App.V3.Actions.get().then(() => 1)");
    const listing = client.service.received.find(({ path }) => path === "/v3/apps/2/actions");
    expect(listing?.headers["auth-token"]).to.equal("of app 2");
  });
});
