/** Tests the validation of an action's fields, row by row of the specification's table. Needs no service. */
import { expect } from "chai";
import fc from "fast-check";
import { ActionError, STATUS, type Status } from "../../src/errors.js";
import { type ActionInput, parseActionUpdate, parseNewAction } from "../../src/rules/action-input.js";
import { caseCount } from "../harness/samples.js";
import { refusal } from "./refusal.js";

const CODE = "async function execute(context) { return context.payload; }";
const MINIMAL_ACTION = { name: "greet", code: CODE };
const SESSION_CODE = "async function execute() {\n  return Svc.Session.get();\n}";

const STORED_ACTION: ActionInput = parseNewAction({
  ...MINIMAL_ACTION,
  description: "says hello",
  triggers: [{ trigger: "manual" }],
  frequency: "0 9 * * *",
  timezone: "Europe/Berlin",
});

/** Rows of the table: status, fault, and the fields that cause it in a valid action. The order is that of the specification. */
const VALIDATION_ROWS: [Status, string, Record<string, unknown>][] = [
  ["NAME_REQUIRED", "name missing", { name: undefined }],
  ["NAME_REQUIRED", "name null", { name: null }],
  ["NAME_EMPTY", "name empty", { name: "" }],
  ["NAME_TOO_LONG", "name of 256 characters", { name: "n".repeat(256) }],
  ["NAME_INVALID_CHARS", "name with a space", { name: "say hello" }],
  ["NAME_INVALID_CHARS", "name of other alphabets", { name: "grüße" }],
  ["NAME_INVALID_CHARS", "name ending in a line break", { name: "greet\n" }],
  ["NAME_INVALID_CHARS", "name no string", { name: 42 }],
  ["DESCRIPTION_INVALID", "description a number", { description: 1 }],
  ["DESCRIPTION_INVALID", "description an object", { description: {} }],
  ["DESCRIPTION_INVALID", "description with U+0000", { description: "a\0b" }],
  ["DESCRIPTION_INVALID", "description with half a surrogate pair", { description: "a\ud800" }],
  ["DESCRIPTION_TOO_LONG", "description of 1001 characters", { description: "d".repeat(1001) }],
  ["CODE_REQUIRED", "code missing", { code: undefined }],
  ["CODE_REQUIRED", "code null", { code: null }],
  ["CODE_EMPTY", "code empty", { code: "" }],
  ["CODE_EMPTY", "code of white space", { code: " \n\t" }],
  ["CODE_VALIDATION_FAILED", "code no string", { code: 42 }],
  ["CODE_VALIDATION_FAILED", "execute missing", { code: "const a = 1;" }],
  ["CODE_VALIDATION_FAILED", "execute not async", { code: "function execute(context) {}" }],
  ["CODE_VALIDATION_FAILED", "required dependency not listed", { code: SESSION_CODE }],
  ["CODE_VALIDATION_FAILED", "code with U+0000", { code: `${CODE}"\0"` }],
  ["ENVIRONMENT_INVALID", "environment unknown", { environment: "browser" }],
  ["ENVIRONMENT_INVALID", "environment null", { environment: null }],
  ["ENVIRONMENT_INVALID", "environment in other case", { environment: "Server" }],
  ["ENVIRONMENT_INVALID", "environment an array", { environment: ["server"] }],
  ["FREQUENCY_INVALID", "four fields", { frequency: "0 9 * *" }],
  ["FREQUENCY_INVALID", "frequency of a space", { frequency: " " }],
  ["FREQUENCY_INVALID", "frequency a number", { frequency: 5 }],
  ["FREQUENCY_TOO_FREQUENT", "every minute", { frequency: "* * * * *" }],
  ["TIMEZONE_INVALID", "an abbreviation", { timezone: "EST" }],
  ["TIMEZONE_INVALID", "timezone a number", { timezone: 1 }],
  ["TRIGGERS_INVALID", "triggers an object", { triggers: { trigger: "manual" } }],
  ["TRIGGERS_INVALID", "triggers null", { triggers: null }],
  ["TRIGGERS_INVALID", "a trigger that is a string", { triggers: ["manual"] }],
  ["TRIGGERS_INVALID", "log without where", { triggers: [{ trigger: "log" }] }],
  ["TRIGGERS_INVALID", "log with an empty type", { triggers: [{ trigger: "log", where: { type: "" } }] }],
  [
    "TRIGGERS_INVALID",
    "log with a dataSourceId that is no id",
    { triggers: [{ trigger: "log", where: { type: "dataSource.import", dataSourceId: "5" } }] },
  ],
  [
    "TRIGGERS_INVALID",
    "analytics of another type",
    { environment: "client", triggers: [{ trigger: "analytics", where: { type: "app.view" } }] },
  ],
  [
    "TRIGGERS_INVALID",
    "analytics with data that is no object",
    { environment: "client", triggers: [{ trigger: "analytics", where: { type: "analytics.event", data: [1] } }] },
  ],
  ["TRIGGERS_INVALID", "101 triggers", { triggers: Array(101).fill({ trigger: "manual" }) }],
  ["TRIGGER_TYPE_INVALID", "an unknown trigger", { triggers: [{ trigger: "webhook" }] }],
  ["TRIGGER_TYPE_INVALID", "a trigger without its type", { triggers: [{}] }],
  ["TRIGGER_TYPE_INVALID", "a trigger named like a method", { triggers: [{ trigger: "toString" }] }],
  [
    "TRIGGER_NOT_ALLOWED",
    "analytics on server",
    { triggers: [{ trigger: "analytics", where: { type: "analytics.event" } }] },
  ],
  ["TRIGGER_NOT_ALLOWED", "schedule on client", { environment: "client", triggers: [{ trigger: "schedule" }] }],
  [
    "TRIGGER_NOT_ALLOWED",
    "log on client",
    { environment: "client", triggers: [{ trigger: "log", where: { type: "app.view" } }] },
  ],
  ["DEPENDENCIES_INVALID", "dependencies a string", { dependencies: "svc-session" }],
  ["DEPENDENCIES_INVALID", "dependencies null", { dependencies: null }],
  ["DEPENDENCIES_INVALID", "a dependency that is a number", { dependencies: ["svc-session", 1] }],
  ["DEPENDENCIES_INVALID", "an empty dependency", { dependencies: [""] }],
  [
    "CODE_VALIDATION_FAILED",
    "dependencies that are no array, with code that needs a package",
    { code: SESSION_CODE, dependencies: {} },
  ],
  [
    "CODE_VALIDATION_FAILED",
    "dependencies with a number, with code that needs a package",
    { code: SESSION_CODE, dependencies: [1] },
  ],
  ["INTEGRATION_ORIGINS_INVALID", "origins a string", { integrationOrigins: "https://api.example.com" }],
  ["INTEGRATION_ORIGINS_INVALID", "an origin that is a number", { integrationOrigins: [1] }],
  ["INTEGRATION_ORIGINS_INVALID", "an http origin", { integrationOrigins: ["http://api.example.com"] }],
  [
    "INTEGRATION_ORIGINS_INVALID",
    "origins of an action that also runs on clients",
    { environment: "any", integrationOrigins: ["https://api.example.com"] },
  ],
  ["REQUEST_INVALID", "active no boolean", { active: "true" }],
  ["REQUEST_INVALID", "active null", { active: null }],
];

const TABLE = [...new Set(VALIDATION_ROWS.map(([status]) => status))];

describe("action input: the validation table", () => {
  for (const [status, title, fields] of VALIDATION_ROWS) {
    it(`${status} on create: ${title}`, () => {
      refusal(status, () => parseNewAction({ ...MINIMAL_ACTION, ...fields }));
    });
    const omitted = Object.values(fields).every((value) => value === undefined);
    if (omitted) continue;
    it(`${status} on update: ${title}`, () => {
      refusal(status, () => parseActionUpdate(fields, STORED_ACTION));
    });
  }

  it("covers every status of the table that needs no database", () => {
    const all = Object.keys(STATUS) as Status[];
    const table = all.slice(0, all.indexOf("INTEGRATION_ORIGINS_INVALID") + 1);
    expect(table.filter((status) => status !== "NAME_ALREADY_EXISTS")).to.deep.equal(
      TABLE.filter((status) => status !== "REQUEST_INVALID"),
    );
  });

  it("reports of any two errors the one that is first in the table", () => {
    for (const [status, , fields] of VALIDATION_ROWS) {
      for (const [other, , more] of VALIDATION_ROWS) {
        if (Object.keys(fields).some((key) => Object.hasOwn(more, key))) continue;
        // A fault of these fields can depend on other fields. So pairs with these fields do not test the order.
        if ("environment" in fields || "environment" in more || "dependencies" in fields || "dependencies" in more)
          continue;
        const first = TABLE.indexOf(status) < TABLE.indexOf(other) ? status : other;
        refusal(first, () => parseNewAction({ ...MINIMAL_ACTION, ...fields, ...more }));
      }
    }
  });

  it("rejects data that is no object", () => {
    for (const data of [null, 1, "x", true, [], [MINIMAL_ACTION]]) {
      refusal("REQUEST_INVALID", () => parseNewAction(data));
      refusal("REQUEST_INVALID", () => parseActionUpdate(data, STORED_ACTION));
    }
  });

  it("names the field, the expected and the received value, and shortens a long value", () => {
    expect(refusal("ENVIRONMENT_INVALID", () => parseNewAction({ ...MINIMAL_ACTION, environment: "moon" }))).to.equal(
      'environment must be one of server, client, any (got "moon")',
    );
    const long = "$value \ud83d\ude00".repeat(50_000);
    for (const fields of [{ name: `${long} ` }, { environment: long }, { timezone: long }, { dependencies: [long] }]) {
      let message = "";
      try {
        parseNewAction({ ...MINIMAL_ACTION, ...fields });
      } catch (error) {
        message = (error as Error).message;
      }
      expect(message).to.have.length.within(20, 250);
      expect(message.isWellFormed()).to.equal(true);
    }
  });
});

describe("action input: accepted values", () => {
  it("fills in the defaults of the create table", () => {
    expect(parseNewAction(MINIMAL_ACTION)).to.deep.equal({
      ...MINIMAL_ACTION,
      description: null,
      active: false,
      environment: "server",
      triggers: [],
      dependencies: [],
      frequency: null,
      timezone: null,
      integrationOrigins: [],
      access: "everyone",
    });
  });

  it("accepts names of 255 characters and descriptions of 1000, with an emoji as one", () => {
    const description = "\u{1f600}".repeat(1000);
    expect(parseNewAction({ ...MINIMAL_ACTION, name: "n".repeat(255), description }).description).to.equal(description);
  });

  it("ignores fields that an author cannot set, so that an action can be sent back completely", () => {
    const whole = {
      ...STORED_ACTION,
      id: 7,
      appId: 1,
      assets: [],
      createdAt: "2026-01-01T00:00:00.000Z",
      actionVersion: "v3",
    };
    expect(parseActionUpdate(whole, STORED_ACTION)).to.deep.equal(STORED_ACTION);
  });

  it("keeps triggers with the fields that they use and no others", () => {
    const triggers = [
      { trigger: "manual", where: { type: "x" }, id: 3 },
      { trigger: "log", where: { type: "dataSource.import", dataSourceId: 5, extra: 1 } },
      { trigger: "log", where: { type: "something.else", dataSourceId: null } },
      { trigger: "analytics", where: { type: "analytics.pageView", data: { _pageId: 5 } } },
    ];
    expect(parseNewAction({ ...MINIMAL_ACTION, environment: "any", triggers }).triggers).to.deep.equal([
      { trigger: "manual" },
      { trigger: "log", where: { type: "dataSource.import", dataSourceId: 5 } },
      { trigger: "log", where: { type: "something.else" } },
      { trigger: "analytics", where: { type: "analytics.pageView", data: { _pageId: 5 } } },
    ]);
  });

  it("keeps fields that an update omits", () => {
    expect(parseActionUpdate({}, STORED_ACTION)).to.deep.equal(STORED_ACTION);
    expect(parseActionUpdate({ active: true }, STORED_ACTION)).to.deep.equal({ ...STORED_ACTION, active: true });
  });

  it("clears the description with null and with an empty string", () => {
    expect(parseActionUpdate({ description: null }, STORED_ACTION).description).to.equal(null);
    expect(parseActionUpdate({ description: "" }, STORED_ACTION).description).to.equal(null);
  });

  for (const none of [null, ""]) {
    it(`clears frequency and timezone with ${JSON.stringify(none)}, on update and on create`, () => {
      const stored = { ...STORED_ACTION, frequency: "0 9 * * *", timezone: "Europe/Berlin" };
      const cleared = parseActionUpdate({ frequency: none, timezone: none }, stored);
      expect([cleared.frequency, cleared.timezone]).to.deep.equal([null, null]);
      const made = parseNewAction({ ...MINIMAL_ACTION, frequency: none, timezone: none });
      expect([made.frequency, made.timezone]).to.deep.equal([null, null]);
    });
  }

  it("checks the action as it is after an update: environment against triggers, dependencies against code", () => {
    const scheduled = parseActionUpdate({ triggers: [{ trigger: "schedule" }] }, STORED_ACTION);
    refusal("TRIGGER_NOT_ALLOWED", () => parseActionUpdate({ environment: "client" }, scheduled));
    const dependent = parseActionUpdate({ code: SESSION_CODE, dependencies: ["svc-session"] }, STORED_ACTION);
    refusal("CODE_VALIDATION_FAILED", () => parseActionUpdate({ dependencies: [] }, dependent));
  });
});

describe("action input: unusual data", () => {
  it("is not confused by keys of prototypes", () => {
    const data = JSON.parse(`{"name":"greet","code":${JSON.stringify(CODE)},"__proto__":{"active":true},"toString":1}`);
    expect(parseNewAction(data).active).to.equal(false);
    refusal("NAME_REQUIRED", () => parseNewAction(JSON.parse(`{"__proto__":{"name":"greet"},"code":"x"}`)));
    refusal("TRIGGERS_INVALID", () =>
      parseNewAction({
        ...MINIMAL_ACTION,
        triggers: JSON.parse(`[{"trigger":"log","__proto__":{"where":{"type":"x"}}}]`),
      }),
    );
  });

  it("turns any JSON into an action or a status of the table, never another error", () => {
    const odd = fc.oneof(fc.jsonValue(), fc.constantFrom<unknown>("server", "client", "any", "0 9 * * *", CODE, true));
    const body = fc.record(
      {
        name: fc.oneof(fc.constant("greet"), odd),
        code: fc.oneof(fc.constant(CODE), odd),
        description: odd,
        active: fc.oneof(fc.boolean(), odd),
        environment: odd,
        triggers: fc.oneof(odd, fc.array(fc.record({ trigger: odd, where: odd }, { requiredKeys: [] }))),
        dependencies: odd,
        frequency: odd,
        timezone: odd,
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(body, (data) => {
        try {
          const input = parseNewAction(data);
          expect(parseActionUpdate(JSON.parse(JSON.stringify(input)), input)).to.deep.equal(input);
        } catch (error) {
          expect(error).to.be.instanceOf(ActionError);
          expect(TABLE).to.include((error as ActionError).status);
        }
      }),
      { numRuns: caseCount(2000) },
    );
  });
});
