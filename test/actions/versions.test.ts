/** Tests the version history: its content, its pages and its limit. A failing snapshot never blocks a change. */
import { Writable } from "node:stream";
import { expect } from "chai";
import { pino } from "pino";
import { ActionRow } from "../../src/data/action.js";
import { storeDraftVersion } from "../../src/operations/actions/versions.js";
import { longTest } from "../harness/samples.js";
import { startTestService, type TestService } from "../harness/service.js";
import { API_CLIENTS, type ApiClient, createRestApiClient } from "./api-clients.js";
import { CODE, count, make, newName, publishApp } from "./support.js";

const CODE_2 = "const execute = async (context) => 2;";

/** Makes the database reject every snapshot until the returned function is called. */
async function refuseSnapshots({ db }: TestService): Promise<() => Promise<void>> {
  await db.query(`
    CREATE FUNCTION refuse_snapshot() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no room for versions'; END $$`);
  await db.query("CREATE TRIGGER refuse BEFORE INSERT ON action_version EXECUTE FUNCTION refuse_snapshot()");
  return async () => {
    await db.query("DROP FUNCTION refuse_snapshot CASCADE");
  };
}

describe("versions of an action", () => {
  let service: TestService;

  before(async () => {
    service = await startTestService({ ROLES: "api" });
    await publishApp(service);
  });
  after(() => service.stop());

  for (const [name, createApiClient] of API_CLIENTS) {
    describe(`the version history over ${name}`, () => {
      let apiClient: ApiClient;

      before(() => {
        apiClient = createApiClient(service);
      });

      it("lists summaries as specified, most recent first, with the person who made each", async () => {
        const { id } = await make(apiClient, { description: "one" });
        await apiClient.update(id, { active: true, environment: "any", frequency: "0 9 * * *" });
        const { versions, pagination } = (await apiClient.versions(id)).value;
        const { user, userId, createdAt } = versions[0];
        expect(user).to.deep.equal({
          id: userId,
          firstName: "First",
          lastName: "Editor",
          email: "editor@example.com",
        });
        expect(createdAt).to.equal(new Date(createdAt).toISOString());
        const of = { userId, user, description: "one" };
        expect(
          versions.map(({ id: _, createdAt: __, name: ___, ...rest }: Record<string, unknown>) => rest),
        ).to.deep.equal([
          { ...of, action: "update", active: true, environment: "any", frequency: "0 9 * * *" },
          { ...of, action: "create", active: false, environment: "server", frequency: null },
        ]);
        expect(pagination).to.deep.equal({ limit: 50, offset: 0, total: 2, hasMore: false });
      });

      it("lists the versions that were live, last published first, also after saves and a restore", async () => {
        const { id } = await make(apiClient, { description: "one" });
        const published = async () => {
          const { versions, pagination } = (await apiClient.published(id)).value;
          expect(pagination).to.deep.equal({ limit: 50, offset: 0, total: versions.length, hasMore: false });
          for (const { publishedAt } of versions) expect(publishedAt).to.equal(new Date(publishedAt).toISOString());
          return versions.map(({ description }: Record<string, unknown>) => description);
        };
        expect(await published()).to.deep.equal([]);
        await apiClient.publish(id);
        await apiClient.update(id, { description: "never live" });
        await apiClient.update(id, { description: "two" });
        await apiClient.publish(id);
        await apiClient.update(id, { description: "draft" });
        expect(await published()).to.deep.equal(["two", "one"]);
        const { versions } = (await apiClient.published(id)).value;
        await apiClient.restore(id, versions[1].id);
        await apiClient.publish(id);
        expect(await published()).to.deep.equal(["one", "two"]);
        expect((await apiClient.published(id)).value.versions[0].id).to.equal(versions[1].id);
      });

      it("publishes a restored version without tests if it was live, where the app requires tests", async () => {
        const app = `/v1/apps/${service.appId}`;
        const { id } = await make(apiClient, { description: "live" });
        await apiClient.publish(id);
        await apiClient.update(id, { description: "never live" });
        await apiClient.update(id, { description: "draft" });
        const versions: { id: number; description: string }[] = (await apiClient.versions(id)).value.versions;
        const restore = (wantedDescription: string) =>
          apiClient.restore(id, versions.find(({ description }) => description === wantedDescription)!.id);
        await service.rest("PUT", app, { body: { requiresTests: true } });
        try {
          expect((await apiClient.publish(id)).status).to.equal("TESTS_REQUIRED");
          await restore("never live");
          expect((await apiClient.publish(id)).status).to.equal("TESTS_REQUIRED");
          await restore("live");
          const published = await apiClient.publish(id);
          expect(published.status).to.equal("OK");
          expect(published.value.action.description).to.equal("live");
        } finally {
          await service.rest("PUT", app, { body: { requiresTests: false } });
        }
      });

      it("returns the full configuration as specified", async () => {
        const changes = {
          description: "told",
          triggers: [{ trigger: "analytics", where: { type: "analytics.event", data: { "a\u0000b": "\ud800" } } }],
          environment: "any",
          dependencies: ["svc-csv"],
          timezone: "Europe/Paris",
          integrationOrigins: [],
        };
        const action = await make(apiClient, changes);
        const published = await apiClient.publish(action.id);
        await apiClient.update(action.id, {});
        const [{ id: versionId }] = (await apiClient.versions(action.id)).value.versions;
        const { value } = await apiClient.version(action.id, versionId);
        expect(value).to.have.keys("id", "createdAt", "userId", "user", "data");
        expect(value.data).to.deep.equal({
          ...changes,
          action: "update",
          name: action.name,
          active: false,
          frequency: null,
          functions: [],
          assets: action.assets,
          widgetInstanceIds: [],
          masterTaskId: null,
          productionTaskId: published.value.action.id,
          code: CODE,
          access: "everyone",
          actionVersion: "v3",
        });
      });

      it("keeps the version of a deleted person, with user null", async () => {
        const { id } = await make(apiClient);
        await service.db.query("UPDATE action_version SET person_id = NULL WHERE action_id = $1", [id]);
        const [version] = (await apiClient.versions(id)).value.versions;
        expect(version).to.deep.include({ userId: null, user: null });
        expect((await apiClient.version(id, version.id)).value).to.deep.include({ userId: null, user: null });
      });

      it("has pages of at most 100, and rejects a negative limit", async () => {
        const { id } = await make(apiClient);
        const pagination = async (limit?: number, offset?: number) =>
          (await apiClient.versions(id, limit, offset)).value.pagination;
        expect(await pagination(1_000)).to.deep.equal({ limit: 100, offset: 0, total: 1, hasMore: false });
        expect(await pagination(100)).to.deep.include({ limit: 100 });
        await apiClient.update(id, {});
        expect(await pagination(1)).to.deep.equal({ limit: 1, offset: 0, total: 2, hasMore: true });
        expect(await pagination(1, 1)).to.deep.equal({ limit: 1, offset: 1, total: 2, hasMore: false });
        expect((await apiClient.versions(id, -1)).status).to.equal("REQUEST_INVALID");
      });

      it("rejects a version of another action: VERSION_NOT_FOUND", async () => {
        const [action, otherAction] = [await make(apiClient), await make(apiClient)];
        const [version] = (await apiClient.versions(otherAction.id)).value.versions;
        const answers = [
          await apiClient.version(action.id, version.id),
          await apiClient.restore(action.id, version.id),
        ];
        expect(answers.map(({ status }) => status)).to.deep.equal(["VERSION_NOT_FOUND", "VERSION_NOT_FOUND"]);
        if (apiClient.name === "REST") expect(answers.map(({ http }) => http)).to.deep.equal([404, 404]);
      });

      it("restores the pre-restore version to undo a restore", async () => {
        const made = await make(apiClient);
        const { value: changed } = await apiClient.update(made.id, {
          name: newName("changed"),
          code: CODE_2,
          active: true,
        });
        const [, first] = (await apiClient.versions(made.id)).value.versions;
        const { value: restored } = await apiClient.restore(made.id, first.id);
        expect(restored.action.isPublished).to.equal(false);
        const { value: undone } = await apiClient.restore(made.id, restored.preRestoreVersionId);
        const { isPublished: _, ...action } = undone.action;
        expect(action).to.deep.equal({ ...changed, updatedAt: action.updatedAt });
      });

      it("writes the audit entry appAction.v3.restore with both ids", async () => {
        const { id } = await make(apiClient);
        const [first] = (await apiClient.versions(id)).value.versions;
        const { value } = await apiClient.restore(id, first.id);
        const [entry] = await service.db.query(
          "SELECT type, data, person_id FROM audit_entry WHERE action_id = $1 ORDER BY id DESC LIMIT 1",
          [id],
        );
        expect(entry).to.deep.equal({
          type: "appAction.v3.restore",
          data: { restoredFromVersionId: first.id, preRestoreVersionId: value.preRestoreVersionId },
          person_id: first.userId,
        });
      });

      it("does not block changes: create, update and restore succeed if no snapshot can be stored", async () => {
        const { id } = await make(apiClient);
        const [first] = (await apiClient.versions(id)).value.versions;
        const allowSnapshots = await refuseSnapshots(service);
        try {
          const created = await apiClient.create({ name: newName(), code: CODE });
          expect(created.status).to.equal("OK");
          expect((await apiClient.versions(created.value.id)).value.versions).to.deep.equal([]);
          expect((await apiClient.update(id, { code: CODE_2 })).value.code).to.equal(CODE_2);
          const { status, value } = await apiClient.restore(id, first.id);
          expect(status).to.equal("OK");
          expect(value).to.deep.include({ restoredFromVersionId: first.id, preRestoreVersionId: null });
          expect(value.action.code).to.equal(CODE);
        } finally {
          await allowSnapshots();
        }
        expect((await apiClient.get(id)).value.code).to.equal(CODE);
      });

      it("compares a version with the draft, with another version and with the live version", async () => {
        const { id } = await make(apiClient, { description: "one" });
        await apiClient.publish(id);
        await apiClient.update(id, { description: "two", active: true, code: CODE.replace("return 1", "return 2") });
        const [second, first] = (await apiClient.versions(id)).value.versions;
        const changes = [
          { field: "description", before: "one", after: "two" },
          { field: "active", before: false, after: true },
        ];
        const { value: diffToMaster } = await apiClient.versionDiff(id, first.id);
        expect(diffToMaster).to.deep.include({ from: first.id, to: "master", changes });
        expect(diffToMaster.code).to.equal(
          [
            `--- version ${first.id}`,
            "+++ master",
            "@@ -1,3 +1,3 @@",
            " async function execute(context) {",
            "-  return 1;",
            "+  return 2;",
            " }",
            "\\ No newline at end of file",
            "",
          ].join("\n"),
        );
        const { value: diffToVersion } = await apiClient.versionDiff(id, first.id, second.id);
        expect(diffToVersion).to.deep.include({ from: first.id, to: second.id, changes });
        const { value: diffToProduction } = await apiClient.versionDiff(id, first.id, "production");
        expect(diffToProduction).to.deep.equal({ from: first.id, to: "production", changes: [], code: null });
        const { value: copies } = await apiClient.diff(id);
        expect(copies).to.deep.include({ from: "production", to: "master", changes });
        expect(copies.code).to.include("-  return 1;\n+  return 2;");
      });

      it("rejects comparisons with versions that do not exist", async () => {
        const { id } = await make(apiClient);
        const [version] = (await apiClient.versions(id)).value.versions;
        const statuses = await Promise.all([
          apiClient.versionDiff(id, version.id, "nothing"),
          apiClient.versionDiff(id, version.id, 2_000_000_000),
          apiClient.versionDiff(id, version.id, "production"),
          apiClient.diff(id),
          apiClient.diff(2_000_000_000),
        ]);
        expect(statuses.map(({ status }) => status)).to.deep.equal([
          "REQUEST_INVALID",
          "VERSION_NOT_FOUND",
          "ACTION_NOT_PUBLISHED",
          "ACTION_NOT_PUBLISHED",
          "ACTION_NOT_FOUND",
        ]);
      });
    });
  }

  describe("the maximum length of the version history", () => {
    longTest("keeps the newest 100 of each action, also with many concurrent writers", async () => {
      const apiClient = createRestApiClient(service);
      const [action, otherAction] = [await make(apiClient), await make(apiClient)];
      // Sends at most 40 requests at a time: a service under load rejects some of 180 requests that arrive at once.
      for (let first = 0; first < 120; first += 20) {
        const turns = Array.from({ length: 20 }, (_, at) => first + at);
        const updates = turns.flatMap((turn) => [
          apiClient.update(action.id, { description: `${turn}` }),
          ...(turn < 60 ? [apiClient.update(otherAction.id, {})] : []),
        ]);
        for (const { error } of await Promise.all(updates)) expect(error).to.equal(undefined);
      }
      const { value } = await apiClient.versions(action.id, 100);
      expect(value.pagination.total).to.equal(100);
      expect(value.versions[0].description).to.equal((await apiClient.get(action.id)).value.description);
      expect(await count(service, "audit_entry", "action_id = $1", [action.id])).to.equal(121);
      const ids = await service.db.query(
        "SELECT count(*) AS newer FROM action_version WHERE action_id = $1 AND id > $2",
        [action.id, value.versions[99].id],
      );
      expect(ids).to.deep.equal([{ newer: 99 }]);
      expect((await apiClient.versions(otherAction.id)).value.pagination.total).to.equal(61);
    });

    it("lists the live version after a restore of the oldest version, which the restore displaces", async () => {
      const apiClient = createRestApiClient(service);
      const { id } = await make(apiClient, { description: "first" });
      await service.db.query(
        `INSERT INTO action_version (action_id, summary, data, state)
           SELECT action_id, summary, data, 'other'::bytea FROM action_version, generate_series(1, 98) WHERE action_id = $1`,
        [id],
      );
      await apiClient.update(id, { description: "draft" });
      const oldest = (await apiClient.versions(id, 100)).value.versions[99].id;
      expect((await apiClient.restore(id, oldest)).error).to.equal(undefined);
      await apiClient.publish(id);
      const { versions } = (await apiClient.published(id)).value;
      expect(versions.map(({ description, action }: Record<string, unknown>) => [description, action])).to.deep.equal([
        ["first", "update"],
      ]);
      expect((await apiClient.versions(id)).value.pagination.total).to.equal(100);
      await apiClient.publish(id);
      expect((await apiClient.published(id)).value.versions.map((version: { id: number }) => version.id)).to.deep.equal(
        [versions[0].id],
      );
    });

    it("publishes the oldest version again without tests, although its restore displaces it", async () => {
      const apiClient = createRestApiClient(service);
      const app = `/v1/apps/${service.appId}`;
      const { id } = await make(apiClient, { description: "first" });
      await apiClient.publish(id);
      await service.db.query(
        `INSERT INTO action_version (action_id, summary, data, state)
           SELECT action_id, summary, data, 'other'::bytea FROM action_version, generate_series(1, 98) WHERE action_id = $1`,
        [id],
      );
      await apiClient.update(id, { description: "draft" });
      const oldest = (await apiClient.versions(id, 100)).value.versions[99].id;
      await service.rest("PUT", app, { body: { requiresTests: true } });
      try {
        await apiClient.restore(id, oldest);
        expect((await apiClient.publish(id)).status).to.equal("OK");
      } finally {
        await service.rest("PUT", app, { body: { requiresTests: false } });
      }
      expect((await apiClient.versions(id)).value.pagination.total).to.equal(100);
    });

    it("logs a failed snapshot without the code", async () => {
      const { id } = await make(createRestApiClient(service));
      const lines: string[] = [];
      const write = (line: Buffer, _: string, done: () => void) => {
        lines.push(String(line));
        done();
      };
      const log = pino(new Writable({ write }));
      const allowAgain = await refuseSnapshots(service);
      const snapshotId = await service.db.transaction(async (manager) => {
        const row = await manager.findOneByOrFail(ActionRow, { id });
        return storeDraftVersion(manager, log, row, { occasion: "update", personId: null });
      });
      await allowAgain();
      expect(snapshotId).to.equal(null);
      expect(lines).to.have.length(1);
      expect(JSON.parse(lines[0]!)).to.deep.include({
        level: 50,
        actionId: id,
        occasion: "update",
        reason: "no room for versions",
      });
      expect(lines[0]).to.not.include("async function");
    });
  });
});
