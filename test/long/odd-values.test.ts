/**
 * Sends unusual values in each position of each route and field. No request may cause a 5xx or pause the service's event loop.
 * ODD_REQUESTS sets the number of requests (20,000 by default).
 */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { buildSchema } from "graphql";
import { createRandomValueGenerator, numbersFrom, sendFuzzRequests } from "../api/fuzz.js";
import { readLongestPause } from "../harness/neighbour.js";
import { startTestService, type TestService } from "../harness/service.js";

const REQUESTS = Number(process.env["ODD_REQUESTS"] ?? 20_000);
const PAUSE_MAX_MS = 100;
const SCHEMA = fileURLToPath(new URL("../../../schema/schema.graphql", import.meta.url));

describe("unusual values in each position of a request", function () {
  this.timeout(0);
  const schema = buildSchema(readFileSync(SCHEMA, "utf8"));
  let service: TestService;
  // biome-ignore lint/suspicious/noExplicitAny: an OpenAPI document has no static type
  let document: any;

  before(async () => {
    service = await startTestService({ ROLES: "api" });
    document = (await service.rest("GET", "/v1/openapi.json")).body;
    const code = "async function execute() { return 1; }";
    await service.rest("POST", "/v3/apps/1/actions", { body: { name: "first", code } });
    await service.rest("POST", "/v1/apps/1/data-sources", { body: { name: "people", entries: [{ a: 1 }] } });
  });
  after(() => service.stop());

  it(`cause no 5xx in ${REQUESTS} requests, and no pause of the event loop over ${PAUSE_MAX_MS} ms`, async () => {
    const draw = numbersFrom(20_000);
    /** Longest pause of the service's event loop in each round of requests, in milliseconds. */
    const pauses: number[] = [];
    await readLongestPause(service.url);
    for (let sent = 0; sent < REQUESTS; ) {
      const { found, count } = await sendFuzzRequests(service, document, schema, () =>
        createRandomValueGenerator(draw),
      );
      expect(found).to.deep.equal([]);
      sent += count;
      pauses.push(Math.round(await readLongestPause(service.url)));
      process.stdout.write(`      ${sent} requests, longest pause ${pauses.at(-1)} ms\n`);
    }
    expect(pauses.filter((ms) => ms > PAUSE_MAX_MS)).to.deep.equal([]);
  });
});
