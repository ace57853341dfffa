/** Tests each row of the specification's "States and transitions" that does not concern runs, over REST and GraphQL. */
import { expect } from "chai";
import type { TestService } from "../harness/service.js";
import { useSharedService } from "../harness/shared-service.js";
import { API_CLIENTS, type ApiClient } from "./api-clients.js";
import { CODE, count, make, newName, publishApp, validAction } from "./support.js";

const CODE_2 = "const execute = async (context) => 2;";

describe("the table of states", () => {
  let service: TestService;

  before(async () => {
    service = await useSharedService("api");
  });
  after(() => service.stop());

  for (const [name, createApiClient] of API_CLIENTS) {
    describe(`states and transitions of an action over ${name}`, () => {
      let apiClient: ApiClient;

      before(() => {
        apiClient = createApiClient(service);
      });

      const setAppPublished = (published: boolean) =>
        service.rest("POST", `/v1/apps/${service.appId}/${published ? "publish" : "unpublish"}`);
      const auditOccasions = async (id: number) => {
        const { value } = await apiClient.versions(id);
        return value.versions.map(({ action }: { action: string }) => action);
      };

      beforeEach(() => publishApp(service));

      it("create: an unpublished draft, inactive by default, with a snapshot `create`", async () => {
        const action = await make(apiClient);
        expect(action).to.deep.include({
          appId: service.appId,
          description: null,
          active: false,
          environment: "server",
          actionVersion: "v3",
          triggers: [],
          dependencies: [],
          assets: [],
          frequency: null,
          timezone: null,
          integrationOrigins: [],
          lastRunAt: null,
        });
        expect(action).to.not.have.property("masterId");
        expect((await make(apiClient, { active: true })).active).to.equal(true);
        expect((await apiClient.unpublish(action.id)).status).to.equal("ACTION_NOT_PUBLISHED");
        expect(await auditOccasions(action.id)).to.deep.equal(["create"]);
      });

      it("update: the draft changes, omitted properties and the live version stay, with a snapshot `update`", async () => {
        const made = await make(apiClient, {
          description: "one",
          triggers: [{ trigger: "manual" }],
          timezone: "Europe/Paris",
        });
        const { value: published } = await apiClient.publish(made.id);
        const { value: updated } = await apiClient.update(made.id, { code: CODE_2 });
        expect(updated).to.deep.equal({ ...made, code: CODE_2, updatedAt: updated.updatedAt });
        expect((await apiClient.get(published.action.id)).value.code).to.equal(CODE);
        expect(await auditOccasions(made.id)).to.deep.equal(["update", "create"]);
      });

      for (const [title, description] of [
        ["null", null],
        ["the empty string", ""],
      ] as const) {
        it(`update: ${title} clears the description`, async () => {
          const { id } = await make(apiClient, { description: "one" });
          expect((await apiClient.update(id, { description })).value.description).to.equal(null);
        });
      }

      it("update with active false: inactive, so that runs are rejected", async () => {
        const { id } = await make(apiClient, { active: true, triggers: [{ trigger: "manual" }] });
        expect((await apiClient.run(id)).status).to.equal("OK");
        expect((await apiClient.update(id, { active: false })).value.active).to.equal(false);
        expect((await apiClient.run(id)).status).to.equal("ACTION_INACTIVE");
        expect((await apiClient.runWithResult(id)).status).to.equal("ACTION_INACTIVE");
      });

      it("publish an unpublished draft: a live version with its own ID", async () => {
        const master = await make(apiClient, { active: true, description: "told", dependencies: ["svc-csv"] });
        const { status, value } = await apiClient.publish(master.id);
        expect(status).to.equal("OK");
        const { id, createdAt, updatedAt } = value.action;
        expect(id).to.not.equal(master.id);
        expect(value.action).to.deep.equal({ ...master, id, createdAt, updatedAt });
        expect((await apiClient.get(id)).value).to.deep.equal(value.action);
      });

      it("publish while the app is not published: APP_NOT_PUBLISHED, unchanged", async () => {
        const { id } = await make(apiClient);
        await setAppPublished(false);
        expect((await apiClient.publish(id)).status).to.equal("APP_NOT_PUBLISHED");
        expect((await apiClient.unpublish(id)).status).to.equal("ACTION_NOT_PUBLISHED");
      });

      it("publish again: the draft replaces the live version, which keeps its ID", async () => {
        const { id } = await make(apiClient);
        const { value: first } = await apiClient.publish(id);
        await apiClient.update(id, { name: newName("renamed"), code: CODE_2, active: true });
        const { value: second } = await apiClient.publish(id);
        const { value: master } = await apiClient.get(id);
        expect(second.action.id).to.equal(first.action.id);
        expect(second.action.createdAt).to.equal(first.action.createdAt);
        expect(second.action).to.deep.include({ name: master.name, code: CODE_2, active: true });
      });

      it("publish again while the app is not published: APP_NOT_PUBLISHED, the live version is unchanged", async () => {
        const { id } = await make(apiClient);
        const { value: first } = await apiClient.publish(id);
        await apiClient.update(id, { code: CODE_2 });
        await setAppPublished(false);
        expect((await apiClient.publish(id)).status).to.equal("APP_NOT_PUBLISHED");
        expect((await apiClient.get(first.action.id)).value).to.deep.equal(first.action);
      });

      it("run by a live token while the app is not published: APP_NOT_PUBLISHED, no run; other callers can run it, and live tokens after publication", async () => {
        const { id, name: action } = await make(apiClient, { active: true, triggers: [{ trigger: "manual" }] });
        await apiClient.publish(id);
        await setAppPublished(false);
        const runs = () => count(service, "run", "app_id = $1", [service.appId]);
        const before = await runs();
        for (const nameOrId of [id, action]) {
          expect((await apiClient.run(nameOrId, {}, { as: "live" })).status).to.equal("APP_NOT_PUBLISHED");
          expect((await apiClient.runWithResult(nameOrId, {}, { as: "live" })).status).to.equal("APP_NOT_PUBLISHED");
          const keyedCall = { as: "live", headers: { "idempotency-key": `${nameOrId}` } };
          expect((await apiClient.run(nameOrId, {}, keyedCall)).status).to.equal("APP_NOT_PUBLISHED");
        }
        expect(await runs()).to.equal(before);
        expect((await apiClient.run("absent", {}, { as: "live" })).status).to.equal("ACTION_NOT_FOUND");
        for (const as of ["api", "viewer"]) expect((await apiClient.run(id, {}, { as })).status).to.equal("OK");
        await setAppPublished(true);
        expect((await apiClient.run(id, {}, { as: "live" })).status).to.equal("OK");
      });

      it("publish under a name that another action's live version still has: NAME_ALREADY_EXISTS, unchanged", async () => {
        const older = await make(apiClient);
        await apiClient.publish(older.id);
        await apiClient.update(older.id, { name: newName("renamed") });
        const newer = await make(apiClient, { name: older.name });
        expect((await apiClient.publish(newer.id)).status).to.equal("NAME_ALREADY_EXISTS");
        expect((await apiClient.unpublish(newer.id)).status).to.equal("ACTION_NOT_PUBLISHED");
        await apiClient.publish(older.id);
        expect((await apiClient.publish(newer.id)).status).to.equal("OK");
      });

      it("unpublish: the live version is gone, the draft stays", async () => {
        const { id } = await make(apiClient);
        const { value } = await apiClient.publish(id);
        expect((await apiClient.unpublish(id)).status).to.equal("OK");
        expect((await apiClient.get(value.action.id)).status).to.equal("ACTION_NOT_FOUND");
        expect((await apiClient.get(id)).status).to.equal("OK");
      });

      it("run of an unpublished draft: ACTION_NOT_FOUND; a visitor gets no hint that it exists", async () => {
        const { id, name: named } = await make(apiClient, { active: true, triggers: [{ trigger: "manual" }] });
        const error = "the app has no action with this ID or name, or the action is not published";
        for (const verb of ["run", "runWithResult"]) {
          for (const ref of [named, id, newName("missing")]) {
            for (const as of ["api", "live"] as const) {
              const path = `/v3/apps/${service.appId}/actions/${ref}/${verb}`;
              const { http, body } = await service.rest("POST", path, { as, body: {} });
              expect({ http, error: body.error }).to.deep.equal({ http: 404, error });
              expect(body.status).to.equal("ACTION_NOT_FOUND");
            }
          }
        }
      });

      it("unpublish an unpublished draft: ACTION_NOT_PUBLISHED", async () => {
        const { id } = await make(apiClient);
        expect((await apiClient.unpublish(id)).status).to.equal("ACTION_NOT_PUBLISHED");
      });

      it("remove: the draft, its live version and its history are gone", async () => {
        const { id } = await make(apiClient);
        const { value } = await apiClient.publish(id);
        await apiClient.update(id, { active: true });
        expect((await apiClient.remove(id)).status).to.equal("OK");
        for (const gone of [id, value.action.id])
          expect((await apiClient.get(gone)).status).to.equal("ACTION_NOT_FOUND");
        expect((await apiClient.versions(id)).status).to.equal("ACTION_NOT_FOUND");
        expect(await count(service, "action_version", "action_id = $1", [id])).to.equal(0);
      });

      it("restore: the snapshot's configuration, with a snapshot `pre-restore` of the former one; the links stay", async () => {
        const before = await make(apiClient, { description: "one", dependencies: ["svc-csv"] });
        const { value: production } = await apiClient.publish(before.id);
        await apiClient.update(before.id, { ...validAction(), code: CODE_2, description: null, dependencies: [] });
        const [, first] = (await apiClient.versions(before.id)).value.versions;
        const { status, value } = await apiClient.restore(before.id, first.id);
        expect(status).to.equal("OK");
        const { updatedAt } = value.action;
        expect(value.action).to.deep.equal({ ...before, updatedAt, isPublished: true });
        expect(value.restoredFromVersionId).to.equal(first.id);
        expect(await auditOccasions(before.id)).to.deep.equal(["pre-restore", "update", "create"]);
        const { value: preRestore } = await apiClient.version(before.id, value.preRestoreVersionId);
        expect(preRestore.data).to.deep.include({ action: "pre-restore", code: CODE_2, description: null });
        expect((await apiClient.publish(before.id)).value.action.id).to.equal(production.action.id);
      });

      it("restore under a name that is used by now: NAME_ALREADY_EXISTS, nothing changed", async () => {
        const made = await make(apiClient);
        await apiClient.update(made.id, { name: newName("renamed") });
        await make(apiClient, { name: made.name });
        const [, first] = (await apiClient.versions(made.id)).value.versions;
        const { value: was } = await apiClient.get(made.id);
        const refused = await apiClient.restore(made.id, first.id);
        expect(refused.status).to.equal("NAME_ALREADY_EXISTS");
        if (apiClient.name === "REST") expect(refused.http).to.equal(409);
        expect((await apiClient.get(made.id)).value).to.deep.equal(was);
        expect(await auditOccasions(made.id)).to.deep.equal(["update", "create"]);
      });

      it("schedules only the live version: from publish to unpublish, unaffected by update and restore", async () => {
        const scheduled = { active: true, triggers: [{ trigger: "schedule" }], frequency: "0 9 * * *" };
        const { id } = await make(apiClient, scheduled);
        const frequencies = async () => {
          const sql =
            "SELECT schedule.frequency FROM schedule JOIN action ON action.id = action_id WHERE $1 IN (action.id, master_id)";
          return (await service.db.query(sql, [id])).map(({ frequency }: { frequency: string }) => frequency);
        };
        expect(await frequencies()).to.deep.equal([]);
        await apiClient.publish(id);
        expect(await frequencies()).to.deep.equal(["0 9 * * *"]);
        await apiClient.update(id, { frequency: "30 9 * * *" });
        const [, first] = (await apiClient.versions(id)).value.versions;
        expect(await frequencies()).to.deep.equal(["0 9 * * *"]);
        await apiClient.publish(id);
        expect(await frequencies()).to.deep.equal(["30 9 * * *"]);
        await apiClient.restore(id, first.id);
        expect(await frequencies()).to.deep.equal(["30 9 * * *"]);
        await apiClient.publish(id);
        expect(await frequencies()).to.deep.equal(["0 9 * * *"]);
        await apiClient.unpublish(id);
        expect(await frequencies()).to.deep.equal([]);
      });

      const OPERATIONS_ON_LIVE_VERSION: [
        string,
        string,
        (id: number, versionId: number) => Promise<{ status: string }>,
      ][] = [
        ["update", "CANNOT_UPDATE_PRODUCTION", (id) => apiClient.update(id, { active: true })],
        ["remove", "CANNOT_DELETE_PRODUCTION", (id) => apiClient.remove(id)],
        ["restore", "CANNOT_RESTORE_PRODUCTION", (id, versionId) => apiClient.restore(id, versionId)],
        ["publish", "CANNOT_UPDATE_PRODUCTION", (id) => apiClient.publish(id)],
        ["unpublish", "CANNOT_UPDATE_PRODUCTION", (id) => apiClient.unpublish(id)],
      ];
      for (const [verb, status, attempt] of OPERATIONS_ON_LIVE_VERSION) {
        it(`${verb} of a live version: ${status}, unchanged`, async () => {
          const { id } = await make(apiClient);
          const { value } = await apiClient.publish(id);
          const [version] = (await apiClient.versions(id)).value.versions;
          expect((await attempt(value.action.id, version.id)).status).to.equal(status);
          expect((await apiClient.get(value.action.id)).value).to.deep.equal(value.action);
        });
      }
    });
  }
});
