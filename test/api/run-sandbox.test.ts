/** Checks that a run's record names the kind of sandbox that executed its code. */
import { expect } from "chai";
import { startTestService, type TestService } from "../harness/service.js";

const SAMPLE_CODES: [code: string, sandbox: string][] = [
  ["async function execute() { return 1 }", "isolate"],
  ["async function execute() { return typeof fetch }", "network-isolate"],
  ["async function execute() { return document.title }", "document"],
  ["async function execute() { return Math.max(...new Array(100_000).fill(1)) }", "document"],
  ["async function execute() { throw new Error('a') }", "isolate"],
];

describe("the record of a run", () => {
  let service: TestService;
  before(async () => {
    service = await startTestService();
  });
  after(() => service?.stop());

  it("has the sandbox of its code, over REST and GraphQL", async () => {
    const actions = `/v3/apps/${service.appId}/actions`;
    for (const [at, [code, sandbox]] of SAMPLE_CODES.entries()) {
      const body = { name: `sandbox-${at}`, code, active: true, triggers: [{ trigger: "manual" }] };
      const { id } = (await service.rest("POST", actions, { body })).body.action;
      await service.rest("POST", `${actions}/${id}/runWithResult`, { body: {} });
      const found = (await service.rest("GET", `/v3/apps/${service.appId}/runs?actionId=${id}`)).body.runs[0];
      const { run } = (await service.rest("GET", `/v3/apps/${service.appId}/runs/${found.id}`)).body;
      expect([found.sandbox, run.sandbox], code).to.deep.equal([sandbox, sandbox]);
      const query = "query ($appId: Int!, $runId: Int!) { run(appId: $appId, runId: $runId) { sandbox } }";
      const { data } = await service.graphql(query, { appId: service.appId, runId: found.id });
      expect(data.run, code).to.deep.equal({ sandbox });
    }
  });
});
