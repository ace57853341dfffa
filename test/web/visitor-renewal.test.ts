/** Tests that the client library replaces an ended session of `Svc.init`, unless the page has configured a token or another app. */
import { expect } from "chai";
import { until } from "../harness/until.js";
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

  describe("for two apps, one after the other", () => {
    const sessionKey = (app: number) => `"svc.visitor " + location.origin + "/ ${app}"`;
    const initCode = (app: number) => `Svc.init({ app: ${app}, url: location.origin })`;
    const requestedPaths = () => client.service.received.map(({ path }) => path);

    beforeEach(async () => {
      const expiresAt = new Date(Date.now() + 3_600_000).toISOString();
      for (const app of [1, 2])
        client.service.answers.set(`POST /v1/apps/${app}/visitors`, { body: { token: `of app ${app}`, expiresAt } });
      client.service.answers.set("GET /v3/apps/2/actions", { body: [] });
      await client.open("/client/svc.js");
      await client.run("localStorage.clear()");
    });

    const readUsedToken = async () => {
      await client.run("Svc.App.V3.Actions.get().then(() => 1)");
      const listing = client.service.received.find(({ path }) => path === "/v3/apps/2/actions");
      return listing?.headers["auth-token"];
    };

    it("is the session of the last app if the page calls init for both at once", async () => {
      await client.run(`Promise.all([${initCode(1)}, ${initCode(2)}]).then(() => 1)`);
      expect(await readUsedToken()).to.equal("of app 2");
    });

    it("is the session of the last app if another page starts the first app's session while init waits for it", async () => {
      await client.run(`(async () => {
        const { firstInit } = await navigator.locks.request(${sessionKey(1)}, async () => {
          const firstInit = ${initCode(1)};
          await ${initCode(2)};
          const times = { expiresAt: Date.now() + 3_600_000, renewAt: Date.now() + 1_800_000 };
          localStorage.setItem(${sessionKey(1)}, JSON.stringify({ token: "of another page", ...times }));
          return { firstInit };
        });
        await firstInit;
      })()`);
      expect(await readUsedToken()).to.equal("of app 2");
      expect(requestedPaths()).to.deep.equal(["/v1/apps/2/visitors", "/v3/apps/2/actions"]);
    });

    it("requests no session if the page has called init for another app before the first request was sent", async () => {
      await client.run(`(async () => {
        const { firstInit } = await navigator.locks.request(${sessionKey(1)}, async () => {
          const firstInit = ${initCode(1)};
          await ${initCode(2)};
          return { firstInit };
        });
        await firstInit;
      })()`);
      expect(requestedPaths()).to.deep.equal(["/v1/apps/2/visitors"]);
    });

    it("reconnects the socket only with the session of the last app", async () => {
      const { connectionParams } = client.service.feed;
      await client.run("Svc.App.Triggers.start()");
      await until(() => connectionParams.length === 1);
      const socketUrls = await client.run(`(async () => {
        const socketUrls = [];
        window.WebSocket = class extends WebSocket {
          constructor(url, protocol) {
            super(url, protocol);
            socketUrls.push(url);
          }
        };
        const { secondInit } = await navigator.locks.request(${sessionKey(2)}, async () => {
          const firstInit = ${initCode(1)};
          const secondInit = ${initCode(2)};
          await firstInit;
          return { secondInit };
        });
        await secondInit;
        return socketUrls;
      })()`);
      expect(socketUrls).to.have.length(1);
      await until(() => connectionParams.length === 2);
      expect(connectionParams[1]).to.deep.equal({ authToken: "of app 2" });
    });
  });
});
