/** Tests priorities when processor time is scarce: first the service, then runs that compute little, then runs that compute much. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { getPriority } from "node:os";
import { expect } from "chai";
import { BROWSER_PRIORITY, choosePriority, SESSION_PRIORITY } from "../../../src/engine/browser/watch/priorities.js";
import { until } from "../../harness/until.js";
import { resultOf, runOf, testBrowsers } from "./support.js";

describe("the priority of renderers", () => {
  const browsers = testBrowsers();
  before(() => browsers.start());
  after(() => browsers.stop());

  const readPriorities = (pid: number) =>
    readdirSync(`/proc/${pid}/task`).map((thread) => {
      try {
        return getPriority(Number(thread));
      } catch {
        return BROWSER_PRIORITY;
      }
    });

  it("falls with the processor time that they use", () => {
    expect([0, 0.1, 0.2, 0.7, 1, 14].map(choosePriority)).to.deep.equal([5, 5, 10, 15, 19, 19]);
  });

  it("is below that of the service from the browser's first process on", () => {
    expect(Math.min(...readPriorities(browsers.getBrowserPid()!))).to.equal(BROWSER_PRIORITY);
    expect(getPriority()).to.be.below(BROWSER_PRIORITY);
  });

  if (existsSync("/proc/self/autogroup")) {
    it("is below that of the service's session, because the kernel divides processor time between sessions first", () => {
      // The file `autogroup` of a process is empty as long as neither the process nor its ancestors have started a session.
      const readNice = (pid: number) =>
        Number(/ nice (-?\d+)$/m.exec(readFileSync(`/proc/${pid}/autogroup`, "utf8"))?.[1] ?? 0);
      expect(readNice(browsers.getBrowserPid()!)).to.equal(SESSION_PRIORITY);
      expect(readNice(process.pid)).to.be.below(SESSION_PRIORITY);
    });
  }

  it("is the lowest for one whose run keeps cores busy with workers", async () => {
    const abort = new AbortController();
    const code = `const execute = async () => {
      const url = URL.createObjectURL(new Blob(["for (;;);"]));
      for (let n = 0; n < 14; n += 1) new Worker(url);
      await new Promise(() => {});
    }`;
    const busy = browsers.run(runOf(code, { signal: abort.signal }));
    const last = () =>
      readdirSync("/proc")
        .filter((name) => /^\d+$/.test(name))
        .some((name) => {
          try {
            return Math.max(...readPriorities(Number(name))) >= 15 && Math.min(...readPriorities(Number(name))) >= 15;
          } catch {
            return false;
          }
        });
    await until(last);
    expect(await resultOf(browsers, "const execute = async () => 1", { isolationKey: "2:master" })).to.equal(1);
    abort.abort();
    await busy;
  });
});
