/** Tests a browser on an overloaded machine: the browser responds late, because it gets almost no processor time. Its run continues. */
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { availableParallelism, setPriority } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import { expect } from "chai";
import { groupMembers } from "../engine/browser/process-group.js";
import { resultOf, testBrowsers } from "../engine/browser/support.js";

/** Duration of the load in milliseconds: longer than the time after which the service replaces a browser that does not respond. */
const LOAD_MS = 15_000;
const LOWEST_PRIORITY = 19;
const LOOPS_PER_CORE = 4;

/** Gives all threads and the session of the browser the lowest priority. The kernel can schedule all threads of a session as one unit. */
function lowerPriority(browser: number): void {
  const session = `/proc/${browser}/autogroup`;
  if (existsSync(session)) writeFileSync(session, String(LOWEST_PRIORITY));
  for (const pid of groupMembers(browser))
    for (const thread of readdirSync(`/proc/${pid}/task`)) setPriority(Number(thread), LOWEST_PRIORITY);
}

describe("a browser that gets almost no processor time", () => {
  it("is not replaced, and its run ends with its result", async () => {
    const browsers = testBrowsers();
    await browsers.start();
    const loops: ChildProcess[] = [];
    try {
      const browser = browsers.getBrowserPid()!;
      lowerPriority(browser);
      for (let at = 0; at < LOOPS_PER_CORE * availableParallelism(); at += 1)
        loops.push(spawn("sh", ["-c", "while :; do :; done"], { stdio: "ignore", detached: true }));
      // Each console line also causes work in the browser's own processes.
      const code =
        "const execute = () => { for (let at = 0; at < 9_000; at += 1) console.log(`line ${at}`); return 5 }";
      const result = resultOf(browsers, code, { timeoutMs: 120_000 });
      await delay(LOAD_MS);
      for (const loop of loops) loop.kill("SIGKILL");
      expect(await result).to.equal(5);
      expect(browsers.getBrowserPid()).to.equal(browser);
    } finally {
      for (const loop of loops) loop.kill("SIGKILL");
      await browsers.stop();
    }
  });
});
