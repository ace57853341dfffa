/** Tests calls of `Svc.AI` to which the provider responds during an outage of the service's database. */
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { expect } from "chai";
import { KEY, MANUAL, OPENAI_ANSWER } from "../api/ai-answers.js";
import { type Network, startNetwork } from "../harness/network.js";
import { startTestService, type TestService } from "../harness/service.js";
import { until } from "../harness/until.js";

const OUTAGE_MS = 2_000;

describe("a call of Svc.AI during an outage of the database", () => {
  let network: Network;
  let service: TestService;
  let provider: Server;
  before(async () => {
    network = await startNetwork();
    provider = createServer((request, response) => {
      request.resume().on("end", () => {
        network.cut();
        setTimeout(() => network.restore(), OUTAGE_MS);
        response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(OPENAI_ANSWER));
      });
    });
    provider.listen(0, "127.0.0.1");
    await once(provider, "listening");
    service = await startTestService({ ROLES: "api,runner", ALLOW_PRIVATE_NETWORK: "1" }, (databaseUrl) => {
      network.setTarget(databaseUrl);
      return Object.assign(new URL(databaseUrl), { port: new URL(network.url).port }).href;
    });
  });
  after(async () => {
    network.restore();
    await service?.stop();
    await network.stop();
    provider.close();
  });

  it("returns the provider's answer, and stores the usage and the log event once", async () => {
    const baseUrl = `http://127.0.0.1:${(provider.address() as AddressInfo).port}/v1`;
    const setting = { provider: "openai", baseUrl, key: KEY, models: ["gpt-4o-mini"] };
    await service.rest("POST", `/v1/apps/${service.appId}/settings`, { body: { __ai: setting } });
    const code = `async function execute() {
      const { message } = await Svc.AI.completions({ messages: [{ role: "user", content: "Hello" }] });
      return message.content;
    }`;
    const actions = `/v3/apps/${service.appId}/actions`;
    await service.rest("POST", actions, { body: { name: "asking", code, ...MANUAL } });
    const { runId } = (await service.rest("POST", `${actions}/asking/run`, { body: {} })).body;
    const run = await until(async () => {
      const [row] = await service.db.query(
        `SELECT run.state, entry.data->'result'->>'data' AS result
           FROM run JOIN execution_log AS entry ON entry.id = run.log_id WHERE run.id = $1`,
        [runId],
      );
      return row;
    });
    expect(run).to.deep.equal({ state: "completed", result: "Hello there" });
    const usage = await service.db.query("SELECT requests, tokens FROM ai_usage WHERE app_id = $1", [service.appId]);
    expect(usage).to.deep.equal([{ requests: 1, tokens: 12 }]);
    const events = await service.db.query("SELECT data FROM log_event WHERE type = 'ai.completions'");
    expect(events).to.have.length(1);
  });
});
