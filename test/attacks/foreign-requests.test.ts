/** A cookie counts for the service's own pages, and for a person who follows a link: for no request of any other page, whatever it says. */
import { request } from "node:http";
import { expect } from "chai";
import { startTestService, type TestService } from "../harness/service.js";

describe("A signed-in person's cookie", () => {
  let service: TestService;
  before(async () => {
    service = await startTestService({ ROLES: "api" });
  });
  after(() => service.stop());

  /** fetch names itself in the headers that are tried here. */
  function send(method: string, path: string, headers: Record<string, string>, body = ""): Promise<number> {
    const cookie = `auth_token=${service.tokens.admin}`;
    const type = body === "" ? {} : { "content-type": "application/json" };
    return new Promise((resolve, reject) => {
      const sent = request(service.url + path, { method, headers: { cookie, ...type, ...headers } }, (reply) =>
        resolve(reply.resume().statusCode ?? 0),
      );
      sent.on("error", reject).end(body);
    });
  }
  const USER = JSON.stringify({ firstName: "E", lastName: "V", email: "e@v.example" });
  const read = (headers: Record<string, string>) => send("GET", "/v1/apps", headers);
  const write = (headers: Record<string, string>) => send("POST", "/v1/admin/users", headers, USER);
  const people = async () => (await service.db.query("SELECT count(*) AS count FROM person"))[0].count;

  const FOREIGN: [string, Record<string, string>][] = [
    ["a sandboxed document", { origin: "null", "sec-fetch-site": "cross-site", "sec-fetch-mode": "cors" }],
    ["a sandboxed document of an old browser", { origin: "null" }],
    ["another site", { origin: "https://evil.example", "sec-fetch-site": "cross-site", "sec-fetch-mode": "cors" }],
    ["another site, without an origin", { "sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors" }],
    ["another port or sub-domain of this host", { "sec-fetch-site": "same-site", "sec-fetch-mode": "cors" }],
  ];
  for (const [who, headers] of FOREIGN) {
    it(`neither reads nor writes for ${who}`, async () => {
      const before = await people();
      expect([await read(headers), await write(headers)]).to.deep.equal([401, 403]);
      expect(await people()).to.equal(before);
    });
  }

  it("does not write where a form of another site is sent as a navigation", async () => {
    const before = await people();
    const form = { origin: "null", "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate" };
    expect(await write(form)).to.equal(403);
    expect(await people()).to.equal(before);
  });

  it("signs nobody in or out for another site", async () => {
    const headers = { origin: "null", "sec-fetch-site": "cross-site" };
    expect(await send("DELETE", "/v1/session", headers)).to.equal(403);
    expect(await send("POST", "/v1/session", headers, JSON.stringify({ token: service.tokens.live }))).to.equal(403);
  });

  it("opens a page that a link from elsewhere leads to", async () => {
    const headers = { "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", accept: "text/html" };
    expect(await send("GET", `/apps/${service.appId}/viewer`, headers)).to.equal(200);
  });

  it("counts for the service's own pages, also behind a proxy that does not pass the host on", async () => {
    const own = { origin: "https://actions.example.com", "sec-fetch-site": "same-origin", "sec-fetch-mode": "cors" };
    expect([await read(own), await write(own)]).to.deep.equal([200, 201]);
  });

  it("reads no script of an action for a worker", async () => {
    const body = { name: "a", code: "async function execute() {}" };
    const { id } = (await service.rest("POST", `/v3/apps/${service.appId}/actions`, { body })).body.action;
    const path = `/v3/apps/${service.appId}/actions/${id}/compile`;
    const same = { "sec-fetch-site": "same-origin" };
    expect(await send("GET", path, same)).to.equal(200);
    expect(await send("GET", path, { ...same, "service-worker": "script" })).to.equal(403);
  });
});
