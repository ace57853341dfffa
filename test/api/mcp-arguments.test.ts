/** Tests arguments and query parameters of /mcp that a client can easily get wrong: read-only mode, docs pages, and deleted drafts. */
import { expect } from "chai";
import type { TestService } from "../harness/service.js";
import { useSharedService } from "../harness/shared-service.js";

describe("arguments of agents", () => {
  let service: TestService;
  let token: string;

  before(async () => {
    service = await useSharedService("api,runner");
    const scopes = ["read", "manage"];
    const { body } = await service.rest("POST", `/v1/apps/${service.appId}/tokens`, { body: { kind: "api", scopes } });
    token = body.token;
  });
  after(() => service?.stop());

  async function send(method: string, params: object, query = "") {
    return service.rest("POST", `/mcp${query}`, {
      as: null,
      headers: { authorization: `Bearer ${token}`, accept: "application/json, text/event-stream" },
      body: { jsonrpc: "2.0", id: 1, method, params },
    });
  }
  async function call(name: string, args: object): Promise<{ isError: boolean; text: string }> {
    const { content, isError = false } = (await send("tools/call", { name, arguments: args })).body.result;
    return { isError, text: content[0].text };
  }

  it("readonly must be true or false, so that no other value allows changes", async () => {
    for (const query of ["?readonly", "?readonly=1", "?readonly=TRUE", "?readonly=true&readonly=false"]) {
      const { http, body } = await send("tools/list", {}, query);
      expect([http, body.status], query).to.deep.equal([400, "REQUEST_INVALID"]);
      expect(body.error).to.contain("readonly must be true or false");
    }
    const count = async (query: string) => (await send("tools/list", {}, query)).body.result.tools.length;
    expect(await count("?readonly=true")).to.be.below(await count("?readonly=false"));
  });

  it("read a page of the docs by each of its names, and a long page in parts", async () => {
    const { sections } = JSON.parse((await call("search_docs", { query: "publish an action" })).text);
    for (const page of [
      sections[0].address,
      "agents",
      "docs/reference/agents.md",
      "/docs/reference/agents#tools",
      `${service.url}/docs/reference/agents.md`,
    ])
      expect((await call("read_docs", { page })).text, page).to.match(/^# /);
    const first = (await call("read_docs", { page: "rest-routes" })).text;
    const parts = Number(/of the parts 0 to (\d+) of this page/.exec(first)![1]) + 1;
    const texts = [first];
    for (let part = 1; part < parts; part += 1)
      texts.push((await call("read_docs", { page: "rest-routes", part })).text);
    const page = await service.rest("GET", "/docs/reference/rest-routes.md", { as: null });
    expect(texts.map((text) => text.replace(/\n\n\(This is part .*\)$/, "")).join("")).to.equal(page.body);
  });

  it("save_draft with ifUpdatedAt does not create an action that another editor has deleted or renamed", async () => {
    const fields = { code: "async function execute() {}" };
    const ifUpdatedAt = new Date().toISOString();
    const { isError, text } = await call("save_draft", { name: "vanished", fields, ifUpdatedAt });
    expect([isError, text]).to.deep.equal([true, text]);
    expect(text).to.contain('ACTION_NOT_FOUND: the app has no action named "vanished"');
    expect((await call("save_draft", { name: "vanished", fields })).isError).to.equal(false);
  });
});
