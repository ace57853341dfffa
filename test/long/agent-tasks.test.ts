/** Tests that a scripted agent completes twelve tasks with /mcp and the command line only. `npm run agent-bench` counts its calls. */
import { expect } from "chai";
import { AGENT_SCOPES, runTasks } from "../../bench/agent/bench.js";
import { startTestService, type TestService } from "../harness/service.js";

describe("a coding agent", function () {
  this.timeout(600_000);
  let service: TestService;
  before(async () => {
    service = await startTestService();
  });
  after(() => service?.stop());

  it("does twelve tasks without Studio", async () => {
    const { url, appId, tokens } = service;
    const body = { kind: "api", name: "agent", scopes: AGENT_SCOPES };
    const { token } = (await service.rest("POST", `/v1/apps/${appId}/tokens`, { body })).body;
    const results = await runTasks({ url, appId, agentToken: token, personToken: tokens.editor });
    expect(results.filter(({ error }) => error !== null)).to.deep.equal([]);
    expect(results).to.have.length(12);
    for (const { title, mcp, cli } of results) expect(mcp + cli, title).to.be.above(0);
  });
});
