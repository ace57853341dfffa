/** Tests that the service rejects unknown fields of a body by name, and that a response can be sent back as a body. */

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { buildSchema, getNamedType, getNullableType, isInputObjectType, isListType } from "graphql";
import { longTest, sampleOf } from "../harness/samples.js";
import { startTestService, type TestService } from "../harness/service.js";
import {
  BODY_SAMPLES,
  bodiesWithFaults,
  bodiesWithNullFields,
  bodiesWithUnknownField,
  fillIds,
  fillPath,
  type Ids,
  prepareSamples,
  type Schema,
  UNKNOWN,
} from "./body-samples.js";
import { NEVER_SENT_BACK, PUT_ROUTES, sendBackRead } from "./sent-back.js";
import { tableStates } from "./table-states.js";

const SCHEMA = fileURLToPath(new URL("../../../schema/schema.graphql", import.meta.url));

const CODE = "async function execute() { return 1; }";
const ACTION = { name: "first", code: CODE };

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
      [
        { triggers: [{ trigger: "log", where: { type: "app.view", path: "/a" } }] },
        "triggers[0].where.path is not a known field",
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
    it(`${method} ${path} rejects them by path, with the nearest known name`, async () => {
      for (const [field, message] of unknown) {
        const { http, body: answer } = await service.rest(method, path, { as: "admin", body: { ...body, ...field } });
        expect([http, answer.status], JSON.stringify(answer)).to.deep.equal([400, "REQUEST_INVALID"]);
        expect(answer.error).to.contain(message);
      }
      expect((await service.rest(method, path, { as: "admin", body })).http).to.be.within(200, 299);
    });
  }

  describe("in every body", () => {
    let ids: Ids;
    let stored: Map<string, string>;
    before(async () => {
      ids = await prepareSamples(service);
      stored = await tableStates(service);
    });

    async function send(route: string, body: unknown, key: string) {
      const headers = { "idempotency-key": key.slice(0, 200) };
      const isOwn = route.endsWith("/auth/account");
      const as = isOwn ? String(ids["session"]) : /session|push/.test(route) ? "viewer" : "admin";
      const [method] = route.split(" ");
      return service.rest(method!, fillPath(route, ids), { as, body: fillIds(body, ids), headers });
    }

    it("has a sample for each route that reads one", async () => {
      const { paths } = (await service.rest("GET", "/v1/openapi.json", { as: null })).body;
      const reading = Object.entries<Record<string, { requestBody?: object }>>(paths).flatMap(([path, methods]) =>
        Object.entries(methods).flatMap(([method, { requestBody }]) =>
          requestBody ? [`${method.toUpperCase()} ${path}`] : [],
        ),
      );
      expect(Object.keys(BODY_SAMPLES)).to.have.members(reading);
    });

    const samples = Object.entries(BODY_SAMPLES);
    const unknownFields = samples.flatMap(([route, sample]) =>
      bodiesWithUnknownField(sample).map((body) => ({ route, ...body })),
    );
    for (const { route, path, body } of unknownFields) {
      it(`${route} rejects ${path}`, async () => {
        const answer = await send(route, body, path);
        expect([answer.http, answer.body.status], JSON.stringify(answer.body)).to.deep.equal([400, "REQUEST_INVALID"]);
        // The error of an import contains the name of the action, so the test expects only the path inside the action.
        const named = route.endsWith("/import") ? path.replace("actions[0].", "") : path;
        expect(answer.body.error).to.contain(`${named} is not a known field; the nearest known field is "`);
      });
    }

    const faults = samples.flatMap(([route, sample], index) => {
      const bodies = bodiesWithFaults(sample);
      return sampleOf(bodies, index % Math.min(3, bodies.length), 3).map((body) => ({ route, ...body }));
    });
    for (const { route, field, body } of faults) {
      it(`${route} reports an error of ${field} first`, async () => {
        const { http, body: answer } = await send(route, body, `fault-of-${field}`);
        expect(http, JSON.stringify(answer)).to.be.within(400, 499);
        expect(answer.error).to.not.contain(UNKNOWN);
      });
    }

    longTest("do not include any field that OpenAPI describes", async () => {
      const { paths, components } = (await service.rest("GET", "/v1/openapi.json", { as: null })).body;
      // Triggers of one kind reject the fields of other kinds. So at least one sample body must accept each field of a type.
      const known = new Map<string, boolean>();
      for (const [route, sample] of Object.entries(BODY_SAMPLES)) {
        const [method, path] = route.split(" ") as [string, string];
        const [content] = Object.values<{ schema: Schema }>(paths[path][method.toLowerCase()].requestBody.content);
        for (const { field, ofType, body } of bodiesWithNullFields(sample, content!.schema, components.schemas)) {
          const { http, body: answer } = await send(route, body, `described-${field}`);
          expect(http, `${route} ${field}`).to.be.within(400, 499);
          const isRefused = String(answer.error).includes(`${field} is not a known field`);
          known.set(ofType, known.get(ofType) || !isRefused);
        }
      }
      expect(known.size).to.be.above(100);
      expect([...known.keys()].filter((field) => !known.get(field))).to.deep.equal([]);
    });

    it("none of these requests writes anything", async () => {
      const states = await tableStates(service);
      const changed = [...states.keys()].filter((table) => states.get(table) !== stored.get(table));
      expect(changed).to.deep.equal([]);
    });

    for (const route of PUT_ROUTES.filter((name) => !(name in NEVER_SENT_BACK))) {
      it(`do not include fields that a read returns: ${route} accepts them and changes nothing`, async () => {
        const { answer, before, after } = await sendBackRead(service, route, ids);
        expect(answer.http, JSON.stringify({ answer: answer.body, before })).to.equal(200);
        expect(after).to.deep.equal(before);
      });
    }

    it("include another ID or e-mail address than the person's account has", async () => {
      for (const [field, value] of Object.entries({ id: 1, email: "other@example.com" })) {
        const { http, body } = await send("PUT /v1/auth/account", { [field]: value }, `changed-${field}`);
        expect([http, body.error?.split(";")[0]]).to.deep.equal([400, `${field} is not a known field`]);
      }
    });

    it("are rejected by all inputs of the GraphQL schema", async () => {
      const schema = buildSchema(readFileSync(SCHEMA, "utf8"));
      const fields = [
        ...Object.values(schema.getMutationType()!.getFields()),
        ...Object.values(schema.getQueryType()!.getFields()),
      ];
      const inputs = fields.flatMap(({ name, args }) =>
        args.filter(({ type }) => isInputObjectType(getNamedType(type))).map((arg) => ({ name, arg })),
      );
      expect(inputs.length).to.be.above(20);
      for (const { name, arg } of inputs) {
        const isQuery = schema.getQueryType()!.getFields()[name] !== undefined;
        const value = isListType(getNullableType(arg.type)) ? "[{ unknwn: 1 }]" : "{ unknwn: 1 }";
        const text = `${isQuery ? "query" : "mutation"} { ${name}(appId: 1, ${arg.name}: ${value}) { __typename } }`;
        const { errors } = await service.graphql(text, {}, { as: "admin" });
        expect(JSON.stringify(errors), text).to.contain('\\"unknwn\\"');
        expect(errors?.[0]?.extensions.status, text).to.equal("REQUEST_INVALID");
      }
    });
  });

  it("are reported last: every other error comes first, also a used name and an invalid dependency", async () => {
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

  it("are reported after the permission check: a caller without the right gets no error about fields", async () => {
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

  it("in the where of a trigger that has none are ignored", async () => {
    const triggers = ["manual", "schedule"].map((trigger) => ({ trigger, where: { anything: [1] } }));
    const body = { name: "whereless", code: CODE, triggers, frequency: "0 5 * * *" };
    const made = await service.rest("POST", "/v3/apps/1/actions", { body });
    expect(made.body.action?.triggers, made.body.error).to.deep.equal([{ trigger: "manual" }, { trigger: "schedule" }]);
  });

  it("of a query string are ignored", async () => {
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
