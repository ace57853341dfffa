/** Sends large GraphQL variables with many faults. Their rejection must be as cheap and as short as the rejection of one fault. */
import { expect } from "chai";
import { sampleOf } from "../harness/samples.js";
import { startTestService, type TestService } from "../harness/service.js";

const QUERY = "mutation ($data: CreateActionInput!) { createAction(appId: 1, data: $data) { id } }";
const VALUE_CANARY = "TELL-NOBODY";

const unknownFields = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, i) => [`${VALUE_CANARY}${i}`, 1]));

const ATTEMPTS: [string, object][] = [
  ["40,000 fields that the input has not", unknownFields(40_000)],
  ["40,000 such fields further in", { triggers: [{ where: unknownFields(40_000) }] }],
  ["100,000 triggers that are none", { triggers: Array.from({ length: 100_000 }, () => 7) }],
  [
    "50 values of no enum, 16 KB each",
    { triggers: Array.from({ length: 50 }, () => ({ trigger: VALUE_CANARY.repeat(1_500) })) },
  ],
  ["one value of 1 MB", { environment: VALUE_CANARY.repeat(80_000) }],
];

describe("GraphQL variables with many faults", () => {
  let service: TestService;
  before(async () => {
    service = await startTestService({ ROLES: "api" });
  });
  after(() => service.stop());

  for (const [title, data] of ATTEMPTS) {
    it(`are rejected with one short error, over HTTP: ${title}`, async () => {
      const { http, body } = await service.rest("POST", "/graphql", { body: { query: QUERY, variables: { data } } });
      expect(http).to.equal(200);
      expect(body.errors).to.have.length(1);
      expect(body.errors[0].extensions).to.deep.equal({ status: "REQUEST_INVALID" });
      expect(JSON.stringify(body).length).to.be.below(500);
    });
  }

  for (const [title, data] of sampleOf(ATTEMPTS, 0, 3)) {
    it(`are rejected with one short error, over a socket: ${title}`, async () => {
      const client = service.socket();
      const refusal = await client
        .iterate({ query: QUERY, variables: { data } })
        .next()
        .catch((errors: { message: string; extensions: object }[]) => errors);
      await client.dispose();
      expect(refusal).to.have.length(1);
      expect(JSON.stringify(refusal).length).to.be.below(500);
      expect(JSON.stringify(refusal)).to.include("REQUEST_INVALID");
    });
  }

  it("are rejected with the field's error at 900 levels, and as an invalid request at 50,000 levels", async () => {
    const query = "mutation ($settings: JSON!) { setSettings(appId: 1, settings: $settings) }";
    const sendNestedSettings = async (levels: number) => {
      const nested = "[".repeat(levels) + "]".repeat(levels);
      const body = `{"query":${JSON.stringify(query)},"variables":{"settings":${nested}}}`;
      const headers = { "auth-token": service.tokens.editor, "content-type": "application/json" };
      const response = await fetch(`${service.url}/graphql`, { method: "POST", headers, body });
      return ((await response.json()) as { errors: { extensions: object }[] }).errors[0]!.extensions;
    };
    expect(await sendNestedSettings(50_000)).to.deep.equal({ status: "REQUEST_INVALID" });
    expect(await sendNestedSettings(900)).to.deep.equal({ status: "SETTINGS_INVALID" });
  });
});
