import { createHash } from "node:crypto";
import { expect } from "chai";
import type { TestAction } from "./client-feed.js";
import { useClientPage } from "./client-page.js";

describe("the debug page", () => {
  const client = useClientPage({ isOpened: false });

  async function openDebugPage(code: string, name = "greet", more: Partial<TestAction> = {}): Promise<void> {
    client.service.feed.actions.set(5, { id: 5, name, code, where: {}, ...more });
    await client.page.goto(`${client.service.origin}/v3/apps/1/actions/5/compile?html`);
  }

  it("runs its action in the page itself, by name and by ID, with the given payload and no settings", async () => {
    await openDebugPage("async function execute(context) { return [location.pathname, context]; }");
    const expected = ["/v3/apps/1/actions/5/compile", { payload: { a: 1 }, settings: {} }];
    for (const nameOrId of ['"greet"', "5"]) {
      expect(await client.run(`Svc.App.V3.Actions.runWithResult(${nameOrId}, { a: 1 })`)).to.deep.equal(expected);
    }
    expect(client.service.received).to.deep.equal([]);
  });

  it("leaves every other action to the service", async () => {
    await openDebugPage("async function execute() {}");
    const path = "/v3/apps/1/actions/other/runWithResult?by=name";
    // The service sends these headers too, so that a document with an opaque origin can read the response.
    const headers = { "access-control-allow-origin": "*", "access-control-allow-headers": "auth-token, content-type" };
    client.service.answers.set(`OPTIONS ${path}`, { headers });
    client.service.answers.set(`POST ${path}`, { headers, body: { result: "from the service" } });
    expect(await client.run(`Svc.App.V3.Actions.runWithResult("other")`)).to.equal("from the service");
    const sent = client.service.received.find(({ method }) => method === "POST")?.headers;
    expect([sent?.["auth-token"], sent?.origin, sent?.cookie]).to.deep.equal(["of-the-page", "null", undefined]);
  });

  it("shows the source under its name to the developer tools", async () => {
    const session = await client.page.createCDPSession();
    const scriptParsed = new Promise((resolve) => {
      session.on("Debugger.scriptParsed", ({ url, scriptId }) => {
        if (url === "svc-action-5-greet.js") resolve(session.send("Debugger.getScriptSource", { scriptId }));
      });
    });
    await session.send("Debugger.enable");
    await openDebugPage("async function execute() { /* mine */ }");
    expect(await scriptParsed)
      .to.have.property("scriptSource")
      .that.includes("/* mine */");
  });

  it("loads the stored version of a dependency, and no other", async () => {
    const kept = createHash("sha256").update("window.dependencyValue = 1;").digest("base64");
    const url = `${client.service.origin}/dependency.js`;
    const assets = [{ name: url, url, path: "/dependency.js", integrity: `sha256-${kept}` }];
    const values = [];
    // For the second page, the server returns another script (with 2 instead of 1), which the page must not execute.
    for (const _ of [1, 2]) {
      await openDebugPage("async function execute() { return window.dependencyValue ?? null; }", "greet", { assets });
      values.push(await client.run("Svc.App.V3.Actions.runWithResult(5)"));
    }
    expect(values).to.deep.equal([1, null]);
    expect(client.service.page.dependencyLoads).to.equal(2);
  });

  it("is no wider than a phone", async () => {
    await client.page.setViewport({ width: 390, height: 800 });
    await openDebugPage("async function execute() {}", "an action with a name that is longer than the line of a phone");
    expect(await client.page.evaluate("document.documentElement.scrollWidth")).to.equal(390);
  });

  it("does not violate its policy and is not broken by a name", async () => {
    await openDebugPage("async function execute() { return 1; }", `"><script>alert(1)</script>`);
    expect(await client.run("Svc.App.V3.Actions.runWithResult(5)")).to.equal(1);
    expect(client.watch).to.deep.equal({ foreign: [], errors: [] });
  });
});
