/** Tests the audit log: each successful write to actions, versions and publication adds one entry; refused writes add none. */
import { expect } from "chai";
import { startTestService, type TestService } from "../harness/service.js";
import { API_CLIENTS } from "./api-clients.js";
import { count, make, newName, publishApp, validAction } from "./support.js";

describe("the audit log of actions", () => {
  let service: TestService;

  before(async () => {
    service = await startTestService({ ROLES: "api" });
    await publishApp(service);
  });
  after(() => service.stop());

  for (const [name, createApiClient] of API_CLIENTS) {
    it(`has every write over ${name}: who, what and when, never the code`, async () => {
      const apiClient = createApiClient(service);
      const { id, name: first } = await make(apiClient);
      const renamed = newName("renamed");
      await apiClient.update(id, {
        name: renamed,
        description: "told",
        code: "const execute = async (secretly) => 2;",
      });
      const { value: published } = await apiClient.publish(id);
      const productionId = published.action.id;
      const [, version] = (await apiClient.versions(id)).value.versions;
      const { value: restored } = await apiClient.restore(id, version.id);
      await apiClient.unpublish(id);
      await apiClient.remove(id);
      const entries: { type: string; data: object; person: string; kind: string; recent: boolean }[] =
        await service.db.query(
          `SELECT type, data, person.last_name AS person, credential.kind,
                  audit_entry.created_at > now() - interval '1 minute' AS recent
             FROM audit_entry JOIN person ON person.id = audit_entry.person_id
             JOIN credential ON credential.id = credential_id
            WHERE audit_entry.action_id = $1 ORDER BY audit_entry.id`,
          [id],
        );
      const by = { person: "Editor", kind: "editor", recent: true };
      const ids = { restoredFromVersionId: version.id, preRestoreVersionId: restored.preRestoreVersionId };
      expect(entries).to.deep.equal([
        { ...by, type: "appAction.v3.create", data: { name: first } },
        { ...by, type: "appAction.v3.update", data: { fields: ["name", "code", "description"] } },
        { ...by, type: "appAction.v3.publish", data: { name: renamed, productionId } },
        { ...by, type: "appAction.v3.restore", data: ids },
        { ...by, type: "appAction.v3.unpublish", data: { name: first, productionId } },
        { ...by, type: "appAction.v3.remove", data: { name: first } },
      ]);
    });

    it(`has each action of an import over ${name}, and nothing of a dry run`, async () => {
      const apiClient = createApiClient(service);
      const known = await make(apiClient);
      const actions = [validAction(), { name: known.name, active: true }];
      const before = await count(service, "audit_entry", "true", []);
      await apiClient.import({ format: "svc-app-actions/1", actions }, true);
      expect(await count(service, "audit_entry", "true", [])).to.equal(before);
      await apiClient.import({ format: "svc-app-actions/1", actions });
      const types: { type: string }[] = await service.db.query("SELECT type FROM audit_entry ORDER BY id DESC LIMIT 2");
      expect(types.map(({ type }) => type)).to.have.members(["appAction.v3.update", "appAction.v3.create"]);
      expect(await count(service, "audit_entry", "true", [])).to.equal(before + 2);
    });

    it(`has no entry for rejected writes over ${name}`, async () => {
      const apiClient = createApiClient(service);
      const { id } = await make(apiClient);
      const before = await count(service, "audit_entry", "true", []);
      await apiClient.create(validAction({ code: "" }));
      await apiClient.update(id, { name: "" });
      await apiClient.unpublish(id);
      await apiClient.restore(id, 2_000_000_000);
      expect(await count(service, "audit_entry", "true", [])).to.equal(before);
    });
  }
});
