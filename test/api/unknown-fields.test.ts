/** Fields that a body's schema does not have are refused by name; what was read can be sent back. */
import { expect } from "chai";
import { startTestService, type TestService } from "../harness/service.js";

const CODE = "async function execute() { return 1; }";
const ACTION = { name: "first", code: CODE };

/** Path, a body without fault, and unknown fields with what the refusal says of them. */
interface Sample {
  method?: string;
  path: string;
  body: Record<string, unknown>;
  unknown: [field: Record<string, unknown>, says: string][];
}

const SAMPLES: Sample[] = [
  {
    path: "/v3/apps/1/actions",
    body: { name: "sample", code: CODE, triggers: [{ trigger: "schedule" }] },
    unknown: [
      [{ actve: true }, 'actve is not a known field; the nearest known field is "active"'],
      [
        { triggers: [{ trigger: "schedule", frequency: "0 5 * * *" }] },
        'triggers[0].frequency is not a known field; set "frequency" at the top of the body',
      ],
      [
        { triggers: [{ trigger: "log", where: { type: "app.view", dataSurceId: 1 } }] },
        'triggers[0].where.dataSurceId is not a known field; the nearest known field is "dataSourceId"',
      ],
      [{ "a b": 1 }, '["a b"] is not a known field'],
    ],
  },
  {
    method: "PUT",
    path: "/v1/apps/1",
    body: { name: "App" },
    unknown: [[{ nme: "x" }, 'nme is not a known field; the nearest known field is "name"']],
  },
  {
    path: "/v1/apps/1/alerts",
    body: { name: "late", condition: "failed", channel: "email", to: ["a@example.com"] },
    unknown: [[{ minuts: 1 }, '"minutes"']],
  },
  {
    path: "/v1/apps/1/notifications",
    body: { data: { title: "a", anything: 1 } },
    unknown: [
      [{ orderat: null }, '"orderAt"'],
      [{ pushNotification: { payload: {}, delayUntil: 1 } }, "pushNotification.delayUntil"],
    ],
  },
  { path: "/v1/apps/1/media/folders", body: { name: "pictures" }, unknown: [[{ parentID: null }, '"parentId"']] },
  { path: "/v1/apps/1/data-sources", body: { name: "people" }, unknown: [[{ accessRule: [] }, '"accessRules"']] },
  {
    path: "/v1/apps/1/logs",
    body: { type: "app.view", data: { anything: 1 } },
    unknown: [[{ datasourceId: 1 }, '"dataSourceId"']],
  },
  {
    path: "/v1/apps/1/communicate/email",
    body: { to: [{ email: "a@example.com" }], subject: "a", text: "b" },
    unknown: [
      [{ fromname: "x" }, '"fromName"'],
      [{ to: [{ email: "a@example.com", mail: 1 }] }, "to[0].mail"],
    ],
  },
  { path: "/v1/apps/1/communicate/sms", body: { to: "+41790000000", body: "a" }, unknown: [[{ form: "x" }, '"from"']] },
  { path: "/v1/apps/1/tokens", body: { kind: "api" }, unknown: [[{ names: "x" }, '"name"']] },
  { path: "/v1/admin/apps", body: { name: "Other" }, unknown: [[{ organisationId: 1 }, '"organizationId"']] },
  {
    path: "/v1/admin/users",
    body: { firstName: "A", lastName: "B", email: "ab@example.com" },
    unknown: [[{ mail: "x" }, '"email"']],
  },
  { method: "DELETE", path: "/v1/apps/1/settings", body: { keys: [] }, unknown: [[{ key: "x" }, '"keys"']] },
];

describe("unknown fields of a body", () => {
  let service: TestService;
  before(async () => {
    service = await startTestService({ ROLES: "api" });
    await service.rest("POST", "/v3/apps/1/actions", { body: ACTION });
  });
  after(() => service.stop());

  for (const { method = "POST", path, body, unknown } of SAMPLES) {
    it(`${method} ${path} refuses them by path, with the nearest known name`, async () => {
      for (const [field, says] of unknown) {
        const { http, body: answer } = await service.rest(method, path, { as: "admin", body: { ...body, ...field } });
        expect([http, answer.status], JSON.stringify(answer)).to.deep.equal([400, "REQUEST_INVALID"]);
        expect(answer.error).to.contain(says);
      }
      expect((await service.rest(method, path, { as: "admin", body })).http).to.be.within(200, 299);
    });
  }

  it("come last: any other fault is reported first, a name that is taken and a faulty dependency too", async () => {
    const faults: [object, string][] = [
      [{ ...ACTION, name: "" }, "NAME_EMPTY"],
      [ACTION, "NAME_ALREADY_EXISTS"],
      [{ ...ACTION, name: "other", code: "nothing" }, "CODE_VALIDATION_FAILED"],
      [{ ...ACTION, name: "other", dependencies: "x" }, "DEPENDENCIES_INVALID"],
      [{ ...ACTION, name: "other", dependencies: ["no such package!"] }, "DEPENDENCY_UNRESOLVED"],
    ];
    for (const [body, status] of faults) {
      const { body: answer } = await service.rest("POST", "/v3/apps/1/actions", { body: { ...body, actve: true } });
      expect(answer.status).to.equal(status);
    }
  });

  it("are refused after the right: who may not do it learns of no fault", async () => {
    for (const [path, body] of [
      ["/v1/apps/1/tokens", { nme: 1 }],
      ["/v1/admin/users", { mail: 1 }],
    ] as const) {
      expect((await service.rest("POST", path, { as: "live", body })).body.status).to.equal("FORBIDDEN");
    }
    for (const query of ["limit=-1", "limit=1&limit=2", "offset=x"]) {
      const { body } = await service.rest("GET", `/v3/apps/1/actions?${query}`, { as: "live" });
      expect(body.status, query).to.equal("FORBIDDEN");
      expect((await service.rest("GET", `/v3/apps/1/actions?${query}`)).body.status, query).to.equal("REQUEST_INVALID");
    }
  });

  it("are none where a resource is sent back as it was read", async () => {
    const back = async (method: string, path: string, body: object) => {
      const { http, body: answer } = await service.rest(method, path, { as: "admin", body });
      expect(http, `${path}: ${JSON.stringify(answer)}`).to.equal(200);
    };
    const { actions } = (await service.rest("GET", "/v3/apps/1/actions")).body;
    await back("PUT", `/v3/apps/1/actions/${actions[0].id}`, actions[0]);
    const { apps } = (await service.rest("GET", "/v1/apps")).body;
    await back("PUT", "/v1/apps/1", { ...apps[0], settings: { a: 1 } });
    await back("PUT", "/v1/admin/apps/1", apps[0]);
    const { dataSources } = (await service.rest("GET", "/v1/apps/1/data-sources")).body;
    await back("PUT", `/v1/apps/1/data-sources/${dataSources[0].id}`, dataSources[0]);
    const { alerts } = (await service.rest("GET", "/v1/apps/1/alerts")).body;
    await back("PUT", `/v1/apps/1/alerts/${alerts[0].id}`, alerts[0]);
    const { entries } = (await service.rest("GET", "/v1/apps/1/notifications")).body;
    await back("PUT", `/v1/apps/1/notifications/${entries[0].id}`, entries[0]);
    const { folders } = (await service.rest("GET", "/v1/apps/1/media")).body;
    await back("PUT", `/v1/apps/1/media/folders/${folders[0].id}`, folders[0]);
  });

  it("of a query are ignored", async () => {
    expect((await service.rest("GET", "/v3/apps/1/actions?limt=-1&limt=2")).http).to.equal(200);
  });

  it("a schedule trigger without a frequency is saved with a warning beside it, over REST and GraphQL", async () => {
    const body = { name: "scheduled", code: CODE, triggers: [{ trigger: "manual" }, { trigger: "schedule" }] };
    const { http, body: made } = await service.rest("POST", "/v3/apps/1/actions", { body });
    expect(http).to.equal(201);
    expect(made.warnings.map(({ path }: { path: string }) => path)).to.deep.equal(["triggers[1]"]);
    expect(made.warnings[0].message).to.contain('"frequency"');
    const path = `/v3/apps/1/actions/${made.action.id}`;
    const put = await service.rest("PUT", path, { body: { frequency: "0 5 * * *" } });
    expect(put.body).to.not.have.property("warnings");
    expect((await service.rest("GET", path)).body).to.have.all.keys("status", "action");
    const { data } = await service.graphql(
      `mutation { updateAction(appId: 1, id: ${made.action.id}, data: { frequency: null }) { warnings { path message } } }`,
    );
    expect(data.updateAction.warnings).to.deep.equal(made.warnings);
  });
});
