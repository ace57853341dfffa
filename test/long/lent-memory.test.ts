/**
 * Executes runs that create platform objects, such as a Blob. V8 does not count the memory of these objects. This memory must be freed when
 * the thread of the runs ends.
 */
import { readdirSync, readFileSync } from "node:fs";
import { expect } from "chai";
import { type ReachableHost, reachableHost } from "../engine/browser/host.js";
import { resultOf } from "../engine/browser/support.js";

/** Returns the resident memory in MB of the renderers in a process group. */
function measureRendererMegabytes(group: number): number {
  const pages = readdirSync("/proc").map((pid) => {
    try {
      const fields = readFileSync(`/proc/${pid}/stat`, "latin1")
        .split(/\) (?!.*\) )/s)[1]!
        .split(" ");
      const isRenderer = readFileSync(`/proc/${pid}/cmdline`, "latin1").includes("--type=renderer");
      return Number(fields[2]) === group && isRenderer ? Number(fields[21]) : 0;
    } catch {
      // The name in /proc is not a process ID, or the process has ended.
      return 0;
    }
  });
  return (pages.reduce((sum, count) => sum + count, 0) * 4_096) / 1024 / 1024;
}

describe("objects that a realm has passed to its thread", function () {
  this.timeout(180_000);
  let host: ReachableHost;
  before(async () => {
    host = await reachableHost((_request, response) => {
      response.setHeader("Access-Control-Allow-Origin", "*");
      response.end("x");
    });
  });
  after(() => host.stop());

  it("are kept no longer than the thread, which is replaced after a few large runs", async () => {
    const code = `const execute = async () => {
      const kept = [];
      for (let count = 0; count < 8; count += 1) kept.push(new Headers({ name: "x".repeat(1e6) }), new Blob(["y".repeat(1e6)]));
      return kept.length + (await (await fetch("${host.url}")).text());
    }`;
    const run = () => resultOf(host.browsers, code, { mode: "network-isolate" });
    for (let count = 0; count < 5; count += 1) expect(await run()).to.equal("16x");
    const early = measureRendererMegabytes(host.browsers.getBrowserPid()!);
    for (let count = 0; count < 20; count += 1) expect(await run()).to.equal("16x");
    expect(measureRendererMegabytes(host.browsers.getBrowserPid()!) - early).to.be.below(150);
  });
});
