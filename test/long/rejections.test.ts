import { expect } from "chai";
import { type ServiceProcess, startProcess } from "../harness/process.js";
import { until } from "../harness/until.js";
import { editorOf, QUICK } from "../service/support.js";

/** Script that rejects a promise in the service's process at each SIGUSR2. From the second signal on, the error has ECONNREFUSED as code. */
const REJECTING_SCRIPT = `let code;
process.on('SIGUSR2', () => {
  Promise.reject(Object.assign(new Error('a fault'), { code }));
  code = 'ECONNREFUSED';
})`;

describe("a promise of the service that is rejected and not handled", function () {
  this.timeout(90_000);
  let service: ServiceProcess;
  before(() => {
    service = startProcess({ NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(REJECTING_SCRIPT)}` });
  });
  after(() => service.clean());

  it("is logged and counted, and the service keeps serving and stops with the code 0", async () => {
    const editor = await editorOf(service);
    const count = async () =>
      Number(/^svc_unhandled_rejections_total (\d+)$/m.exec(await (await fetch(`${editor.url}/metrics`)).text())?.[1]);
    expect(await count()).to.equal(0);
    service.signal("SIGUSR2");
    await until(async () => (await count()) === 1);
    const [line] = service.log.filter(({ msg }) => String(msg).startsWith("unhandled rejection"));
    expect(line?.["err"]).to.include({ message: "a fault" });
    for (const faults of [2, 3]) {
      service.signal("SIGUSR2");
      await until(async () => (await count()) === faults);
    }
    const lines = service.log.filter(({ msg }) => String(msg).startsWith("unhandled rejection"));
    expect(lines, "those that look like an outage of the database too").to.have.length(3);
    await editor.create("quick", QUICK);
    expect((await editor.call("POST", "/quick/runWithResult", {})).body.result).to.deep.equal({ quick: true });
    service.signal("SIGTERM");
    expect(await service.ended).to.deep.equal({ code: 0, signal: null });
  });
});
