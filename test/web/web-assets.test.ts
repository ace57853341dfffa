import { readFileSync, statSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { type GraphqlService, startGraphqlService } from "./graphql-service.js";

const WEB_FOLDER = fileURLToPath(new URL("../../web", import.meta.url));
const FIRST_LOAD_MAX_BYTES = 250 * 1024;
/**
 * Maximum size in bytes of the editor's files in a build with fast compression. test/long/service-build.test.ts checks a build with
 * `--smallest`, as in the container image.
 */
const EDITOR_MAX_BYTES = 650 * 1000;

describe("the built files of Studio", () => {
  const { studio } = JSON.parse(readFileSync(`${WEB_FOLDER}/pages.json`, "utf8"));
  const sizeOf = (files: string[], compression: "gz" | "br") =>
    files.reduce((sum, file) => sum + statSync(`${WEB_FOLDER}${file}.${compression}`).size, 0);

  it("take less than 250 KB compressed for the first load", () => {
    const { script, scriptsBefore, scriptsAfter, style } = studio;
    expect(sizeOf([script, ...scriptsBefore, ...scriptsAfter, style], "gz")).to.be.within(1, FIRST_LOAD_MAX_BYTES);
  });

  it("take less than 650 KB compressed for the editor", () => {
    expect(sizeOf(studio.parts.editor, "br")).to.be.within(1, EDITOR_MAX_BYTES);
  });
});

describe("the service's own pages and files", () => {
  let service: GraphqlService;

  before(async () => {
    service = await startGraphqlService();
  });

  after(() => service.close());

  async function getPath(path: string, requestHeaders: Record<string, string> = {}) {
    const reply = await fetch(`${service.origin}${path}`, { headers: requestHeaders });
    return { status: reply.status, headers: reply.headers, text: await reply.text() };
  }
  const page = () => getPath("/graphql", { accept: "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8" });

  it("return GET /graphql to a browser as a page that allows no eval, no inline script and no frame", async () => {
    const { headers } = await page();
    const policy = headers.get("content-security-policy") ?? "";
    expect(headers.get("content-type")).to.equal("text/html; charset=utf-8");
    expect(policy).to.contain("script-src 'self';").and.to.contain("frame-ancestors 'none'");
    expect(policy).not.to.match(/unsafe-eval|https?:|\*/);
    expect(headers.get("x-content-type-options")).to.equal("nosniff");
    expect(headers.get("referrer-policy")).to.equal("no-referrer");
  });

  it("leave GET /graphql to GraphQL for every other client", async () => {
    const reply = await getPath("/graphql?query={token}", {
      accept: "application/json",
      "apollo-require-preflight": "1",
      "auth-token": "mine",
    });
    expect(JSON.parse(reply.text)).to.deep.equal({ data: { token: "mine" } });
  });

  it("serve hashed files compressed and cacheable without expiry", async () => {
    const script = /src="([^"]+\.js)"/.exec((await page()).text)?.[1] ?? "";
    const { headers, status } = await getPath(script, { "accept-encoding": "gzip" });
    expect(status).to.equal(200);
    expect(headers.get("content-type")).to.match(/^(text|application)\/javascript/);
    expect(headers.get("content-encoding")).to.equal("gzip");
    expect(headers.get("vary")).to.contain("accept-encoding");
    expect(headers.get("cache-control")).to.equal("public, max-age=31536000, immutable");
  });

  it("serve scripts that are strict within their function: strict as a whole, each run would compile one again", async () => {
    for (const path of ["svc.js", "svc-run.js", "packages/svc-csv.js", "packages/svc-session.js"])
      expect((await getPath(`/client/${path}`)).text, path).to.match(/^\(\(\)=>\{"use strict";/);
  });

  it("serve nothing outside their folders", async () => {
    for (const path of ["/assets/../pages.json", "/assets/%2e%2e/pages.json", "/assets/..%2fpages.json", "/assets/"]) {
      expect((await getPath(path)).status, path).to.be.within(400, 404);
    }
  });
});
