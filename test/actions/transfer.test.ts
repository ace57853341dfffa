/** Tests export and import of an app as one document: the imported app equals the exported one, and a faulty document imports nothing. */
import { expect } from "chai";
import { NO_RUN_LIMITS } from "../../src/rules/action-input.js";
import { startTestService, type TestService } from "../harness/service.js";
import { API_CLIENTS, type ApiClient } from "./api-clients.js";
import { CODE, insertLegacy, publishApp, validAction } from "./support.js";

const FORMAT = "svc-app-actions/1";

const nightly = {
  name: "nightly",
  code: CODE,
  description: "each night",
  active: true,
  environment: "any",
  triggers: [{ trigger: "schedule" }, { trigger: "log", where: { type: "app.view" } }],
  dependencies: ["svc-csv"],
  frequency: "0 3 * * *",
  timezone: "Europe/Paris",
  integrationOrigins: [],
  access: "everyone" as const,
  ...NO_RUN_LIMITS,
};
const plain = {
  name: "plain",
  code: CODE,
  description: null,
  active: false,
  environment: "server",
  triggers: [],
  dependencies: [],
  frequency: null,
  timezone: null,
  integrationOrigins: [],
  access: "everyone" as const,
  ...NO_RUN_LIMITS,
};

describe("export and import of an app", () => {
  let service: TestService;

  before(async () => {
    service = await startTestService({ ROLES: "api" });
    await publishApp(service);
  });
  after(() => service.stop());

  for (const [name, createApiClient] of API_CLIENTS) {
    describe(`export and import over ${name}`, () => {
      let apiClient: ApiClient;

      before(() => {
        apiClient = createApiClient(service);
      });
      afterEach(() => service.db.query("DELETE FROM action"));

      const names = async () =>
        (await apiClient.list()).value.actions.map((action: { name: string }) => action.name).sort();
      const report = (changes: object) => ({
        dryRun: false,
        created: [],
        updated: [],
        unchanged: [],
        faults: [],
        ...changes,
      });
      const importReport = async (document: unknown, dryRun?: boolean) => {
        const { status: _, ...rest } = (await apiClient.import(document, dryRun)).value;
        return rest;
      };

      it("exports drafts by name, without IDs, times, assets, live versions or legacy actions", async () => {
        await apiClient.create(plain);
        await apiClient.create(nightly);
        await apiClient.publish((await apiClient.list()).value.actions[0].id);
        await insertLegacy(service);
        expect((await apiClient.export()).value).to.deep.equal({ format: FORMAT, actions: [nightly, plain] });
      });

      it("imports an export completely into an empty app, and changes nothing the second time", async () => {
        const document = { format: FORMAT, actions: [nightly, plain] };
        expect(await importReport(document)).to.deep.equal(report({ created: ["nightly", "plain"] }));
        const { value: exported } = await apiClient.export();
        expect(exported).to.deep.equal(document);
        const before = (await apiClient.list()).value;
        expect(await importReport(exported)).to.deep.equal(report({ unchanged: ["nightly", "plain"] }));
        expect((await apiClient.list()).value).to.deep.equal(before);
      });

      it("updates actions by name, keeps omitted properties, and changes no other action", async () => {
        for (const action of [nightly, plain]) await apiClient.create(action);
        await apiClient.create({ ...plain, name: "other" });
        const document = { format: FORMAT, actions: [{ name: "nightly", active: false, description: "" }, plain] };
        expect(await importReport(document)).to.deep.equal(
          report({ updated: [{ name: "nightly", fields: ["description", "active"] }], unchanged: ["plain"] }),
        );
        const { actions } = (await apiClient.export()).value;
        expect(actions).to.deep.equal(
          [{ ...nightly, active: false, description: null }, { ...plain, name: "other" }, plain].sort((a, b) =>
            a.name < b.name ? -1 : 1,
          ),
        );
        const id = (await apiClient.list()).value.actions.find(
          (action: { name: string }) => action.name === "nightly",
        ).id;
        expect((await apiClient.versions(id)).value.versions[0].action).to.equal("update");
      });

      it("lists the changes and errors in a dry run, and writes nothing", async () => {
        await apiClient.create(plain);
        const legacy = await insertLegacy(service, "old");
        const actions = [
          nightly,
          { ...plain, active: true },
          { name: "bad", code: "" },
          { ...plain, name: "old" },
          null,
          plain,
        ];
        const { faults, ...rest } = await importReport({ format: FORMAT, actions }, true);
        expect(rest).to.deep.equal({
          dryRun: true,
          created: ["nightly"],
          updated: [{ name: "plain", fields: ["active"] }],
          unchanged: [],
        });
        expect(faults.map(({ error: _, ...fault }: { error: string }) => fault)).to.deep.equal([
          { index: 2, name: "bad", status: "CODE_EMPTY" },
          { index: 3, name: "old", status: "ACTION_NOT_V3" },
          { index: 4, name: null, status: "REQUEST_INVALID" },
          { index: 5, name: "plain", status: "NAME_ALREADY_EXISTS" },
        ]);
        expect(await names()).to.deep.equal(["plain"]);
        expect((await apiClient.export()).value.actions).to.deep.equal([plain]);
        expect(legacy).to.be.a("number");
      });

      it("imports nothing if one action is invalid, and lists every error", async () => {
        await apiClient.create(plain);
        const actions = [
          nightly,
          { ...plain, active: true },
          { name: "a b", code: CODE },
          { ...validAction(), timezone: "Mars" },
        ];
        const { status, error, value } = await apiClient.import({ format: FORMAT, actions });
        expect(status).to.equal("REQUEST_INVALID");
        expect(error).to.include("2 of 4").and.to.include("name must be");
        expect(value.faults.map((fault: { status: string }) => fault.status)).to.deep.equal([
          "NAME_INVALID_CHARS",
          "TIMEZONE_INVALID",
        ]);
        expect((await apiClient.export()).value.actions).to.deep.equal([plain]);
      });

      for (const [title, document] of [
        ["nothing", undefined],
        ["null", null],
        ["an array", []],
        ["no format", { actions: [] }],
        ["another format", { format: "svc-app-actions/2", actions: [] }],
        ["no actions", { format: FORMAT }],
        ["actions that are no array", { format: FORMAT, actions: {} }],
      ] as const) {
        it(`rejects ${title} as a document`, async () => {
          expect((await apiClient.import(document)).status).to.equal("REQUEST_INVALID");
        });
      }
    });
  }

  describe("the dryRun parameter over REST", () => {
    it("must be true or false: any other value imports nothing", async () => {
      const path = `/v3/apps/${service.appId}/actions/import?dryRun=`;
      for (const dryRunText of ["yes", "1", "TRUE", ""]) {
        const { body } = await service.rest("POST", path + dryRunText, { body: { format: FORMAT, actions: [plain] } });
        expect(body.status).to.equal("REQUEST_INVALID");
      }
      const { body } = await service.rest("GET", `/v3/apps/${service.appId}/actions`);
      expect(body.actions).to.deep.equal([]);
    });
  });
});
