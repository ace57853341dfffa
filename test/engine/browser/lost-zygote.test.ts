/** A browser that can start no renderer stays connected; it is replaced. */
import { readFileSync } from "node:fs";
import { expect } from "chai";
import type { Browsers } from "../../../src/engine/browser/browsers.js";
import { until } from "../../harness/until.js";
import { groupMembers, hangingRun } from "./process-group.js";
import { resultOf, testBrowsers } from "./support.js";

/** The zygote whose children are the renderers, and its parent in the namespace of the browser. */
function zygotesOf(group: number): number[] {
  return groupMembers(group).filter((pid) => {
    const command = readFileSync(`/proc/${pid}/cmdline`, "utf8");
    return command.includes("--type=zygote") && !command.includes("--no-zygote-sandbox");
  });
}

describe("a browser whose zygote process is killed", function () {
  this.timeout(60_000);
  let browsers: Browsers;
  const losses: string[] = [];
  /** Kills the zygotes of the present browser. Answers its pid. */
  function killZygotes(): number {
    const browser = browsers.pid()!;
    // The outer one first would take the inner one with it.
    for (const pid of zygotesOf(browser).reverse()) process.kill(pid, "SIGKILL");
    return browser;
  }
  before(async () => {
    browsers = testBrowsers({ onLoss: (kind) => losses.push(kind) });
    await browsers.start();
  });
  after(() => browsers.stop());

  it("is replaced when the next run needs a page", async () => {
    killZygotes();
    expect(await resultOf(browsers, "const execute = async () => 1", { isolationKey: "2:master" })).to.equal(1);
    expect(losses).to.include("browser");
  });

  it("is replaced while it is idle, so that no run gets a page whose renderer is gone", async () => {
    expect(await resultOf(browsers, "const execute = async () => 2")).to.equal(2);
    const killed = killZygotes();
    await until(() => browsers.ready() && browsers.pid() !== killed);
    expect(await resultOf(browsers, "const execute = async () => 3")).to.equal(3);
  });

  it("loses the run under way at once, not at the run's time limit", async () => {
    const { run, begun } = hangingRun(browsers);
    await begun;
    killZygotes();
    expect(await run).to.deep.include({ ok: false, cause: "browser" });
    expect(await resultOf(browsers, "const execute = async () => 4")).to.equal(4);
  });
});

describe("a browser whose main process is killed under the process that was started", function () {
  this.timeout(60_000);

  it("is replaced", async () => {
    const browsers = testBrowsers();
    await browsers.start();
    const started = browsers.pid()!;
    const isMain = (pid: number) => !readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("--type=");
    // The last one: where nothing wraps the browser, it is the process that was started.
    const main = groupMembers(started).filter(isMain).at(-1)!;
    process.kill(main, "SIGKILL");
    await until(() => browsers.ready() && browsers.pid() !== started);
    expect(await resultOf(browsers, "const execute = async () => 6")).to.equal(6);
    await browsers.stop();
  });
});

describe("a browser that no longer answers", function () {
  this.timeout(60_000);

  it("is replaced, and the run that waits for a page is performed", async () => {
    const browsers = testBrowsers();
    await browsers.start();
    process.kill(-browsers.pid()!, "SIGSTOP");
    expect(await resultOf(browsers, "const execute = async () => 5")).to.equal(5);
    await browsers.stop();
  });
});
