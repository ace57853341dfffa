import { expect } from "chai";
import fc from "fast-check";
import type { TestService } from "../harness/service.js";
import { type ApiClient, createGraphqlApiClient, createRestApiClient, type Outcome } from "./api-clients.js";
import { CODE } from "./support.js";

const json = fc.jsonValue({ maxDepth: 3, stringUnit: "binary" });
const oddText = fc.oneof(
  fc.string({ unit: "binary", maxLength: 40 }),
  fc.constantFrom(
    "",
    " ",
    "\0",
    "\ud800",
    "👩‍👩‍👧",
    "null",
    "__proto__",
    "'; DROP TABLE action; --",
    "{{ name }}",
    "../..",
    "$value",
  ),
  fc.integer({ min: 250, max: 1_100 }).map((length) => "x".repeat(length)),
);

/** Generates values of a field: usually a value of `valid`, otherwise an unusual text or any JSON. */
const mostlyValid = (valid: fc.Arbitrary<unknown>) =>
  fc.oneof({ weight: 8, arbitrary: valid }, { weight: 1, arbitrary: oddText }, { weight: 1, arbitrary: json });

const name = fc.stringMatching(/^[A-Za-z0-9_-]{8,30}$/);
const value = fc.oneof(
  json.map((data) => `return ${JSON.stringify(data)};`),
  fc.constantFrom(
    "return Svc.CSV;",
    "const { CSV } = Svc;",
    "// Svc.Media",
    "}",
    "await 1;",
    "yield 1;",
    "`${",
    "/* {{x}} */",
  ),
);
const code = fc.oneof(
  fc.constant(CODE),
  value.map((text) => `async function execute(context) { ${text} }`),
  value.map((text) => `const execute = async (context) => { ${text} };`),
  value.map((text) => `let execute = async function (context) { ${text} };`),
);
const cronField = fc.constantFrom("*", "0", "5", "*/7", "1-3", "59", "60", "L", "MON", "7", "?", "1,2");
const frequency = fc.oneof(
  fc.constantFrom(null, "0 9 * * 1", "*/5 * * * *"),
  fc.array(cronField, { minLength: 4, maxLength: 6 }).map((fields) => fields.join(" ")),
);
const where = fc.oneof(
  fc.constantFrom({ type: "app.view" }, { type: "analytics.event" }, { type: "dataSource.import", dataSourceId: 3 }),
  fc.record(
    { type: fc.constantFrom("analytics.pageView", "app.update"), data: json, dataSourceId: json },
    { requiredKeys: [] },
  ),
);
const trigger = fc.oneof(
  fc.constantFrom({ trigger: "manual" }, { trigger: "schedule" }),
  fc.record({ trigger: fc.constantFrom("log", "analytics", "manual"), where }),
);
const dependency = fc.constantFrom(
  "svc-csv",
  "svc-media",
  "https://cdn.example.com/lib.js",
  "http://a",
  "svc-no",
  "",
  "https://",
);

const FIELDS = {
  name: mostlyValid(name),
  code: mostlyValid(code),
  description: mostlyValid(fc.oneof(fc.constant(null), fc.string({ maxLength: 60 }))),
  active: mostlyValid(fc.boolean()),
  environment: mostlyValid(fc.constantFrom("server", "any", "client")),
  triggers: mostlyValid(fc.array(trigger, { maxLength: 3 })),
  dependencies: mostlyValid(fc.array(dependency, { maxLength: 3 })),
  frequency: mostlyValid(frequency),
  timezone: mostlyValid(fc.constantFrom(null, "Europe/Paris", "UTC", "utc", "EST", "+05:00")),
};

/** Generates filters with any names and values. Their JSON may contain characters that a text column cannot store. */
const filter = fc.dictionary(fc.string({ unit: "binary", maxLength: 10 }), json, { maxKeys: 3 });
const validBody = fc.record(
  {
    name,
    code: fc.constantFrom(CODE, "const execute = async (context) => `{{ x }}`;"),
    description: fc.constantFrom(null, "", "told", "👩‍👩‍👧".repeat(50)),
    active: fc.boolean(),
    environment: fc.constant("any"),
    triggers: fc.array(
      fc.oneof(
        fc.constantFrom<unknown>({ trigger: "manual" }, { trigger: "log", where: { type: "app.view" } }),
        filter.map((data) => ({ trigger: "analytics", where: { type: "analytics.event", data } })),
      ),
    ),
    dependencies: fc.uniqueArray(fc.constantFrom("svc-csv", "svc-barcode", "https://cdn.example.com/lib.js?v=1")),
    frequency: fc.constantFrom(null, "0 9 * * 1", "*/5 * * * *"),
    timezone: fc.constantFrom(null, "Europe/Paris", "UTC"),
  },
  { requiredKeys: ["name", "code"] },
);

const body = fc.oneof(
  { weight: 10, arbitrary: validBody },
  { weight: 12, arbitrary: fc.record(FIELDS, { requiredKeys: ["name", "code"] }) },
  { weight: 4, arbitrary: fc.record({ ...FIELDS, name, code: fc.constant(CODE) }, { requiredKeys: ["name", "code"] }) },
  {
    weight: 2,
    arbitrary: fc.record({ ...FIELDS, id: json, appId: json, masterId: json, assets: json }, { requiredKeys: [] }),
  },
  { weight: 1, arbitrary: json },
  {
    weight: 1,
    arbitrary: fc.constantFrom<unknown>(
      JSON.parse('{"__proto__": {"name": "x"}, "constructor": 1}'),
      JSON.parse("[".repeat(300) + "]".repeat(300)),
      [],
      null,
    ),
  },
);

/** Checks that the service returned seven fields of an accepted body unchanged. An empty frequency or time zone becomes null. */
function expectStored(sent: Record<string, unknown>, received: Record<string, unknown>): void {
  for (const field of ["name", "code", "active", "environment", "dependencies", "frequency", "timezone"]) {
    const isCleared = (field === "frequency" || field === "timezone") && sent[field] === "";
    if (sent[field] !== undefined) expect(received[field], field).to.deep.equal(isCleared ? null : sent[field]);
  }
}

function expectNoServerError({ status, error }: Outcome, sent: unknown): void {
  const received = `${status} (${error}) for ${JSON.stringify(sent)?.slice(0, 400)}`;
  expect(["INTERNAL_ERROR", "PUBLISH_FAILED", "RESTORE_FAILED", undefined], received).to.not.include(status);
}

async function expectSuccess(step: string, outcome: Promise<Outcome>): Promise<Outcome> {
  const settled = await outcome;
  expect(settled.status, `${step}: ${settled.error}`).to.equal("OK");
  return settled;
}

async function publishInOrder(apiClient: ApiClient, first: unknown, second: unknown): Promise<boolean> {
  const created = await apiClient.create(first);
  expectNoServerError(created, first);
  if (created.status !== "OK") return false;
  const { id } = created.value;
  expectStored(first as Record<string, unknown>, created.value);
  expect((await expectSuccess("read", apiClient.get(id))).value).to.deep.equal(created.value);
  const updated = await apiClient.update(id, second);
  expectNoServerError(updated, second);
  const now = (await expectSuccess("read again", apiClient.get(id))).value;
  expect(now).to.deep.equal(updated.status === "OK" ? updated.value : created.value);
  const { action } = (await expectSuccess("publish", apiClient.publish(id))).value;
  expect(action.code).to.equal(now.code);
  const { versions } = (await expectSuccess("list versions", apiClient.versions(id))).value;
  const restored = (await expectSuccess("restore", apiClient.restore(id, versions.at(-1).id))).value.action;
  expect(restored).to.deep.equal({ ...created.value, updatedAt: restored.updatedAt, isPublished: true });
  await expectSuccess("compare", apiClient.diff(id));
  await expectSuccess("remove", apiClient.remove(id));
  return true;
}

/**
 * Creates actions from `times` unusual bodies and updates each, over REST or GraphQL. Expects no server error, and that each created action
 * can be read, published, restored, compared and removed. Expects that the service creates an action from more than a tenth of the
 * bodies.
 */
export async function expectNoServerErrors(service: TestService, times: number): Promise<void> {
  const apiClients = [createRestApiClient(service), createGraphqlApiClient(service)] as const;
  let accepted = 0;
  const property = fc.asyncProperty(fc.constantFrom(...apiClients), body, body, async (apiClient, first, second) => {
    if (await publishInOrder(apiClient, first, second)) accepted += 1;
  });
  await fc.assert(property, { numRuns: times });
  expect(accepted).to.be.above(times / 10);
}
