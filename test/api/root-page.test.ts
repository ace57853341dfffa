/** Tests GET /: it redirects browsers to Studio, and returns the URLs of the service's parts to programs. */
import { expect } from "chai";
import { startTestService, type TestService } from "../harness/service.js";

describe("the root address", () => {
  let service: TestService;
  before(async () => {
    service = await startTestService({ ROLES: "api", PUBLIC_URL: "https://example.com/actions" });
  });
  after(() => service.stop());

  const open = (accept: string) => fetch(service.url, { headers: { accept }, redirect: "manual" });

  it("redirects a browser to Studio, with the path of PUBLIC_URL", async () => {
    const reply = await open("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8");
    expect([reply.status, reply.headers.get("location")]).to.deep.equal([302, "/actions/studio"]);
    expect(reply.headers.get("vary")?.toLowerCase()).to.contain("accept");
  });

  it("gives a program the addresses of the API, GraphiQL, Studio and the documentation, which all exist", async () => {
    for (const accept of ["*/*", "application/json"]) {
      const reply = await open(accept);
      expect(reply.status).to.equal(200);
      const received = (await reply.json()) as Record<string, string>;
      expect(received).to.include({
        studio: "https://example.com/actions/studio",
        graphql: "https://example.com/actions/graphql",
      });
      expect(received).to.include.keys("api", "graphiql", "docs", "health");
      for (const name of ["studio", "graphiql", "docs", "llms", "openapi", "health"]) {
        const path = received[name]!.replace("https://example.com/actions", service.url);
        const answer = await fetch(path, { headers: { accept: "text/html" } });
        await answer.body?.cancel();
        expect(answer.status, name).to.equal(200);
      }
    }
  });
});
