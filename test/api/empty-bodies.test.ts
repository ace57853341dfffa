/** Tests that each route without a body rejects fields in a body, and that the rejected request changes nothing. */
import { expect } from "chai";
import { ROUTES } from "../../src/api/rest/routes.js";
import { startTestService, type TestService } from "../harness/service.js";
import { BODY_SAMPLES, fillPath, type Ids, prepareSamples, UNKNOWN } from "./body-samples.js";
import { tableStates } from "./table-states.js";

const BODILESS_ROUTES = ROUTES.filter(({ method }) => method !== "GET")
  .map(({ method, path }) => `${method} ${path.replace(/:(\w+)/g, "{$1}")}`)
  .filter((route) => !(route in BODY_SAMPLES));

/** Routes whose request fails for another reason than the unknown field. For example, the test has no promotion to roll back. */
const ROUTES_WITH_OTHER_ERROR = [
  "POST /v3/apps/{appId}/actions/{id}/rotate-secret",
  "POST /v1/apps/{appId}/promotions/{promotionId}/rollback",
  "DELETE /v1/apps/{appId}/git",
  "PUT /v1/admin/administrators/{userId}",
];

const MESSAGE = `${UNKNOWN} is not a known field; this request needs no fields`;

describe("a body of a route that needs none", () => {
  let service: TestService;
  let ids: Ids;
  let stored: Map<string, string>;

  const sendUnknownField = (method: string, path: string, as: string | null) =>
    service.rest(method, path, { as, body: { [UNKNOWN]: 1 } });
  async function listChangedTables(): Promise<string[]> {
    const states = await tableStates(service);
    const changed = [...states.keys()].filter((table) => states.get(table) !== stored.get(table));
    stored = states;
    return changed;
  }

  before(async () => {
    service = await startTestService({ ROLES: "api" });
    await service.rest("POST", "/v1/apps/1/publish", { as: "admin" });
    ids = await prepareSamples(service);
    const { action, ds, userId, organizationId } = ids;
    const ask = async (method: string, path: string, body: unknown) =>
      (await service.rest(method, path, { as: "admin", body })).body;
    await ask("POST", `/v3/apps/1/actions/${action}/publish`, {});
    await ask("PUT", `/v3/apps/1/actions/${action}/presets/kept`, { any: 1 });
    await ask("PUT", `/v1/apps/1/members/${userId}`, { role: "reader" });
    await ask("POST", `/v1/apps/1/data-sources/${ds}/commit`, { entries: [], append: false });
    const preview = await ask("POST", "/v1/apps/1/stages", { name: "preview", expiresInHours: 1 });
    const invitation = { email: "other@example.com", role: "reader" };
    const invited = await ask("POST", `/v1/organizations/${organizationId}/invitations`, invitation);
    ids = {
      ...{ ...ids, stageAppId: preview.app.id, invitationId: invited.invitation.id },
      tokenId: (await ask("POST", "/v1/apps/1/tokens", { kind: "api" })).id,
      sourceVersion: (await service.rest("GET", `/v1/apps/1/data-sources/${ds}/versions`)).body.versions[0].id,
      actionVersion: (await service.rest("GET", `/v3/apps/1/actions/${action}/versions`)).body.versions[0].id,
    };
    stored = await tableStates(service);
  });
  after(() => service.stop());

  for (const route of BODILESS_ROUTES)
    it(`${route} rejects an unknown field, and changes nothing`, async () => {
      const [method] = route.split(" ") as [string];
      const versionId = route.includes("data-sources") ? ids["sourceVersion"]! : ids["actionVersion"]!;
      const as = /\/auth\//.test(route) ? String(ids["session"]) : route.endsWith("/session") ? "viewer" : "admin";
      const { http, body } = await sendUnknownField(method, fillPath(route, { ...ids, versionId }), as);
      expect(await listChangedTables(), JSON.stringify(body)).to.deep.equal([]);
      if (ROUTES_WITH_OTHER_ERROR.includes(route)) expect(http).to.be.within(400, 499);
      else expect([http, body.error]).to.deep.equal([400, MESSAGE]);
    });

  for (const route of ["POST /v1/session", "DELETE /v1/session"])
    it(`${route} rejects an unknown field, and changes nothing`, async () => {
      const [method, path] = route.split(" ") as [string, string];
      const body = { ...(method === "POST" && { token: service.tokens.editor }), [UNKNOWN]: 1 };
      const answer = await service.rest(method, path, { as: String(ids["session"]), body });
      expect([answer.http, answer.body.error.split(";")[0]]).to.deep.equal([400, `${UNKNOWN} is not a known field`]);
      expect(answer.headers.get("set-cookie")).to.equal(null);
      expect(await listChangedTables()).to.deep.equal([]);
    });

  it("is reported after the permission check and after a missing resource", async () => {
    const path = `/v3/apps/1/actions/${ids["action"]}/publish`;
    expect((await sendUnknownField("POST", path, "live")).body.status).to.equal("FORBIDDEN");
    expect((await sendUnknownField("POST", path, null)).body.status).to.equal("UNAUTHORIZED");
    const missing = await sendUnknownField("POST", "/v3/apps/1/actions/999999/publish", "admin");
    expect(missing.body.status).to.equal("ACTION_NOT_FOUND");
  });

  it("can be empty, null or an object without fields", async () => {
    const path = `/v3/apps/1/actions/${ids["action"]}/publish`;
    for (const body of [undefined, null, {}])
      expect((await service.rest("POST", path, { as: "admin", body })).http, JSON.stringify(body)).to.equal(200);
  });
});
