/** Tests the memory limit of a run: in its page, and in the browser's own processes. If a run exceeds the limit, other runs continue. */

import { readdirSync, readFileSync } from "node:fs";
import { expect } from "chai";
import type { Browsers } from "../../src/engine/browser/browsers.js";
import { EVALUATION_MODES, type EvaluationMode } from "../../src/engine/browser/run.js";
import { expectEndedByMemory } from "../engine/browser/memory-runs.js";
import { resultOf, runOf, testBrowsers } from "../engine/browser/support.js";

const MB = 1024 * 1024;
/** Maximum MB of the browser's processes without renderers: the service's limit, plus what a run can allocate before the next check. */
const PEAK_MAX_MB = 1_800;

/** Returns the resident memory in MB of a process group, without renderers. */
function browserMegabytes(group: number): number {
  let sum = 0;
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      const fields = readFileSync(`/proc/${pid}/stat`, "latin1")
        .replace(/^.*\) /s, "")
        .split(" ");
      if (Number(fields[2]) !== group || readFileSync(`/proc/${pid}/cmdline`, "latin1").includes("--type=renderer"))
        continue;
      sum += Number(fields[21]) * 4_096;
    } catch {
      // The process has ended since the listing.
    }
  }
  return sum / MB;
}

const MEMORY_SINKS: Record<string, string> = {
  blobs:
    "const kept = []; for (let i = 0; i < 300; i += 1) { kept.push(new Blob([new Uint8Array(1e7).fill(i)])); await wait(2) }",
  // The pauses let the garbage collector run, so the page stays small. Without a limit, the browser process would hold 12,000 blobs of
  // 240 KB.
  "small blobs": `const kept = [];
    for (let i = 0; i < 12_000; i += 1) { kept.push(new Blob([new Uint8Array(240_000).fill(i)])); if (i % 4 === 0) await wait(5) }`,
  "blobs of a worker": `new Worker(URL.createObjectURL(new Blob(["const kept = []; setInterval(() => kept.push(new Blob([new Uint8Array(1e7).fill(1)])), 2)"])));
    await wait(60_000);`,
  caches: `const cache = await caches.open("x");
    for (let i = 0; i < 300; i += 1) await cache.put("/" + i, new Response(new Uint8Array(1e7).fill(i)));`,
  "a database": `const open = indexedDB.open("x");
    open.onupgradeneeded = () => open.result.createObjectStore("s");
    const db = await new Promise((resolve) => { open.onsuccess = () => resolve(open.result) });
    for (let i = 0; i < 300; i += 1) await new Promise((resolve, reject) => {
      const put = db.transaction("s", "readwrite").objectStore("s").put(noise(), i);
      put.onsuccess = resolve; put.onerror = () => reject(put.error) });`,
  "private files": `const folder = await navigator.storage.getDirectory();
    for (let i = 0; i < 300; i += 1) {
      const file = await (await folder.getFileHandle("x" + i, { create: true })).createWritable();
      await file.write(new Uint8Array(1e7).fill(i)); await file.close() }`,
};

describe("the browser's own processes", () => {
  let browsers: Browsers;

  beforeEach(async () => {
    browsers = testBrowsers();
    await browsers.start();
  });
  afterEach(() => browsers.stop());

  for (const [title, code] of Object.entries(MEMORY_SINKS)) {
    it(`have a memory limit: the service ends a run that fills them with ${title}, and no other run`, async () => {
      const group = browsers.getBrowserPid()!;
      let peak = 0;
      let over = false;
      const memoryTimer = setInterval(() => {
        peak = Math.max(peak, browserMegabytes(group));
      }, 50);
      const other = { isolationKey: "2:master", origin: "https://app-2.actions.internal", timeoutMs: 30_000 };
      const busy =
        "const execute = async () => { for (const end = performance.now() + 100; performance.now() < end;); return 1 }";
      const source = `let seed = 1;
      // The content differs each time, because the browser would store repeated content in less memory.
      const noise = () => new Uint32Array(2.5e6).map(() => (seed = (seed * 1664525 + 1013904223) >>> 0) ^ (seed << 13));
      const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms)); const execute = async () => { ${code} }`;
      const flood = browsers.run(runOf(source, { timeoutMs: 60_000 })).finally(() => {
        over = true;
      });
      let lost = 0;
      while (!over) if (!(await browsers.run(runOf(busy, other))).ok) lost += 1;
      const outcome = await flood;
      clearInterval(memoryTimer);
      expect(outcome.ok ? "it went through" : outcome.error.message).to.match(/memory|[qQ]uota/);
      expect(lost).to.equal(0);
      expect(peak).to.be.lessThan(PEAK_MAX_MB);
      expect(await resultOf(browsers, "const execute = async () => 1")).to.equal(1);
    });
  }
});

describe("the memory of a run that fills it with objects", () => {
  for (const mode of EVALUATION_MODES) {
    it(`is limited in mode ${mode}, even if garbage collection takes long, and no other run is lost`, async () => {
      const browsers = testBrowsers();
      await browsers.start();
      try {
        const code = "const execute = async () => { const kept = []; for (;;) kept.push(new Array(1e6).fill({})); }";
        const neighbour = browsers.run(
          runOf("const execute = async () => { await new Promise((done) => setTimeout(done, 1_000)); return 1 }", {
            isolationKey: "2:master",
          }),
        );
        const outcome = await browsers.run(runOf(code, { timeoutMs: 120_000, mode }));
        expect(outcome).to.deep.include({ ok: false, cause: "memory" });
        expect((await neighbour).ok).to.equal(true);
      } finally {
        await browsers.stop();
      }
    });
  }
});

describe("the memory of a run", function () {
  this.timeout(180_000);
  let browsers: Browsers;

  before(async () => {
    browsers = testBrowsers();
    await browsers.start();
  });
  after(() => browsers.stop());

  const NUMBERS_CODE = "const kept = []; for (;;) kept.push(new Array(1e6).fill(0.5));";
  const BUFFERS_CODE = "const kept = []; for (;;) { kept.push(new Uint8Array(1e7).fill(1)); await 0; }";
  const WORKER_BUFFERS_CODE = "const k=[];for(;;)k.push(new Uint8Array(1e7).fill(1))";
  const MEMORY_FILLS: [title: string, code: string, mode?: EvaluationMode][] = [
    ["numbers", NUMBERS_CODE],
    ["array buffers, in an isolate", BUFFERS_CODE, "isolate"],
    ["array buffers, in a network isolate", BUFFERS_CODE, "network-isolate"],
    ["array buffers", BUFFERS_CODE],
    ["a result", "return 'x'.repeat(5e8) + [...Array(5e7).keys()]"],
    [
      "a worker's buffers",
      `new Worker(URL.createObjectURL(new Blob(['${WORKER_BUFFERS_CODE}']))); await new Promise(() => {});`,
    ],
    ["strings", "const kept = []; for (let i = 0; ; i += 1) kept.push(('x' + i).repeat(1e6).toUpperCase());"],
  ];
  for (const [title, code, mode] of MEMORY_FILLS) {
    it(`is limited: a run that fills it with ${title} ends with a memory error, and no other run ends`, () =>
      expectEndedByMemory(browsers, code, mode));
  }

  for (const mode of EVALUATION_MODES) {
    it(`does not include memory of earlier runs in mode ${mode}`, async () => {
      const code = `const execute = async () => {
        const kept = []; for (let i = 0; i < 30; i += 1) kept.push(new Uint8Array(1e7).fill(1));
        for (const end = Date.now() + 250; Date.now() < end; ) await 0;
        return kept.length;
      }`;
      for (let count = 0; count < 6; count += 1) {
        expect(await resultOf(browsers, code, { mode, isolationKey: "3:master" })).to.equal(30);
      }
    });
  }
});
