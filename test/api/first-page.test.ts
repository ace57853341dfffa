/** GET /: a person's browser is led to Studio, a program told where everything is. */
import { readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { startTestService, type TestService } from "../harness/service.js";

describe("The first address", () => {
  let service: TestService;
  before(async () => {
    service = await startTestService({ ROLES: "api", PUBLIC_URL: "https://example.com/actions" });
  });
  after(() => service.stop());

  const open = (accept: string) => fetch(service.url, { headers: { accept }, redirect: "manual" });

  it("leads a browser to Studio, under the path that the service has for browsers", async () => {
    const reply = await open("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8");
    expect([reply.status, reply.headers.get("location")]).to.deep.equal([302, "/actions/studio"]);
    expect(reply.headers.get("vary")?.toLowerCase()).to.contain("accept");
  });

  it("tells a program the addresses of the API, GraphiQL, Studio and the documentation, which are there", async () => {
    for (const accept of ["*/*", "application/json"]) {
      const reply = await open(accept);
      expect(reply.status).to.equal(200);
      const told = (await reply.json()) as Record<string, string>;
      expect(told).to.include({
        studio: "https://example.com/actions/studio",
        graphql: "https://example.com/actions/graphql",
      });
      expect(told).to.include.keys("api", "graphiql", "docs", "health");
      for (const name of ["studio", "graphiql", "docs", "health"]) {
        const path = told[name]!.replace("https://example.com/actions", service.url);
        const answer = await fetch(path, { headers: { accept: "text/html" } });
        await answer.body?.cancel();
        expect(answer.status, name).to.equal(200);
      }
    }
  });

  it("has the documentation as text, which no browser takes for a page", async () => {
    const reply = await fetch(`${service.url}/docs`);
    expect(reply.headers.get("content-type")).to.equal("text/plain; charset=utf-8");
    expect(reply.headers.get("x-content-type-options")).to.equal("nosniff");
    expect(await reply.text()).to.match(/^# Svc App Actions/);
  });

  it("has each page of the documentation where the links of the others lead", async () => {
    const seen = new Map<string, number>();
    const follow = async (address: URL): Promise<void> => {
      if (seen.has(address.pathname)) return;
      seen.set(address.pathname, 0);
      const reply = await fetch(address);
      const text = await reply.text();
      seen.set(address.pathname, reply.status);
      expect(reply.headers.get("content-type"), address.pathname).to.equal("text/plain; charset=utf-8");
      // Pictures and folders stay in the checkout: what is text needs none.
      for (const [, link] of text.matchAll(/(?<!!)\[[^\]]*\]\(([^)#:\s]+(?:\.md|LICENSE)|LICENSE)(?:#[^)]*)?\)/g)) {
        await follow(new URL(link!, address));
      }
    };
    await follow(new URL(`${service.url}/docs`));
    expect([...seen].filter(([, status]) => status !== 200)).to.deep.equal([]);
    const pages = readdirSync(fileURLToPath(new URL("../../../docs", import.meta.url)));
    expect([...seen.keys()]).to.include.members(
      pages.filter((name) => name.endsWith(".md")).map((name) => `/docs/${name}`),
    );
  });

  it("has nothing else under /docs, whatever the name", async () => {
    for (const name of [
      "nothing.md",
      "..%2fpackage.json",
      "..%2fREADME.md",
      "%2e%2e%2fREADME.md",
      "a%00.md",
      "pictures",
    ]) {
      expect((await service.rest("GET", `/docs/${name}`)).http, name).to.be.within(400, 404);
    }
  });
});
