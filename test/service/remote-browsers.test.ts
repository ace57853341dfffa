import { expect } from "chai";
import { ConfigError, readConfig } from "../../src/config.js";
import { type RemoteChromium, startRemoteChromium } from "../harness/remote-chromium.js";
import { longTest } from "../harness/samples.js";
import { startTestService, type TestService } from "../harness/service.js";
import { until } from "../harness/until.js";

describe("a service on browsers that were started elsewhere", () => {
  let remotes: RemoteChromium[];
  let service: TestService;

  before(async () => {
    remotes = await Promise.all([startRemoteChromium(), startRemoteChromium()]);
    const endpoints = remotes.map(({ endpoint }) => endpoint).join(",");
    service = await startTestService({ BROWSER_WS_ENDPOINTS: endpoints, CHROME_PATH: "/nowhere/chrome" });
  });
  after(async () => {
    await service.stop();
    await Promise.all(remotes.map((remote) => remote.kill()));
  });

  async function create(name: string, body: string): Promise<void> {
    const code = `async function execute(context) { ${body} }`;
    const fields = { name, code, active: true, triggers: [{ trigger: "manual" }] };
    expect((await service.rest("POST", "/v3/apps/1/actions", { body: fields })).http).to.equal(201);
  }

  longTest("runs actions that call its own API", async () => {
    await create("inner", "return { got: context.payload }");
    await create("outer", 'return Svc.App.V3.Actions.runWithResult("inner", { from: "a run" })');
    for (let i = 0; i < 4; i += 1) {
      const { http, body } = await service.rest("POST", "/v3/apps/1/actions/outer/runWithResult", { body: {} });
      expect(http, JSON.stringify(body)).to.equal(200);
      expect(body.result).to.deep.equal({ got: { from: "a run" } });
    }
  });

  longTest("is ready while one of them is available, and not if none is", async () => {
    const ready = async () => (await service.rest("GET", "/health/ready", { as: null })).http;
    await remotes[0]!.kill();
    expect((await service.rest("POST", "/v3/apps/1/actions/inner/runWithResult", { body: {} })).http).to.equal(200);
    expect(await ready()).to.equal(200);
    await remotes[1]!.kill();
    await until(async () => (await ready()) === 503);
  });
});

describe("the addresses of browsers", () => {
  const faults = (environment: Record<string, string>): string => {
    try {
      readConfig(environment);
      return "";
    } catch (error) {
      expect(error).to.be.instanceOf(ConfigError);
      return (error as Error).message;
    }
  };

  for (const wrong of ["http://a:1", "ws://?", "a:9222", "ws://a:1,", "ws://a:1#b", "ws://a:99999"]) {
    it(`are rejected by name, and not repeated, as ${wrong}`, () => {
      const message = faults({ BROWSER_WS_ENDPOINTS: wrong, EGRESS_PROXY_HOST: "0.0.0.0" });
      expect(message).to.include("BROWSER_WS_ENDPOINTS must be ws:// or wss:// addresses");
      expect(message).to.include("EGRESS_PROXY_HOST must be one IP address");
      expect(message).to.not.include(wrong);
    });
  }

  it("may be several, with credentials in them", () => {
    const { browserWsEndpoints } = readConfig({ BROWSER_WS_ENDPOINTS: "ws://a:1/, wss://u:p@b/x?token=t" });
    expect(browserWsEndpoints).to.deep.equal(["ws://a:1/", "wss://u:p@b/x?token=t"]);
  });
});
