/** Tests every row of the specification's two tables of errors over REST and GraphQL, and that no row is missing. */
import { expect } from "chai";
import { STATUS, type Status } from "../../src/errors.js";
import { sampleOf } from "../harness/samples.js";
import { startTestService, type TestService } from "../harness/service.js";
import { API_CLIENTS, type ApiClient, createRestApiClient, type Outcome } from "./api-clients.js";
import { CODE, insertLegacy, make, newName, publishApp, validAction } from "./support.js";

/** Errors of validation: status, condition, and the invalid fields. A test merges these fields into a valid action. */
const VALIDATION_ERRORS: [Status, string, Record<string, unknown>][] = [
  ["NAME_REQUIRED", "name missing", { name: null }],
  ["NAME_EMPTY", "name empty", { name: "" }],
  ["NAME_TOO_LONG", "name over 255 characters", { name: "a".repeat(256) }],
  ["NAME_INVALID_CHARS", "name with a space", { name: "two words" }],
  ["NAME_ALREADY_EXISTS", "name used by another action of the app", { name: "taken" }],
  [
    "NAME_ALREADY_EXISTS",
    "name used, and later faults beside it",
    { name: "taken", description: "a".repeat(1001), code: "" },
  ],
  ["DESCRIPTION_INVALID", "description not a string", { description: 1 }],
  ["DESCRIPTION_TOO_LONG", "description over 1000 characters", { description: "a".repeat(1001) }],
  ["CODE_REQUIRED", "code missing", { code: null }],
  ["CODE_EMPTY", "code empty", { code: "" }],
  ["CODE_VALIDATION_FAILED", "no execute", { code: "async function other(context) {}" }],
  ["CODE_VALIDATION_FAILED", "execute not async", { code: "function execute(context) {}" }],
  ["CODE_VALIDATION_FAILED", "a package not listed", { code: CODE.replace("1", "Svc.CSV") }],
  ["ENVIRONMENT_INVALID", "no environment of the three", { environment: "browser" }],
  ["FREQUENCY_INVALID", "no cron expression", { frequency: "daily" }],
  ["FREQUENCY_TOO_FREQUENT", "every minute", { frequency: "* * * * *" }],
  ["TIMEZONE_INVALID", "no IANA time zone", { timezone: "Mars/Olympus" }],
  ["TRIGGERS_INVALID", "triggers not an array", { triggers: {} }],
  ["TRIGGERS_INVALID", "a log trigger without where", { triggers: [{ trigger: "log" }] }],
  ["TRIGGERS_INVALID", "no trigger object", { triggers: [null] }],
  ["TRIGGER_TYPE_INVALID", "no trigger of any kind", { triggers: [{}] }],
  ["TRIGGER_TYPE_INVALID", "no trigger of the four", { triggers: [{ trigger: "webhook" }] }],
  [
    "TRIGGER_NOT_ALLOWED",
    "analytics on server",
    { environment: "server", triggers: [{ trigger: "analytics", where: { type: "analytics.event" } }] },
  ],
  ["TRIGGER_NOT_ALLOWED", "schedule on client", { environment: "client", triggers: [{ trigger: "schedule" }] }],
  [
    "TRIGGER_NOT_ALLOWED",
    "log on client",
    { environment: "client", triggers: [{ trigger: "log", where: { type: "app.view" } }] },
  ],
  ["DEPENDENCIES_INVALID", "dependencies not an array of strings", { dependencies: [1] }],
  ["DEPENDENCY_UNRESOLVED", "an unknown package", { dependencies: ["svc-nothing"] }],
];

/** Expected status over GraphQL if a field has the wrong type. GraphQL rejects most such fields before the service's own rules run. */
const STATUS_OF_TYPE_FAULTS: Record<string, Status> = {
  "description not a string": "REQUEST_INVALID",
  "no environment of the three": "REQUEST_INVALID",
  "triggers not an array": "TRIGGER_TYPE_INVALID",
  "no trigger of the four": "REQUEST_INVALID",
  "dependencies not an array of strings": "REQUEST_INVALID",
};

const UNKNOWN_ID = 2_000_000_000;
const MANUAL_TRIGGERS = [{ trigger: "manual" }];

const OPERATIONS_ON_ONE_ACTION: Record<string, (apiClient: ApiClient, id: number) => Promise<Outcome>> = {
  getById: (apiClient, id) => apiClient.get(id),
  update: (apiClient, id) => apiClient.update(id, { active: true }),
  remove: (apiClient, id) => apiClient.remove(id),
  publish: (apiClient, id) => apiClient.publish(id),
  unpublish: (apiClient, id) => apiClient.unpublish(id),
  "list versions": (apiClient, id) => apiClient.versions(id),
  "get version": (apiClient, id) => apiClient.version(id, 1),
  "restore version": (apiClient, id) => apiClient.restore(id, 1),
  "compare versions": (apiClient, id) => apiClient.versionDiff(id, 1),
  "compare copies": (apiClient, id) => apiClient.diff(id),
  run: (apiClient, id) => apiClient.run(id),
  runWithResult: (apiClient, id) => apiClient.runWithResult(id),
};

const OPERATIONAL_ERRORS: [Status, string, (apiClient: ApiClient, service: TestService) => Promise<Outcome>][] = [
  ...Object.entries(OPERATIONS_ON_ONE_ACTION).flatMap(([verb, ask]): typeof OPERATIONAL_ERRORS => [
    ["ACTION_NOT_FOUND", `${verb} of an id that no action has`, (apiClient) => ask(apiClient, UNKNOWN_ID)],
    [
      "ACTION_NOT_V3",
      `${verb} of a legacy V2 action`,
      async (apiClient, service) => ask(apiClient, await insertLegacy(service)),
    ],
  ]),
  ["ACTION_NOT_FOUND", "run of a name that no action has", (apiClient) => apiClient.run("missing-action")],
  [
    "ACTION_NOT_FOUND",
    "runWithResult of a name that no action has",
    (apiClient) => apiClient.runWithResult("missing-action"),
  ],
  [
    "ACTION_NOT_V3",
    "run of a legacy V2 action by its name",
    async (apiClient, service) => {
      const name = newName("legacy");
      await insertLegacy(service, name);
      return apiClient.run(name);
    },
  ],
  [
    "VERSION_NOT_FOUND",
    "retrieving a version that the action has not",
    async (apiClient) => apiClient.version((await make(apiClient)).id, UNKNOWN_ID),
  ],
  [
    "VERSION_NOT_FOUND",
    "restoring a version that the action has not",
    async (apiClient) => apiClient.restore((await make(apiClient)).id, UNKNOWN_ID),
  ],
  [
    "CANNOT_UPDATE_PRODUCTION",
    "update of a production action",
    async (apiClient) => apiClient.update(await production(apiClient), {}),
  ],
  [
    "CANNOT_DELETE_PRODUCTION",
    "remove of a production action",
    async (apiClient) => apiClient.remove(await production(apiClient)),
  ],
  [
    "CANNOT_RESTORE_PRODUCTION",
    "restore of a production action",
    async (apiClient) => apiClient.restore(await production(apiClient), 1),
  ],
  [
    "CLIENT_ACTION_NOT_RUNNABLE",
    "run on a client-only action",
    async (apiClient) =>
      apiClient.run((await make(apiClient, { environment: "client", active: true, triggers: MANUAL_TRIGGERS })).id),
  ],
  [
    "CLIENT_ACTION_NOT_RUNNABLE",
    "runWithResult on a client-only action",
    async (apiClient) =>
      apiClient.runWithResult((await make(apiClient, { environment: "client", triggers: MANUAL_TRIGGERS })).id),
  ],
  [
    "ACTION_INACTIVE",
    "run on an inactive action",
    async (apiClient) => apiClient.run((await make(apiClient, { triggers: MANUAL_TRIGGERS })).id),
  ],
  [
    "ACTION_INACTIVE",
    "runWithResult on an inactive action",
    async (apiClient) => apiClient.runWithResult((await make(apiClient, { triggers: MANUAL_TRIGGERS })).name),
  ],
  [
    "TRIGGER_NOT_ALLOWED",
    "run on an action without a manual trigger",
    async (apiClient) => apiClient.run((await make(apiClient, { active: true })).id),
  ],
  [
    "APP_NOT_PUBLISHED",
    "publish while the app is unpublished",
    async (apiClient, service) => {
      const { id } = await make(apiClient);
      await service.rest("POST", `/v1/apps/${service.appId}/unpublish`);
      return apiClient.publish(id);
    },
  ],
  [
    "TESTS_REQUIRED",
    "publish without tests where the app requires them",
    async (apiClient, service) => {
      const { id } = await make(apiClient);
      const app = `/v1/apps/${service.appId}`;
      await service.rest("PUT", app, { body: { requiresTests: true } });
      const refused = await apiClient.publish(id);
      const tested = await service.rest("POST", `/v3/apps/${service.appId}/actions/${id}/publish?tested=true`);
      expect(tested.http).to.equal(200);
      await service.rest("PUT", app, { body: { requiresTests: false } });
      return refused;
    },
  ],
  [
    "ACTION_NOT_PUBLISHED",
    "unpublish of an unpublished action",
    async (apiClient) => apiClient.unpublish((await make(apiClient)).id),
  ],
  [
    "EXECUTION_FAILED",
    "runtime error in execute",
    async (apiClient) => {
      const code = "async function execute(context) { throw new TypeError('no such thing'); }";
      return apiClient.runWithResult((await make(apiClient, { code, active: true, triggers: MANUAL_TRIGGERS })).id);
    },
  ],
  [
    "PUBLISH_FAILED",
    "publish failed",
    async (apiClient, service) => {
      const { id } = await make(apiClient);
      return whileWritesFail(service, () => apiClient.publish(id));
    },
  ],
  [
    "RESTORE_FAILED",
    "restore failed",
    async (apiClient, service) => {
      const { id } = await make(apiClient);
      const [version] = (await apiClient.versions(id)).value.versions;
      return whileWritesFail(service, () => apiClient.restore(id, version.id));
    },
  ],
  [
    "RESTORE_FAILED",
    "restore of a version that needs a package which left the catalogue",
    async (apiClient, service) => {
      const { id } = await make(apiClient, { dependencies: ["svc-csv"] });
      const [version] = (await apiClient.versions(id)).value.versions;
      const sql = "UPDATE action_version SET data = replace(data::text, 'svc-csv', 'svc-gone')::json WHERE id = $1";
      await service.db.query(sql, [version.id]);
      return apiClient.restore(id, version.id);
    },
  ],
];

async function production(apiClient: ApiClient): Promise<number> {
  return (await apiClient.publish((await make(apiClient)).id)).value.action.id;
}

/** Runs `work` while the database rejects each audit entry, the last write of an operation. All earlier writes must then be rolled back. */
async function whileWritesFail({ db }: TestService, work: () => Promise<Outcome>): Promise<Outcome> {
  const rowsOf = async () => db.query("SELECT * FROM action ORDER BY id");
  const versions = async () => db.query("SELECT id FROM action_version ORDER BY id");
  const before = [await rowsOf(), await versions()];
  await db.query(`CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'disk gone'; END $$`);
  await db.query("CREATE TRIGGER fail BEFORE INSERT ON audit_entry EXECUTE FUNCTION fail()");
  try {
    return await work();
  } finally {
    await db.query("DROP FUNCTION fail CASCADE");
    expect([await rowsOf(), await versions()], "nothing is half-written").to.deep.equal(before);
  }
}

describe("the specification's tables of errors", () => {
  let service: TestService;

  before(async () => {
    service = await startTestService({ ROLES: "api,runner", RUNNER_CONCURRENCY: "2" });
    await service.rest("POST", `/v3/apps/${service.appId}/actions`, { body: validAction({ name: "taken" }) });
  });
  after(() => service.stop());

  beforeEach(() => publishApp(service));

  function expectRefused(
    apiClient: ApiClient,
    status: Status,
    { status: received, error, http, value }: Outcome,
  ): void {
    expect(received).to.equal(status);
    expect(error)
      .to.be.a("string")
      .that.does.not.match(/\n\s+at |SELECT|INSERT|\/src\/|disk gone/);
    if (apiClient.name !== "REST") return;
    expect(http).to.equal(STATUS[status].http);
    expect(value).to.include.keys("status", "error");
  }

  for (const [index, [name, createApiClient]] of API_CLIENTS.entries()) {
    for (const [specifiedStatus, condition, fault] of sampleOf(VALIDATION_ERRORS, index, 2)) {
      const status = (name === "GraphQL" && STATUS_OF_TYPE_FAULTS[condition]) || specifiedStatus;
      it(`create over ${name}: ${status} for ${condition}`, async () => {
        const apiClient = createApiClient(service);
        expectRefused(apiClient, status, await apiClient.create(validAction(fault)));
      });

      it(`update over ${name}: ${status} for ${condition}, unchanged`, async () => {
        const apiClient = createApiClient(service);
        const made = await make(apiClient);
        expectRefused(apiClient, status, await apiClient.update(made.id, fault));
        expect((await apiClient.get(made.id)).value).to.deep.equal(made);
      });
    }

    for (const [status, condition, attempt] of sampleOf(OPERATIONAL_ERRORS, index, 2)) {
      it(`over ${name}: ${status} for ${condition}`, async () => {
        const apiClient = createApiClient(service);
        expectRefused(apiClient, status, await attempt(apiClient, service));
      });
    }
  }

  for (const id of ["0", "-1", "1.5", "abc", "9007199254740993", "1e3", "%00", "null"]) {
    it(`over REST: an ID in a path that is no positive integer gets 404: ${id}`, async () => {
      const { rest, appId } = service;
      const actions = `/v3/apps/${appId}/actions`;
      const made = await make(createRestApiClient(service));
      const answers = [
        await rest("GET", `${actions}/${id}`),
        await rest("PUT", `${actions}/${id}`, { body: {} }),
        await rest("POST", `${actions}/${id}/publish`),
        await rest("GET", `${actions}/${id}/versions`),
      ];
      expect(answers.map(({ body }) => body.status)).to.deep.equal(answers.map(() => "ACTION_NOT_FOUND"));
      const versions = [
        await rest("GET", `${actions}/${made.id}/versions/${id}`),
        await rest("POST", `${actions}/${made.id}/versions/${id}/restore`),
      ];
      expect(versions.map(({ body }) => body.status)).to.deep.equal(versions.map(() => "VERSION_NOT_FOUND"));
    });
  }

  it("each have a test above for every row", () => {
    const named = Object.keys(STATUS);
    const validation = named.slice(0, named.indexOf("DEPENDENCIES_INVALID") + 1);
    const operationalStatuses = [
      ...["ACTION_NOT_FOUND", "ACTION_NOT_V3", "VERSION_NOT_FOUND", "CANNOT_UPDATE_PRODUCTION"],
      ...["CANNOT_DELETE_PRODUCTION", "CANNOT_RESTORE_PRODUCTION", "CLIENT_ACTION_NOT_RUNNABLE", "ACTION_INACTIVE"],
      ...["APP_NOT_PUBLISHED", "ACTION_NOT_PUBLISHED", "EXECUTION_FAILED", "PUBLISH_FAILED", "RESTORE_FAILED"],
    ];
    expect(VALIDATION_ERRORS.map(([status]) => status)).to.include.members(validation);
    expect(OPERATIONAL_ERRORS.map(([status]) => status)).to.include.members(operationalStatuses);
  });
});
