/** A caller without the right learns of no fault in its request: every route × faulty bodies and queries, generated. */
import { expect } from "chai";
import { startTestService, type TestService } from "../harness/service.js";
import { addressOf, BODY_SAMPLES, type Ids, prepareSamples, withUnknownField } from "./body-samples.js";

type Operation = { requestBody?: object; parameters?: { name: string; in: string }[] };

/** Routes beside the REST table, with the parameters that they read. */
const OTHERS: Record<string, string[]> = {
  "POST /v1/apps/{appId}/data-sources/{ds}/import": ["append", "delimiter", "by"],
  "GET /v1/apps/{appId}/data-sources/{ds}/export": ["format", "spreadsheet", "by"],
  "POST /v1/apps/{appId}/media/files": ["folderId", "name"],
  "GET /v1/apps/{appId}/media/files/{id}/contents": ["expires", "signature", "size", "width", "format", "quality"],
  "GET /v3/apps/{appId}/actions/{id}/compile": ["v", "html"],
};

const REFUSED = / (UNAUTHORIZED|FORBIDDEN|DATA_SOURCE_ACCESS_DENIED)$/;

/** Each field of the body with a value of another type. */
function faulty(body: unknown): unknown[] {
  const replaced = [5, "a", [], null];
  if (Array.isArray(body)) return [{}, [5], [], ...faulty(body[0]).map((one) => [one])];
  if (typeof body !== "object" || body === null) return replaced;
  const fields = Object.keys(body).flatMap((name) => replaced.map((value) => ({ ...body, [name]: value })));
  return [5, true, [], [5], {}, ...fields];
}

describe("the right before any fault", function () {
  this.timeout(180_000);
  let service: TestService;
  let ids: Ids;
  let foreign: string;
  let requests = 0;
  const operations = new Map<string, Operation>();

  before(async () => {
    service = await startTestService({ ROLES: "api", TRUST_PROXY: "1" });
    await service.rest("POST", "/v1/apps/1/data-sources", { body: { name: "closed" } });
    ids = await prepareSamples(service);
    const { app } = (await service.rest("POST", "/v1/admin/apps", { as: "admin", body: { name: "Other" } })).body;
    const made = await service.rest("POST", `/v1/apps/${app.id}/tokens`, { as: "admin", body: { kind: "live" } });
    foreign = made.body.token;
    const { paths } = (await service.rest("GET", "/v1/openapi.json", { as: null })).body;
    for (const [path, methods] of Object.entries<Record<string, Operation>>(paths)) {
      for (const [method, operation] of Object.entries(methods))
        operations.set(`${method.toUpperCase()} ${path}`, operation);
    }
  });
  after(() => service.stop());

  const CALLERS = [
    ["no credential", () => null],
    ["a live token of another app", () => foreign],
    ["a live token", () => "live"],
  ] as const;

  async function refusal(route: string, as: string | null, query: string, body?: unknown) {
    requests += 1;
    // Refusals without a credential are slowed down by address.
    const address = `10.0.${requests >> 8}.${requests & 255}`;
    const headers = { "idempotency-key": "sample", "x-forwarded-for": address };
    const answer = await service.rest(route.split(" ")[0]!, `${addressOf(route, ids)}${query}`, { as, body, headers });
    return `${answer.http} ${answer.body?.status}`;
  }

  /** What a request without a fault is refused with; null if the caller has the right. */
  async function refusalOfRight(route: string, as: string | null, body?: unknown): Promise<string | null> {
    const found = await refusal(route, as, "", body);
    return REFUSED.test(found) ? found : null;
  }

  for (const [name, tokenOf] of CALLERS) {
    it(`holds for faulty bodies from ${name}`, async () => {
      let refused = 0;
      for (const [route, sample] of Object.entries(BODY_SAMPLES)) {
        const expected = await refusalOfRight(route, tokenOf(), sample.body);
        if (expected === null) continue;
        refused += 1;
        for (const body of [...faulty(sample.body), ...withUnknownField(sample).map((one) => one.body)]) {
          expect(await refusal(route, tokenOf(), "", body), `${route} ${JSON.stringify(body)}`).to.equal(expected);
        }
      }
      expect(refused).to.be.above(20);
    });

    it(`holds for faulty queries from ${name}`, async () => {
      let refused = 0;
      const queries = Object.fromEntries(
        [...operations].map(([route, { parameters = [] }]) => [
          route,
          parameters.filter((one) => one.in === "query").map((one) => one.name),
        ]),
      );
      for (const [route, parameters] of Object.entries({ ...queries, ...OTHERS })) {
        const body = BODY_SAMPLES[route]?.body;
        const expected = await refusalOfRight(route, tokenOf(), body);
        if (expected === null) continue;
        for (const parameter of parameters) {
          refused += 1;
          for (const query of [`?${parameter}=%00`, `?${parameter}=a&${parameter}=b`]) {
            expect(await refusal(route, tokenOf(), query, body), `${route}${query}`).to.equal(expected);
          }
        }
      }
      expect(refused).to.be.above(20);
    });
  }

  it("holds for parameters given twice, which are refused everywhere once the right is known", async () => {
    const queries: [string, string[]][] = [...operations].map(([route, { parameters = [] }]) => [
      route,
      parameters.filter((one) => one.in === "query").map((one) => one.name),
    ]);
    for (const [route, parameters] of [...queries, ...Object.entries(OTHERS)]) {
      for (const parameter of parameters) {
        const query = `?${parameter}=1&${parameter}=1`;
        const body = BODY_SAMPLES[route]?.body;
        expect(await refusal(route, "admin", query, body), `${route}${query}`).to.equal("400 REQUEST_INVALID");
      }
    }
    for (const parameter of ["query", "variables", "operationName"]) {
      const twice = `${parameter}=%7B%7D&${parameter}=%7B%7D`;
      const { http, body } = await service.rest("GET", `/graphql?query=%7B__typename%7D&${twice}`, {});
      expect([http, body.errors?.[0]?.extensions.status], parameter).to.deep.equal([400, "REQUEST_INVALID"]);
    }
  });
});
