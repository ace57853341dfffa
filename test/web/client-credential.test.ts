import { get } from "node:http";
import { expect } from "chai";
import { rejectionCode, useClientPage } from "./client-page.js";

describe("the client library's credential", () => {
  const client = useClientPage();
  const actions = (call: string) => client.run(`Svc.App.V3.Actions.${call}`);
  const rejection = (call: string) => client.run(rejectionCode(`Svc.App.V3.Actions.${call}`));

  it("is a token sent as Auth-token, without the cookie", async () => {
    await client.run(`document.cookie = "auth_token=cookie"; Svc.configure({token: "in-memory"})`);
    await actions("get()");
    const headers = client.service.received[0]?.headers;
    expect(headers?.["auth-token"]).to.equal("in-memory");
    expect(headers?.cookie).to.equal(undefined);
  });

  it("is the cookie if there is no token", async () => {
    await client.run(`document.cookie = "auth_token=cookie"`);
    await actions("get()");
    expect(client.service.received[0]?.headers.cookie).to.contain("auth_token=cookie");
  });

  it("is removed when the library is configured for another host", async () => {
    const cors = { "access-control-allow-origin": client.service.origin, "access-control-allow-credentials": "true" };
    client.elsewhere.answers.set("GET /v3/apps/1/actions", { headers: cors, body: { actions: [], pagination: {} } });
    await client.run(`Svc.configure({token: "in-memory"}); Svc.configure({apiUrl: "${client.elsewhere.origin}"})`);
    await actions("get()");
    expect(client.elsewhere.received).to.have.length(1);
    expect(client.elsewhere.received[0]?.headers["auth-token"]).to.equal(undefined);
  });

  it("stays with its host if window.ENV changes after the library loaded", async () => {
    await client.run(`Svc.configure({token: "in-memory"}); window.ENV.apiUrl = "${client.elsewhere.origin}"`);
    await actions("get()");
    expect([client.service.received.length, client.elsewhere.received.length]).to.deep.equal([1, 0]);
  });

  it("stays with its host: the library follows no redirect", async () => {
    const location = `${client.elsewhere.origin}/v3/apps/1/actions`;
    client.service.answers.set("GET /v3/apps/1/actions", { status: 307, headers: { location } });
    await client.run(`Svc.configure({token: "in-memory"})`);
    expect(await rejection("get()")).to.have.nested.include({ "own.status": "NETWORK_ERROR" });
    expect(client.elsewhere.received).to.deep.equal([]);
  });

  it("is tried at once on the socket, and its rejection is reported, also after another token was rejected", async () => {
    client.service.feed.state.rejectionStatus = "UNAUTHORIZED";
    await client.run(`
      window.rejections = 0;
      Svc.configure({ token: "first" });
      Svc[Symbol.for("svc.connection")].follow(
        "subscription ($appId: Int!) { clientTriggers(appId: $appId) { reset } }",
        () => ({ appId: 1 }),
        { next: () => undefined, refused: () => (rejections += 1) },
      );`);
    await client.page.waitForFunction("rejections === 1");
    await client.run(`Svc.configure({ token: "second" })`);
    await client.page.waitForFunction("rejections === 2");
    expect(client.service.feed.connectionParams).to.deep.equal([{ authToken: "first" }, { authToken: "second" }]);
  });
});

describe("the files of the client library", () => {
  const client = useClientPage();

  it("include an ES module, which defines the same window.Svc", async () => {
    await client.open("/client/svc.mjs");
    const same = await client.run(`import("/client/svc.mjs").then(({Svc}) => Svc === window.Svc)`);
    expect(same).to.equal(true);
  });

  it("include declarations, and are checked for changes at each load", async () => {
    const declarations = await fetch(`${client.service.origin}/client/svc.d.ts`);
    const types = await declarations.text();
    expect(types).to.contain("runWithResult").and.to.contain("export type Trigger =");
    expect(types, "whole by itself").to.not.match(/^import /m);
    expect(declarations.headers.get("content-type")).to.equal("text/plain; charset=utf-8");
    const script = await fetch(`${client.service.origin}/client/svc.js`, { headers: { "accept-encoding": "gzip" } });
    expect(await script.text()).to.contain("Svc");
    expect(script.headers.get("cache-control")).to.equal("no-cache");
    const etag = script.headers.get("etag") ?? "";
    // Uses node:http, because fetch adds a Cache-Control header that prevents a 304 response.
    const status = await new Promise((resolve) =>
      get(
        `${client.service.origin}/client/svc.js`,
        { headers: { "if-none-match": etag, "accept-encoding": "gzip" } },
        (reply) => {
          resolve(reply.resume().statusCode);
        },
      ),
    );
    expect(status).to.equal(304);
  });
});
