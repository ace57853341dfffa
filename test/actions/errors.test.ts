/** Every row of the specification's two tables of errors, over REST and GraphQL; one test checks that no row is missing. */
import { expect } from "chai";
import { STATUS, type Status } from "../../src/errors.js";
import { sampleOf } from "../harness/samples.js";
import { startTestService, type TestService } from "../harness/service.js";
import { API_CLIENTS, type ApiClient, createRestApiClient, type Outcome } from "./exits.js";
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

/** Status of the conditions whose invalid field has the wrong GraphQL type: GraphQL rejects them before a rule of the service runs. */
const STATUS_OF_TYPE_FAULTS: Record<string, Status> = {
  "description not a string": "REQUEST_INVALID",
  "no environment of the three": "REQUEST_INVALID",
  "triggers not an array": "TRIGGER_TYPE_INVALID",
  "no trigger of the four": "REQUEST_INVALID",
  "dependencies not an array of strings": "REQUEST_INVALID",
};

const UNKNOWN_ID = 2_000_000_000;
const MANUAL_TRIGGERS = [{ trigger: "manual" }];

/** All operations that take the ID of one action. */
const OPERATIONS_ON_ONE_ACTION: Record<string, (exit: ApiClient, id: number) => Promise<Outcome>> = {
  getById: (exit, id) => exit.get(id),
  update: (exit, id) => exit.update(id, { active: true }),
  remove: (exit, id) => exit.remove(id),
  publish: (exit, id) => exit.publish(id),
  unpublish: (exit, id) => exit.unpublish(id),
  "list versions": (exit, id) => exit.versions(id),
  "get version": (exit, id) => exit.version(id, 1),
  "restore version": (exit, id) => exit.restore(id, 1),
  "compare versions": (exit, id) => exit.versionDiff(id, 1),
  "compare copies": (exit, id) => exit.diff(id),
  run: (exit, id) => exit.run(id),
  runWithResult: (exit, id) => exit.runWithResult(id),
};

const OPERATIONAL_ERRORS: [Status, string, (exit: ApiClient, service: TestService) => Promise<Outcome>][] = [
  ...Object.entries(OPERATIONS_ON_ONE_ACTION).flatMap(([verb, ask]): typeof OPERATIONAL_ERRORS => [
    ["ACTION_NOT_FOUND", `${verb} of an id that no action has`, (exit) => ask(exit, UNKNOWN_ID)],
    ["ACTION_NOT_V3", `${verb} of a legacy V2 action`, async (exit, service) => ask(exit, await insertLegacy(service))],
  ]),
  ["ACTION_NOT_FOUND", "run of a name that no action has", (exit) => exit.run("nobody")],
  ["ACTION_NOT_FOUND", "runWithResult of a name that no action has", (exit) => exit.runWithResult("nobody")],
  [
    "ACTION_NOT_V3",
    "run of a legacy V2 action by its name",
    async (exit, service) => {
      const name = newName("legacy");
      await insertLegacy(service, name);
      return exit.run(name);
    },
  ],
  [
    "VERSION_NOT_FOUND",
    "retrieving a version that the action has not",
    async (exit) => exit.version((await make(exit)).id, UNKNOWN_ID),
  ],
  [
    "VERSION_NOT_FOUND",
    "restoring a version that the action has not",
    async (exit) => exit.restore((await make(exit)).id, UNKNOWN_ID),
  ],
  [
    "CANNOT_UPDATE_PRODUCTION",
    "update of a production action",
    async (exit) => exit.update(await production(exit), {}),
  ],
  ["CANNOT_DELETE_PRODUCTION", "remove of a production action", async (exit) => exit.remove(await production(exit))],
  [
    "CANNOT_RESTORE_PRODUCTION",
    "restore of a production action",
    async (exit) => exit.restore(await production(exit), 1),
  ],
  [
    "CLIENT_ACTION_NOT_RUNNABLE",
    "run on a client-only action",
    async (exit) => exit.run((await make(exit, { environment: "client", active: true, triggers: MANUAL_TRIGGERS })).id),
  ],
  [
    "CLIENT_ACTION_NOT_RUNNABLE",
    "runWithResult on a client-only action",
    async (exit) => exit.runWithResult((await make(exit, { environment: "client", triggers: MANUAL_TRIGGERS })).id),
  ],
  [
    "ACTION_INACTIVE",
    "run on an inactive action",
    async (exit) => exit.run((await make(exit, { triggers: MANUAL_TRIGGERS })).id),
  ],
  [
    "ACTION_INACTIVE",
    "runWithResult on an inactive action",
    async (exit) => exit.runWithResult((await make(exit, { triggers: MANUAL_TRIGGERS })).name),
  ],
  [
    "TRIGGER_NOT_ALLOWED",
    "run on an action without a manual trigger",
    async (exit) => exit.run((await make(exit, { active: true })).id),
  ],
  [
    "APP_NOT_PUBLISHED",
    "publish while the app is unpublished",
    async (exit, service) => {
      const { id } = await make(exit);
      await service.rest("POST", `/v1/apps/${service.appId}/unpublish`);
      return exit.publish(id);
    },
  ],
  [
    "TESTS_REQUIRED",
    "publish without tests where the app requires them",
    async (exit, service) => {
      const { id } = await make(exit);
      const app = `/v1/apps/${service.appId}`;
      await service.rest("PUT", app, { body: { requiresTests: true } });
      const refused = await exit.publish(id);
      const tested = await service.rest("POST", `/v3/apps/${service.appId}/actions/${id}/publish?tested=true`);
      expect(tested.http).to.equal(200);
      await service.rest("PUT", app, { body: { requiresTests: false } });
      return refused;
    },
  ],
  ["ACTION_NOT_PUBLISHED", "unpublish of an unpublished action", async (exit) => exit.unpublish((await make(exit)).id)],
  [
    "EXECUTION_FAILED",
    "runtime error in execute",
    async (exit) => {
      const code = "async function execute(context) { throw new TypeError('no such thing'); }";
      return exit.runWithResult((await make(exit, { code, active: true, triggers: MANUAL_TRIGGERS })).id);
    },
  ],
  [
    "PUBLISH_FAILED",
    "publish failed",
    async (exit, service) => {
      const { id } = await make(exit);
      return whileWritesFail(service, () => exit.publish(id));
    },
  ],
  [
    "RESTORE_FAILED",
    "restore failed",
    async (exit, service) => {
      const { id } = await make(exit);
      const [version] = (await exit.versions(id)).value.versions;
      return whileWritesFail(service, () => exit.restore(id, version.id));
    },
  ],
  [
    "RESTORE_FAILED",
    "restore of a version that needs a package which left the catalogue",
    async (exit, service) => {
      const { id } = await make(exit, { dependencies: ["svc-csv"] });
      const [version] = (await exit.versions(id)).value.versions;
      const sql = "UPDATE action_version SET data = replace(data::text, 'svc-csv', 'svc-gone')::json WHERE id = $1";
      await service.db.query(sql, [version.id]);
      return exit.restore(id, version.id);
    },
  ],
];

async function production(exit: ApiClient): Promise<number> {
  return (await exit.publish((await make(exit)).id)).value.action.id;
}

/** Makes the database fail at the audit entry, the last write of each operation. All earlier writes must then be rolled back. */
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

  function expectRefused(exit: ApiClient, status: Status, { status: received, error, http, value }: Outcome): void {
    expect(received).to.equal(status);
    expect(error)
      .to.be.a("string")
      .that.does.not.match(/\n\s+at |SELECT|INSERT|\/src\/|disk gone/);
    if (exit.name !== "REST") return;
    expect(http).to.equal(STATUS[status].http);
    expect(value).to.include.keys("status", "error");
  }

  for (const [index, [name, exitOf]] of API_CLIENTS.entries()) {
    for (const [specified, condition, fault] of sampleOf(VALIDATION_ERRORS, index, 2)) {
      const status = (name === "GraphQL" && STATUS_OF_TYPE_FAULTS[condition]) || specified;
      it(`create over ${name}: ${status} for ${condition}`, async () => {
        const exit = exitOf(service);
        expectRefused(exit, status, await exit.create(validAction(fault)));
      });

      it(`update over ${name}: ${status} for ${condition}, unchanged`, async () => {
        const exit = exitOf(service);
        const made = await make(exit);
        expectRefused(exit, status, await exit.update(made.id, fault));
        expect((await exit.get(made.id)).value).to.deep.equal(made);
      });
    }

    for (const [status, condition, attempt] of sampleOf(OPERATIONAL_ERRORS, index, 2)) {
      it(`over ${name}: ${status} for ${condition}`, async () => {
        const exit = exitOf(service);
        expectRefused(exit, status, await attempt(exit, service));
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
    const operational = [
      ...["ACTION_NOT_FOUND", "ACTION_NOT_V3", "VERSION_NOT_FOUND", "CANNOT_UPDATE_PRODUCTION"],
      ...["CANNOT_DELETE_PRODUCTION", "CANNOT_RESTORE_PRODUCTION", "CLIENT_ACTION_NOT_RUNNABLE", "ACTION_INACTIVE"],
      ...["APP_NOT_PUBLISHED", "ACTION_NOT_PUBLISHED", "EXECUTION_FAILED", "PUBLISH_FAILED", "RESTORE_FAILED"],
    ];
    expect(VALIDATION_ERRORS.map(([status]) => status)).to.include.members(validation);
    expect(OPERATIONAL_ERRORS.map(([status]) => status)).to.include.members(operational);
  });
});
