/** Requests of server actions to other services, from end to end: the origins of an action, and what its code may send. */
import { expect } from "chai";
import { startTestService, type TestService } from "../harness/service.js";

const ECHO = "async function execute({ payload }) { return payload; }";
const MANUAL = { active: true, triggers: [{ trigger: "manual" }] };

describe("requests of server actions", () => {
  let service: TestService;
  let actions: string;

  before(async () => {
    service = await startTestService({ ALLOW_PRIVATE_NETWORK: "1" });
    actions = `/v3/apps/${service.appId}/actions`;
    await service.rest("POST", `/v1/apps/${service.appId}/publish`);
  });
  after(() => service.stop());

  async function create(name: string, fields: object = {}): Promise<number> {
    const { http, body } = await service.rest("POST", actions, { body: { name, code: ECHO, ...MANUAL, ...fields } });
    expect([http, body.status], JSON.stringify(body)).to.deep.equal([201, "ACTION_CREATED"]);
    return body.action.id;
  }

  describe("integrationOrigins", () => {
    it("is [] unless set, stored in normal form, published, exported, versioned and compared", async () => {
      const id = await create("plain");
      const get = async () => (await service.rest("GET", `${actions}/${id}`)).body.action;
      expect(await get()).to.deep.include({ integrationOrigins: [] });
      const origins = ["https://API.Example.com:443/", "http://localhost:8080"];
      const normal = ["https://api.example.com", "http://localhost:8080"];
      const put = await service.rest("PUT", `${actions}/${id}`, { body: { integrationOrigins: origins } });
      expect(put.body.action).to.deep.include({ integrationOrigins: normal });
      const published = await service.rest("POST", `${actions}/${id}/publish`);
      expect(published.body.action).to.deep.include({ integrationOrigins: normal });

      await service.rest("PUT", `${actions}/${id}`, { body: { integrationOrigins: [normal[0]] } });
      const { diff } = (await service.rest("GET", `${actions}/${id}/diff`)).body;
      expect(diff.changes).to.deep.equal([{ field: "integrationOrigins", before: normal, after: [normal[0]] }]);
      const document = (await service.rest("GET", `${actions}/export`)).body;
      const exported = document.actions.find(({ name }: { name: string }) => name === "plain");
      expect(exported.integrationOrigins).to.deep.equal([normal[0]]);
      const imported = { ...document, actions: [{ ...exported, integrationOrigins: normal }] };
      const report = await service.rest("POST", `${actions}/import`, { body: imported });
      expect(report.body.updated).to.deep.equal([{ name: "plain", fields: ["integrationOrigins"] }]);

      const { versions } = (await service.rest("GET", `${actions}/${id}/versions`)).body;
      const [newest, , second, first] = versions as { id: number }[];
      const version = await service.rest("GET", `${actions}/${id}/versions/${newest!.id}`);
      expect(version.body.version.data.integrationOrigins).to.deep.equal(normal);
      const restored = await service.rest("POST", `${actions}/${id}/versions/${second!.id}/restore`);
      expect(restored.body.action.integrationOrigins).to.deep.equal(normal);
      // A snapshot of a release without the field.
      await service.db.query(
        "UPDATE action_version SET data = (data::jsonb - 'integrationOrigins')::json WHERE id = $1",
        [first!.id],
      );
      const compared = await service.rest("GET", `${actions}/${id}/versions/${first!.id}/diff?against=master`);
      expect(compared.body.diff.changes).to.deep.equal([{ field: "integrationOrigins", before: [], after: normal }]);
      const { data } =
        await service.graphql(`{ actionVersion(appId: ${service.appId}, actionId: ${id}, versionId: ${first!.id})
        { data { integrationOrigins } } }`);
      expect(data.actionVersion.data.integrationOrigins).to.deep.equal([]);
      await service.rest("POST", `${actions}/${id}/versions/${first!.id}/restore`);
      expect((await get()).integrationOrigins).to.deep.equal([]);
    });

    it("is refused with its own status, after the specification's and before unknown fields", async () => {
      const wrong = { integrationOrigins: ["ftp://x"] };
      for (const [status, fields] of [
        ["INTEGRATION_ORIGINS_INVALID", wrong],
        ["INTEGRATION_ORIGINS_INVALID", { integrationOrigins: ["https://a.example"], environment: "client" }],
        ["INTEGRATION_ORIGINS_INVALID", { ...wrong, nmae: "x" }],
        ["DEPENDENCIES_INVALID", { ...wrong, dependencies: 1 }],
        ["NAME_ALREADY_EXISTS", { ...wrong, name: "plain" }],
      ] as const) {
        const body = { name: "refused", code: ECHO, ...fields };
        const { http, body: answer } = await service.rest("POST", actions, { body });
        expect([answer.status, http]).to.deep.equal([status, status === "NAME_ALREADY_EXISTS" ? 409 : 400]);
      }
      const { errors } = await service.graphql(`mutation { createAction(appId: ${service.appId}, data:
        { name: "refused", code: "${ECHO}", integrationOrigins: ["https://a.example/v1"] }) { id } }`);
      expect(errors?.[0].extensions.status).to.equal("INTEGRATION_ORIGINS_INVALID");
      const id = await create("becomes-client", { integrationOrigins: ["https://a.example"] });
      const changed = await service.rest("PUT", `${actions}/${id}`, { body: { environment: "any" } });
      expect(changed.body.status).to.equal("INTEGRATION_ORIGINS_INVALID");
    });
  });
});
