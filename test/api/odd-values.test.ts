/**
 * Checks that no input causes a 5xx, and that no request loads a module: sends each route and field a NUL character in every text, then
 * other unusual values.
 */
import { readFileSync } from "node:fs";
import { registerHooks } from "node:module";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { expect } from "chai";
import { buildSchema } from "graphql";
import { longTest, sampleOf } from "../harness/samples.js";
import { startTestService, type TestService } from "../harness/service.js";
import { createNulValue, createRandomValueGenerator, numbersFrom, sendFuzzRequests } from "./fuzz.js";

const SCHEMA = fileURLToPath(new URL("../../../schema/schema.graphql", import.meta.url));

describe("unusual values in each position of a request", function () {
  this.timeout(300_000);
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

  const JSON_TYPE = "application/json";
  const NOT_COMPRESSED = "the body must not be compressed; send it without the header Content-Encoding";
  const UTF8 = "the body must be UTF-8 text";
  for (const [path, headers, body, error] of [
    ["/v1/apps/1/data-sources", { "content-encoding": "gzip" }, gzipSync("{}"), `${NOT_COMPRESSED} (got "gzip")`],
    ["/v1/apps/1/data-sources", { "content-encoding": "br, gzip" }, "{}", `${NOT_COMPRESSED} (got "br, gzip")`],
    ["/v1/apps/1/data-sources", { "content-encoding": "Identity" }, "{}", "name is required"],
    [
      "/v1/apps/1/data-sources/1/import",
      { "content-encoding": "gzip" },
      gzipSync("[]"),
      `${NOT_COMPRESSED} (got "gzip")`,
    ],
    ["/oauth/token", { "content-encoding": "gzip" }, gzipSync("a=1"), `${NOT_COMPRESSED} (got "gzip")`],
    [
      "/oauth/token",
      {},
      "{}",
      `the body must be a form, with Content-Type: application/x-www-form-urlencoded (got "${JSON_TYPE}")`,
    ],
    [
      "/v1/apps/1/data-sources",
      { "content-type": "json" },
      "{}",
      'the header Content-Type must be a media type such as application/json (got "json")',
    ],
    [
      "/v1/apps/1/data-sources",
      { "content-type": `${JSON_TYPE}; charset=iso-8859-1` },
      Buffer.from('"ä"', "latin1"),
      `${UTF8} (got Content-Type with charset=iso-8859-1)`,
    ],
  ] as const)
    it(`POST ${path} with ${JSON.stringify(headers)} gets an error that names what the service expects and what it got`, async () => {
      const credential = { "auth-token": service.tokens.editor, "content-type": JSON_TYPE };
      const init = { method: "POST", headers: { ...credential, ...headers }, body };
      const answer = await fetch(`${service.url}${path}`, init);
      const received = (await answer.json()) as { error: string; error_description?: string };
      expect([answer.status, received.error_description ?? received.error]).to.deep.equal([400, error]);
    });

  it("U+0000 in every text of every route, query and mutation is accepted or rejected, never a 5xx, and loads no module", async () => {
    /** URLs of the modules that are loaded during the requests. Loading one would pause all other requests. */
    const loadedModules: string[] = [];
    const hooks = registerHooks({
      load(url, context, nextLoad) {
        if (!url.startsWith("node:")) loadedModules.push(url);
        return nextLoad(url, context);
      },
    });
    try {
      expect((await sendFuzzRequests(service, document, schema, () => createNulValue)).found).to.deep.equal([]);
    } finally {
      hooks.deregister();
    }
    expect(loadedModules).to.deep.equal([]);
  });

  longTest("other unusual values give no 5xx", async () => {
    const draw = numbersFrom(39);
    for (const _round of sampleOf([1, 2, 3], 0, 3)) {
      expect(
        (await sendFuzzRequests(service, document, schema, () => createRandomValueGenerator(draw))).found,
      ).to.deep.equal([]);
    }
  });

  for (const path of [
    "/v3/apps/1/actions?search=%00",
    "/v1/apps/1/media?name=%00",
    "/v1/apps/1/data-sources/%00",
    "/v1/apps/1/data-sources/%00?by=name",
    "/v1/apps/1/data-sources/1/indexes/%00",
    "/v1/apps/1/data-sources/1/export?format=%00",
    "/v3/apps/1/actions/%00/compile?html",
    "/v3/apps/1/runs?search=%00",
    "/v1/apps/1/audit?cursor=%00",
    "/v1/apps/1/env.js?a=%00",
    "/v1/apps/1/media/files/1/contents?format=%00",
  ]) {
    it(`GET ${path} gives no 5xx`, async () => {
      expect((await service.rest("GET", path)).http).to.be.below(500);
    });
  }
});
