/** Tests the browser's life cycle: its sandbox, its time limits for runs, its failure and its end. */

import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import pino from "pino";
import { BROWSER_START_TIMEOUT_MS } from "../../../src/engine/browser/browser-source.js";
import type { Browsers } from "../../../src/engine/browser/browsers.js";
import { EVALUATION_MODES, type PageRunRequest } from "../../../src/engine/browser/run.js";
import { longTest, sampleOf } from "../../harness/samples.js";
import { sharedBrowserEndpoint } from "../../harness/shared-chromium.js";
import { until } from "../../harness/until.js";
import { groupMembers, largestRenderer, runWhileRenderersDie, startHangingRun } from "./process-group.js";
import { createRemoteSource, failureOf, resultOf, runOf, testBrowsers } from "./support.js";

/** Period in milliseconds in which the test measures processor time. */
const QUIET_WINDOW_MS = 500;
/** Maximum processor time of idle processes in this period, in ticks of 10 ms. An endless loop would use up to 50 ticks. */
const QUIET_TICKS = 4;

/** Returns the folders of this process's browsers. */
const allFolders = () => readdirSync(tmpdir()).filter((name) => name.startsWith(`svc-chromium-${process.pid}-`));
/** Folders of browsers that other test files have started in this process. */
let earlierFolders: readonly string[] = [];
const recordEarlierFolders = () => {
  earlierFolders = allFolders();
};
const folders = () => allFolders().filter((name) => !earlierFolders.includes(name));

/** Starts an idle process with the browser's folder on its command line. Resolves as soon as the process runs. */
async function idleProcessOn(folder: string): Promise<ChildProcess> {
  const script = "setInterval(() => {}, 1e6); console.log('on')";
  const child = spawn(process.execPath, ["-e", script, "--", `--user-data-dir=${folder}`]);
  await once(child.stdout, "data");
  return child;
}

/**
 * Calls `body` with a temporary folder that no other service uses. A service removes leftovers from its temporary folder when it starts.
 */
async function useTemporaryFolder(body: (folder: string) => Promise<void>): Promise<void> {
  const { TMPDIR } = process.env;
  const folder = mkdtempSync(join(tmpdir(), "swept-"));
  // The browser may run under another account, which must be able to enter this folder.
  chmodSync(folder, 0o711);
  process.env["TMPDIR"] = folder;
  try {
    await body(folder);
  } finally {
    if (TMPDIR === undefined) delete process.env["TMPDIR"];
    else process.env["TMPDIR"] = TMPDIR;
    rmSync(folder, { recursive: true });
  }
}

describe("the life of the browser", () => {
  let browsers: Browsers;

  before(recordEarlierFolders);
  beforeEach(async () => {
    browsers = testBrowsers();
    await browsers.start();
  });
  afterEach(() => browsers.stop());

  it("runs its renderers in a sandbox, as seen from outside", async () => {
    const states = (await browsers.waitForProcessSandboxStates())!;
    expect(states.filter(({ contained }) => !contained)).to.deep.equal([]);
    const readStatus = ({ pid }: { pid: number }) => readFileSync(`/proc/${pid}/status`, "utf8");
    const renderers = states.filter(({ kind }) => kind === "renderer");
    expect(renderers).to.not.have.length(0);
    for (const renderer of renderers) {
      expect(readStatus(renderer))
        .to.match(/^Seccomp:\s2$/m)
        .and.match(/^NoNewPrivs:\s1$/m);
      expect(readlinkSync(`/proc/${renderer.pid}/ns/user`)).to.not.equal(readlinkSync("/proc/self/ns/user"));
    }
    expect(states.filter((state) => /^Uid:\s0\s/m.test(readStatus(state)))).to.deep.equal([]);
  });

  it("leaves no process and no folder when it stops", async () => {
    const group = browsers.getBrowserPid()!;
    expect(groupMembers(group)).to.not.have.length(0);
    expect(folders()).to.have.length(1);
    await browsers.stop();
    await until(() => groupMembers(group).length === 0);
    expect(folders()).to.have.length(0);
    expect(browsers.isReady()).to.equal(false);
  });

  longTest("ends the browser that a killed service left behind, and removes its folder", async () => {
    const next = testBrowsers();
    await useTemporaryFolder(async (parent) => {
      const folder = mkdtempSync(join(parent, `svc-chromium-${spawnSync("true").pid}-`));
      const orphan = await idleProcessOn(folder);
      const other = await idleProcessOn(`${folder}-of-another`);
      try {
        const ended = once(orphan, "exit");
        await next.start();
        expect(await ended).to.deep.equal([null, "SIGKILL"]);
        expect(existsSync(folder)).to.equal(false);
        expect(other.exitCode ?? other.signalCode).to.equal(null);
      } finally {
        orphan.kill();
        other.kill();
        await next.stop();
      }
    });
  });

  longTest("uses no processor time while nothing runs, and much in a loop, so that other tests can tell", async () => {
    const group = browsers.getBrowserPid()!;
    await until(() => isQuiet(group));
    const abort = new AbortController();
    const loop = browsers.run(runOf("async function execute() { while (true); }", { signal: abort.signal }));
    await until(async () => !(await isQuiet(group)));
    abort.abort();
    await loop;
  });

  it("ends a run when its signal fires, running or waiting", async () => {
    const abort = new AbortController();
    const run = runOf("async function execute() { console.log('on'); while (true); }", {
      signal: abort.signal,
      onConsole: () => abort.abort(),
    });
    expect(await browsers.run(run)).to.deep.include({ ok: false, cause: "cancelled" });
    expect(await browsers.run(run)).to.deep.include({ ok: false, cause: "cancelled" });
    expect(browsers.countBrowsers().serving).to.equal(0);
  });

  longTest("is up as soon as one context is open, and opens the others of spareContexts afterwards", async () => {
    const browsers = testBrowsers({ spareContexts: 4 });
    try {
      await browsers.start();
      expect(browsers.countBrowsers().spare).to.equal(1);
      await until(() => browsers.countBrowsers().spare === 4);
    } finally {
      await browsers.stop();
    }
  });

  it("loses only its own runs when it is killed, reports it, and restarts", async () => {
    const { run: lost, started } = startHangingRun(browsers);
    await started;
    process.kill(browsers.getBrowserPid()!, "SIGKILL");
    const outcome = await lost;
    expect(outcome).to.deep.include({ ok: false, cause: "browser" });
    expect(await resultOf(browsers, "const execute = async () => 3")).to.equal(3);
    expect(browsers.isReady()).to.equal(true);
  });

  longTest("loses only the run whose renderer is killed", async () => {
    const fill = "globalThis.kept = new Uint8Array(2e8).fill(1);";
    const victim = startHangingRun(browsers, {}, fill);
    await victim.started;
    const abort = new AbortController();
    const neighbour = startHangingRun(browsers, { isolationKey: "2:master", signal: abort.signal });
    await neighbour.started;
    process.kill(largestRenderer(browsers.getBrowserPid()!), "SIGKILL");
    expect(await victim.run).to.deep.include({ ok: false, cause: "browser" });
    abort.abort();
    expect(await neighbour.run).to.deep.include({ ok: false, cause: "cancelled" });
    expect(await resultOf(browsers, "const execute = async () => 4")).to.equal(4);
  });

  longTest("ends every run, and continues, while renderers die as pages are created", async () => {
    const { outcomes } = await runWhileRenderersDie(browsers, 10);
    expect(new Set(outcomes)).to.include("ok");
    expect(["ok", "browser"]).to.include.members([...new Set(outcomes)]);
    expect(await resultOf(browsers, "const execute = async () => 1")).to.equal(1);
  });

  longTest("is replaced after its number of runs, and no run fails", async () => {
    const browsersOfTenRuns = testBrowsers({ runsPerBrowser: 10, log: pino({ level: "silent" }) });
    await browsersOfTenRuns.start();
    try {
      const first = browsersOfTenRuns.getBrowserPid()!;
      let number = 0;
      const loop = async () => {
        while (browsersOfTenRuns.getBrowserPid() === first && number < 1_000) {
          const mine = number++;
          expect(await resultOf(browsersOfTenRuns, `const execute = async () => ${mine}`)).to.equal(mine);
        }
      };
      await Promise.all([loop(), loop(), loop()]);
      expect(browsersOfTenRuns.getBrowserPid()).to.not.equal(first);
      expect(await resultOf(browsersOfTenRuns, "const execute = async () => 'young'")).to.equal("young");
      await until(() => groupMembers(first).length === 0);
    } finally {
      await browsersOfTenRuns.stop();
    }
  });

  it("makes the pauses longer while the next one does not start, although it still executes runs", async () => {
    const source = createRemoteSource(await sharedBrowserEndpoint());
    let starts = 0;
    const open: typeof source.open = async (stopped) => {
      starts += 1;
      if (starts > 1) throw new Error("no further browser");
      return source.open(stopped);
    };
    const pauses: number[] = [];
    const pause = async (ms: number, signal: AbortSignal) => {
      pauses.push(ms);
      await (pauses.length < 4 ? resultOf(worn, "const execute = async () => 1") : once(signal, "abort"));
    };
    const worn = testBrowsers({ sources: [{ ...source, open }], runsPerBrowser: 1, pause });
    await worn.start();
    try {
      await resultOf(worn, "const execute = async () => 1");
      await until(() => pauses.length === 4);
      expect(pauses).to.deep.equal([0, 100, 200, 400]);
    } finally {
      await worn.stop();
    }
  });
});

describe("a run that does not end", () => {
  let browsers: Browsers;

  before(async () => {
    browsers = testBrowsers();
    await browsers.start();
  });
  after(() => browsers.stop());

  const endlessSamples: [string, string][] = [
    ["a loop", "while (true);"],
    ["microtasks", "for (;;) await 0;"],
    ["a promise that never settles", "await new Promise(() => {})"],
  ];
  const endless = [
    ...endlessSamples.slice(0, 2).map(([title, code]) => [`${title} in mode isolate`, code, { mode: "isolate" }]),
    ...EVALUATION_MODES.slice(1).flatMap((mode) =>
      endlessSamples.map(([title, code]) => [`${title} in mode ${mode}`, code, { mode }]),
    ),
    ["timers", "const again = () => setTimeout(again, 0); again(); await new Promise(() => {});"],
    ["dialogs", "for (;;) alert(1);"],
    [
      "workers",
      "for (let i = 0; i < 4; i += 1) new Worker(URL.createObjectURL(new Blob(['while(true);']))); await new Promise(() => {});",
    ],
  ] as [title: string, code: string, changes?: Partial<PageRunRequest>][];
  for (const [title, code, changes = {}] of sampleOf(endless, 0, 4)) {
    it(`is ended at the time limit, and leaves nothing: ${title}`, async () => {
      const group = browsers.getBrowserPid()!;
      await resultOf(browsers, "const execute = async () => 1", { isolationKey: "other" });
      const failure = await failureOf(browsers, `async function execute() { ${code} }`, {
        timeoutMs: 300,
        ...changes,
      });
      expect(failure.cause).to.equal("timeout");
      expect(failure.error.name).to.equal("TimeoutError");
      expect(failure.error.message).to.include("limit of 0.3 seconds");
      await until(() => isQuiet(group));
      expect(await resultOf(browsers, "const execute = async () => 2")).to.equal(2);
    });
  }

  // Leaves out documents: there, code that never pauses also delays its own result until the time limit.
  for (const mode of EVALUATION_MODES.filter((candidate) => candidate !== "document")) {
    const testMode = mode === "isolate" ? it : longTest;
    testMode(`has its work in mode ${mode} ended that continues after its result`, async () => {
      const group = browsers.getBrowserPid()!;
      const code = "let n = 0; (function next() { if (n++ > 50) for (;;); Promise.resolve().then(next) })(); return 1";
      expect(await resultOf(browsers, `const execute = async () => { ${code} }`, { mode })).to.equal(1);
      await until(() => isQuiet(group));
      expect(await resultOf(browsers, "const execute = async () => 2", { mode })).to.equal(2);
    });
  }
});

describe("a browser that cannot start", () => {
  let folder: string;

  before(() => {
    recordEarlierFolders();
    folder = mkdtempSync(join(tmpdir(), "svc-fake-chrome-"));
    chmodSync(folder, 0o755);
  });
  after(() => rmSync(folder, { recursive: true }));

  function fakeChrome(stderr: string): string {
    const path = join(folder, "chrome");
    writeFileSync(path, `#!/bin/sh\necho '${stderr}' >&2\nexit 1\n`);
    chmodSync(path, 0o755);
    return path;
  }

  async function startFault(path: string): Promise<string> {
    const browsers = testBrowsers({ chromePath: path });
    try {
      await browsers.start();
      return "it started";
    } catch (error) {
      return (error as Error).message;
    } finally {
      await browsers.stop();
    }
  }

  it("reports what to do if the sandbox is missing", async () => {
    const message = await startFault(fakeChrome("FATAL: No usable sandbox! If you are running on Ubuntu"));
    expect(message).to.include("Chromium's sandbox does not start on this machine");
    expect(message).to.include("CHROME_SANDBOX=off");
    expect(folders()).to.deep.equal([]);
  });

  it("reports Chromium's output for any other error", async () => {
    expect(await startFault(fakeChrome("libfoo.so: cannot open"))).to.include("libfoo.so: cannot open");
    expect(await startFault("/nowhere/chrome")).to.include("/nowhere/chrome");
  });

  it("is ended by a stop while it starts, before the time limit of a start", async function () {
    this.timeout(BROWSER_START_TIMEOUT_MS);
    const path = join(folder, "chrome");
    writeFileSync(path, "#!/bin/sh\nexec sleep 100\n");
    chmodSync(path, 0o755);
    const browsers = testBrowsers({ chromePath: path });
    const started = browsers.start().then(
      () => "it started",
      () => "it failed",
    );
    await until(() => folders().length === 1);
    await browsers.stop();
    expect(await started).to.equal("it failed");
    expect(folders()).to.deep.equal([]);
  });

  longTest("starts without a sandbox only if it is configured, and warns each time", async () => {
    const lines: string[] = [];
    const log = pino({ level: "warn" }, { write: (line: string) => lines.push(line) });
    const browsers = testBrowsers({ sandbox: false, log });
    await browsers.start();
    try {
      expect(lines.join()).to.include("WITHOUT its sandbox");
      const states = (await browsers.waitForProcessSandboxStates())!;
      expect(states.filter(({ contained }) => !contained)).to.not.deep.equal([]);
      expect(await resultOf(browsers, "const execute = async () => 5")).to.equal(5);
    } finally {
      await browsers.stop();
    }
  });
});

/** Returns the processor time of each process in the group, in ticks of 10 ms. */
function ticksOf(group: number): Map<number, number> {
  const ticks = groupMembers(group).map((pid): [number, number] => {
    try {
      const fields = readFileSync(`/proc/${pid}/stat`, "utf8")
        .replace(/^.*\) /, "")
        .split(" ");
      return [pid, Number(fields[11]) + Number(fields[12])];
    } catch {
      return [pid, 0];
    }
  });
  return new Map(ticks);
}

async function isQuiet(group: number): Promise<boolean> {
  const before = ticksOf(group);
  await new Promise((resolve) => setTimeout(resolve, QUIET_WINDOW_MS));
  const used = [...ticksOf(group)].map(([pid, ticks]) => ticks - (before.get(pid) ?? 0));
  return used.reduce((sum, ticks) => sum + ticks, 0) <= QUIET_TICKS;
}
