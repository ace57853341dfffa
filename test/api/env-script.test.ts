/** Tests GET /v1/apps/:id/env.js: access, content and caching. */
import { runInNewContext } from "node:vm";
import { expect } from "chai";
import { type Answer, startTestService, type TestService } from "../harness/service.js";

describe("env.js", () => {
  let service: TestService;
  let path: string;
  before(async () => {
    service = await startTestService({ ROLES: "api" });
    path = `/v1/apps/${service.appId}/env.js`;
    const body = { feature: { _nested: 1 }, _private: "CANARY", __protected: "CANARY" };
    await service.rest("POST", `/v1/apps/${service.appId}/settings`, { body });
  });
  after(() => service.stop());

  function envOf({ body }: Answer): Record<string, unknown> {
    const window: { ENV?: Record<string, unknown> } = {};
    runInNewContext(body, { window });
    return JSON.parse(JSON.stringify(window.ENV));
  }

  it("gives a runtime token its environment, with public settings only", async () => {
    for (const as of ["viewer", "live"] as const) {
      const answer = await service.rest("GET", path, { as });
      expect(answer.http).to.equal(200);
      expect(envOf(answer)).to.deep.equal({
        appId: service.appId,
        apiUrl: service.url,
        environment: as,
        appSettings: { feature: { _nested: 1 } },
        clientTimeoutMs: 30_000,
        session: {
          appId: service.appId,
          user: { id: 3, firstName: "First", lastName: "App User", email: "app.user@example.com" },
          environment: as === "live" ? "production" : "master",
        },
      });
      expect(answer.body).not.to.include("CANARY");
      const { data } = await service.graphql(
        `{ runtimeEnv(appId: ${service.appId}) { appId apiUrl environment appSettings clientTimeoutMs session { appId user { id firstName lastName email } environment } } }`,
        {},
        { as },
      );
      expect(data.runtimeEnv).to.deep.equal(envOf(answer));
    }
  });

  it("is cached only by the browser, and no other origin may include it", async () => {
    const { headers } = await service.rest("GET", path, { as: "live" });
    expect(headers.get("content-type")).to.equal("text/javascript; charset=utf-8");
    expect(headers.get("cache-control")).to.equal("private, no-cache");
    expect(headers.get("x-content-type-options")).to.equal("nosniff");
    expect(headers.get("cross-origin-resource-policy")).to.equal("same-origin");
    expect(headers.get("vary"))
      .to.match(/Auth-Token/)
      .and.match(/Authorization/)
      .and.match(/Cookie/);
  });

  it("returns 304 to a visitor if nothing changed, also by cookie, and shows a change at once", async () => {
    const first = await service.rest("GET", path, { as: "live" });
    const etag = first.headers.get("etag")!;
    const cookie = { cookie: `auth_token=${service.tokens.live}` };
    for (const tag of [etag, `W/${etag}`, `"other", ${etag}`, "*"]) {
      const again = await service.rest("GET", path, { as: null, headers: { ...cookie, "if-none-match": tag } });
      expect([again.http, again.body, again.headers.get("etag")]).to.deep.equal([304, "", etag]);
    }
    const change = { body: { feature: 2 } };
    await service.rest("POST", `/v1/apps/${service.appId}/settings`, change);
    const changed = await service.rest("GET", path, { as: "live", headers: { "if-none-match": etag } });
    expect([changed.http, envOf(changed)["appSettings"]]).to.deep.equal([200, { feature: 2 }]);
  });

  it("gives editors the environment of the viewer, with public settings only", async () => {
    for (const as of ["editor", "admin"] as const) {
      const answer = await service.rest("GET", path, { as });
      expect([answer.http, envOf(answer)["environment"]]).to.deep.equal([200, "viewer"]);
      expect(answer.body).not.to.include("CANARY");
    }
  });

  it("is only for the app's users and editors", async () => {
    expect((await service.rest("GET", path, { as: null })).http).to.equal(401);
    expect((await service.rest("GET", path, { as: "api" })).http).to.equal(403);
    expect((await service.rest("GET", "/v1/apps/999/env.js", { as: "editor" })).http).to.equal(403);
    expect((await service.rest("GET", "/v1/apps/999/env.js", { as: "live" })).http).to.equal(403);
  });

  describe("from another origin", () => {
    const foreign: Record<string, string>[] = [{ "sec-fetch-site": "cross-site" }, { origin: "https://shop.example" }];
    before(() => service.rest("POST", `/v1/apps/${service.appId}/publish`));

    it("contains the public settings of a published app, and ignores the visitor's cookie", async () => {
      for (const headers of foreign) {
        const cookie = `auth_token=${service.tokens.editor}`;
        for (const sent of [headers, { ...headers, cookie }]) {
          const answer = await service.rest("GET", path, { as: null, headers: sent });
          expect(answer.http).to.equal(200);
          expect(envOf(answer)).to.deep.equal({
            appId: service.appId,
            apiUrl: service.url,
            environment: "live",
            appSettings: { feature: 2 },
            clientTimeoutMs: 30_000,
          });
          expect(answer.headers.get("cross-origin-resource-policy")).to.equal("cross-origin");
          expect(answer.headers.get("vary")).to.match(/Origin, Sec-Fetch-Site/);
        }
      }
    });

    it("is valid again for a visitor's session as soon as the app is published again", async () => {
      const app = `/v1/apps/${service.appId}`;
      const headers = { origin: "https://shop.example" };
      await service.rest("PUT", `${app}/origins`, { body: { origins: [headers.origin] } });
      const { body: visitor } = await service.rest("POST", `${app}/visitors`, { as: null, headers });
      const readSession = async () => (await service.rest("GET", `${app}/session`, { as: visitor.token })).http;
      expect(await readSession()).to.equal(200);
      await service.rest("POST", `${app}/unpublish`);
      expect(await readSession()).to.equal(401);
      await service.rest("POST", `${app}/publish`);
      expect(await readSession()).to.equal(200);
      const { body: renewed } = await service.rest("POST", `${app}/visitors`, { as: visitor.token, headers });
      expect(renewed.token).to.equal(visitor.token);
    });

    it("does not reveal whether an unpublished app exists", async () => {
      await service.rest("POST", `/v1/apps/${service.appId}/unpublish`);
      for (const headers of foreign) {
        const refused = await service.rest("GET", path, { as: null, headers });
        const unknown = await service.rest("GET", "/v1/apps/999/env.js", { as: null, headers });
        expect([refused.http, refused.body]).to.deep.equal([401, unknown.body]);
      }
    });
  });
});
