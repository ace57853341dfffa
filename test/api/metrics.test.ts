import { expect } from "chai";
import { publishDirectly } from "../harness/production-copies.js";
import { startTestService, type TestService } from "../harness/service.js";

describe("the metrics", () => {
  let service: TestService;
  before(async () => {
    service = await startTestService({ ROLES: "api" });
  });
  after(() => service.stop());

  const read = async () => {
    const response = await fetch(`${service.url}/metrics`);
    return { type: response.headers.get("content-type"), text: await response.text() };
  };

  it("are told in the format of Prometheus, each with its kind", async () => {
    const { type, text } = await read();
    expect(type).to.match(/^text\/plain; version=0\.0\.4/);
    const lines = text.trimEnd().split("\n");
    const samples = lines.filter((line) => !line.startsWith("#"));
    for (const line of samples) expect(line).to.match(/^svc_[a-z_]+(\{role="[a-z]+"\})? \d+(\.\d+)?$/);
    const named = new Set(samples.map((line) => line.split(/[{ ]/)[0]));
    for (const name of named) expect(lines).to.include(`# TYPE ${name} gauge`);
    expect(text).to.include('svc_instances{role="api"} 1\n');
  });

  it("show how long the oldest due tick has waited where no scheduler claims it", async () => {
    expect((await read()).text).to.include("svc_schedule_lag_seconds 0\n");
    const wanted = { name: "late", triggers: [{ trigger: "schedule" }], frequency: "*/2 * * * *" };
    await publishDirectly(service.db, service.appId, [wanted]);
    await service.db.query("UPDATE schedule SET next_tick = now() - interval '90 seconds'");
    const { text } = await read();
    expect(Number(/^svc_schedule_lag_seconds (.*)$/m.exec(text)?.[1])).to.be.within(90, 120);
    expect(text).to.include("svc_schedules 1\n");
  });
});
