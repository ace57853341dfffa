/** Unusual requests to the settings endpoints, over REST and GraphQL, and checks of every response. */
import { isDeepStrictEqual } from "node:util";
import { expect } from "chai";
import fc from "fast-check";
import type { Answer, TestService } from "../harness/service.js";

const PROTOTYPE = JSON.stringify(Object.getOwnPropertyNames(Object.prototype).sort());

const oddKey = fc.oneof(
  fc.string({ unit: "binary", maxLength: 20 }),
  fc.constantFrom(
    "__proto__",
    "constructor",
    "prototype",
    "toString",
    "then",
    "toJSON",
    "",
    "_",
    "__",
    "\u0000",
    "\ud800",
  ),
  fc.string({ maxLength: 8 }).map((name) => `_${name}`),
  fc.string({ maxLength: 8 }).map((name) => `__${name}`),
  fc.string({ unit: "binary", minLength: 500, maxLength: 520 }),
);

const json: fc.Arbitrary<unknown> = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    fc.constantFrom(null, "", 0, -0, false, 1e308, 5e-324, "\u2028", "</script>", "\u0000", "\udfff"),
    fc.string({ unit: "binary", maxLength: 30 }),
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.array(tie("value"), { maxLength: 4 }),
    fc.array(fc.tuple(oddKey, tie("value")), { maxLength: 4 }).map(objectOf),
  ),
})).value;

/** Builds an object. The key `__proto__` becomes an own property, as in JSON.parse. */
function objectOf(entries: [string, unknown][]): object {
  return JSON.parse(`{${entries.map(([key, value]) => `${JSON.stringify(key)}:${JSON.stringify(value)}`).join(",")}}`);
}

const settings = fc.array(fc.tuple(oddKey, json), { maxLength: 5 }).map(objectOf);
/** Texts of bodies: invalid JSON, JSON with unusual numbers or repeated keys, and deeply nested JSON. */
const raw = fc.oneof(
  fc.string({ unit: "binary", maxLength: 40 }),
  fc.constantFrom('{"a":1e999}', '{"a":1,"a":2}', "{", "[1,2", '"\\ud800"', "nul", `${"[".repeat(9_000)}`, '{"a":.5}'),
  fc.integer({ min: 1, max: 700 }).map((depth) => `{"deep":${"[".repeat(depth)}${"]".repeat(depth)}}`),
);

interface OddRequest {
  verb: "set" | "delete" | "status" | "app" | "admin" | "secure" | "graphql";
  body: unknown;
  text: string;
}

const odd: fc.Arbitrary<OddRequest> = fc
  .tuple(
    fc.constantFrom<OddRequest["verb"]>("set", "set", "set", "delete", "status", "app", "admin", "secure", "graphql"),
    fc.oneof({ weight: 5, arbitrary: settings }, { weight: 1, arbitrary: json }),
    fc.option(raw, { freq: 6 }),
    fc.array(oddKey, { maxLength: 5 }),
  )
  .map(([verb, body, text, keys]) => {
    const wrapped = {
      delete: { keys },
      status: keys,
      admin: { settings: body },
      secure: { settingKey: keys[0], value: body },
    };
    const sent = verb in wrapped ? wrapped[verb as keyof typeof wrapped] : body;
    return { verb, body: sent, text: text ?? JSON.stringify(sent) ?? "null" };
  });

const QUERY = "mutation($s: JSON!) { setSettings(appId: 1, settings: $s) }";

async function send({ rest, appId }: TestService, { verb, body, text }: OddRequest): Promise<Answer> {
  const app = `/v1/apps/${appId}`;
  switch (verb) {
    case "set":
      return rest("POST", `${app}/settings`, { body: text });
    case "delete":
      return rest("DELETE", `${app}/settings`, { body: text });
    case "status":
      return rest("GET", `${app}/settings/status?keys=${encodeURIComponent(text.toWellFormed())}`);
    case "app":
      return rest("PUT", app, { body: text });
    case "admin":
      return rest("PUT", `/v1/admin/apps/${appId}`, { as: "admin", body: text });
    case "secure":
      return rest("POST", `${app}/settings/secure`, { body: text });
    case "graphql":
      return rest("POST", "/graphql", { body: { query: QUERY, variables: { s: body } } });
  }
}

const visible = (body: object): [string, unknown][] => Object.entries(body).filter(([key]) => !key.startsWith("__"));

/** Checks that the stored settings have the values of this body. Skips protected settings; the number -0 may be read as 0. */
async function expectKept({ rest, appId }: TestService, text: string): Promise<void> {
  const { body } = await rest("GET", `/v1/apps/${appId}/settings`);
  for (const [key, value] of visible(JSON.parse(text))) {
    const isSame = Object.hasOwn(body, key) && isDeepStrictEqual(body[key], JSON.parse(JSON.stringify(value)));
    expect(isSame, `${JSON.stringify(key)} reads back the same`).to.equal(true);
  }
}

/** Sends `count` unusual requests, one after the other. Returns the number of accepted ones. The message of a failure contains the seed. */
export async function sendOddBodies(service: TestService, count: number, seed: number): Promise<number> {
  let accepted = 0;
  const clean = async () => {
    const path = `/v1/apps/${service.appId}/settings`;
    const keys = Object.keys((await service.rest("GET", path)).body);
    for (let at = 0; at < keys.length; at += 200) {
      await service.rest("DELETE", path, { body: { keys: keys.slice(at, at + 200) } });
    }
  };
  let turn = 0;
  const property = fc.asyncProperty(odd, async (request) => {
    turn += 1;
    if (turn % 200 === 0) await clean();
    const { http, body } = await send(service, request);
    expect(http).to.be.lessThan(500);
    if (http >= 400 && request.verb !== "graphql") expect(body).to.have.keys("status", "error");
    expect(JSON.stringify(Object.getOwnPropertyNames(Object.prototype).sort())).to.equal(PROTOTYPE);
    for (const error of body.errors ?? []) {
      expect(error.extensions.status).to.be.a("string").that.does.not.equal("INTERNAL_ERROR");
    }
    if (http !== 200) return;
    if (!body.errors) accepted += 1;
    if (request.verb === "set") await expectKept(service, request.text);
    if (request.verb === "graphql" && !body.errors) await expectKept(service, JSON.stringify(request.body));
  });
  await fc.assert(property, { numRuns: count, seed, endOnFailure: true });
  return accepted;
}
