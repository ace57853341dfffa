/** Tests priorities if processor time is scarce. The service comes first, then runs that compute little, then runs that compute much. */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { getPriority } from "node:os";
import { promisify } from "node:util";
import { expect } from "chai";
import {
  BROWSER_AUTOGROUP_NICE_VALUE,
  BROWSER_NICE_VALUE,
  chooseRendererPriority,
  RendererPriorities,
} from "../../../src/engine/browser/watch/priorities.js";
import { isAnyThreadRunnable } from "../../../src/engine/browser/watch/processes.js";
import { until } from "../../harness/until.js";
import { resultOf, runOf, testBrowsers } from "./support.js";

const SETTLE_MS = 600;
const LOWEST_PRIORITY = 19;
const BUSY_CORES = 2;

describe("the priority of a thread", () => {
  const children: ChildProcess[] = [];
  const startChild = () => {
    const child = spawn("sleep", ["60"]);
    children.push(child);
    return child;
  };
  afterEach(async () => {
    for (const child of children.splice(0)) {
      child.kill();
      if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
    }
  });

  /** Reports a renderer that uses several cores, for at least SETTLE_MS and until it has the lowest priority. */
  async function reportBusyRenderer(pid: number, listThreads: () => number[]): Promise<void> {
    const priorities = new RendererPriorities(listThreads);
    const startedAt = performance.now();
    await until(() => {
      const spentMs = performance.now() - startedAt;
      priorities.update([{ pid, cpuMs: spentMs * BUSY_CORES, threads: 2, nice: getPriority(pid) }]);
      return spentMs > SETTLE_MS && getPriority(pid) === LOWEST_PRIORITY;
    });
  }

  it("is set although another thread of the renderer ends at the same moment", async () => {
    const [ended, running] = [startChild(), startChild()];
    ended.kill();
    await once(ended, "exit");
    await reportBusyRenderer(running.pid!, () => [ended.pid!, running.pid!]);
    expect(getPriority(running.pid!)).to.equal(LOWEST_PRIORITY);
  });

  it("is set by the next update if the threads could not be listed", async () => {
    const running = startChild();
    let calls = 0;
    await reportBusyRenderer(running.pid!, () => {
      calls += 1;
      if (calls === 1) throw new Error("too many open files");
      return [running.pid!];
    });
    expect([calls, getPriority(running.pid!)]).to.deep.equal([2, LOWEST_PRIORITY]);
  });

  it("is the lowest for each of six renderers that share two cores, but not for one that uses little", async () => {
    const CORES = 2;
    const busy = Array.from({ length: 6 }, startChild);
    const light = startChild();
    const moveProcess = async () => false;
    const priorities = new RendererPriorities((pid) => [pid], { moveProcess }, CORES);
    const startedAt = performance.now();
    const getBusyPriorities = () => busy.map(({ pid }) => getPriority(pid!));
    await until(() => {
      const spentMs = performance.now() - startedAt;
      const report = ({ pid }: ChildProcess, cores: number) => ({
        pid: pid!,
        cpuMs: spentMs * cores,
        threads: 2,
        nice: getPriority(pid!),
      });
      priorities.update([...busy.map((child) => report(child, CORES / busy.length)), report(light, 0.02)]);
      return spentMs > SETTLE_MS && getBusyPriorities().every((priority) => priority === LOWEST_PRIORITY);
    });
    expect([getBusyPriorities(), getPriority(light.pid!)]).to.deep.equal([
      Array(6).fill(LOWEST_PRIORITY),
      BROWSER_NICE_VALUE,
    ]);
  });

  it("does not hide the other threads of the browser if it ends while they are read", async () => {
    const threads: string[] = [];
    const readStat = (path: string) => {
      threads.push(path);
      if (threads.length === 1) throw new Error("no such file");
      return ["R"];
    };
    expect(isAnyThreadRunnable([process.pid], readStat)).to.equal(true);
    expect(threads.length).to.equal(2);
  });
});

describe("the priority of a browser", () => {
  it("stays that of a service that was started with a lower one, and causes no error", async () => {
    const module = new URL("../../../src/engine/browser/watch/priorities.js", import.meta.url).href;
    const program = `
      import { getPriority, setPriority } from "node:os";
      import { lowerBrowserPriority } from "${module}";
      setPriority(10);
      // Root could raise the priority again, so the program continues as another user.
      if (process.getuid() === 0) process.setuid(65534);
      lowerBrowserPriority(process.pid);
      console.log(getPriority());`;
    const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "--eval", program]);
    expect(stdout).to.equal("10\n");
  });
});

describe("the priority of renderers", () => {
  const browsers = testBrowsers();
  before(() => browsers.start());
  after(() => browsers.stop());

  const readPriorities = (pid: number) =>
    readdirSync(`/proc/${pid}/task`).map((thread) => {
      try {
        return getPriority(Number(thread));
      } catch {
        return BROWSER_NICE_VALUE;
      }
    });

  it("falls with the processor time that they use", () => {
    expect([0, 0.1, 0.2, 0.7, 1, 14].map(chooseRendererPriority)).to.deep.equal([5, 5, 10, 15, 19, 19]);
  });

  it("is below that of the service from the browser's first process on", () => {
    expect(Math.min(...readPriorities(browsers.getBrowserPid()!))).to.equal(BROWSER_NICE_VALUE);
    expect(getPriority()).to.be.below(BROWSER_NICE_VALUE);
  });

  if (existsSync("/proc/self/autogroup")) {
    it("is below that of the service's session, because the kernel divides processor time between sessions first", () => {
      // The file is empty for a process without a group of its own (autogroup). Its priority then counts as 0.
      const readNice = (pid: number) =>
        Number(/ nice (-?\d+)$/m.exec(readFileSync(`/proc/${pid}/autogroup`, "utf8"))?.[1] ?? 0);
      expect(readNice(browsers.getBrowserPid()!)).to.equal(BROWSER_AUTOGROUP_NICE_VALUE);
      expect(readNice(process.pid)).to.be.below(BROWSER_AUTOGROUP_NICE_VALUE);
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
