/** Tests the search for the process that fills the shared processes of a browser, with processes of Node in their place. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { expect } from "chai";
import { findMemoryFillingRenderer } from "../../../src/engine/browser/watch/filler.js";
import { readStatFields } from "../../../src/engine/browser/watch/processes.js";

/** Program that stores everything that it reads, and so takes the place of a shared process of the browser. */
const SHARED_CODE =
  "const kept = []; process.stdin.on('data', (chunk) => kept.push(Buffer.from(chunk))); console.log('up')";
/** Waits until the search has paused and resumed it. Writes nothing for another 300 ms, and then writes without end. */
const HIDING_CODE = `
  let last = Date.now();
  let writesAt = Infinity;
  setInterval(() => {
    const now = Date.now();
    if (now - last > 15) writesAt = Math.min(writesAt, now + 300);
    last = now;
    if (now >= writesAt) process.stdout.write(Buffer.alloc(2 ** 20, 1));
  }, 5)`;
const BUSY_CODE = "setInterval(() => { for (const end = Date.now() + 10; Date.now() < end; ); }, 20)";

describe("the search for the process that fills the memory", () => {
  const children: ChildProcess[] = [];
  const start = (code: string, stdout: "pipe" | "ignore", stdin: "pipe" | "ignore" = "ignore") => {
    const child = spawn(process.execPath, ["-e", code], { stdio: [stdin, stdout, "inherit"] });
    children.push(child);
    return child;
  };
  after(async () => {
    for (const child of children) {
      child.kill("SIGKILL");
      if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
    }
  });

  it("does not accuse another process if the memory grows only after the turn of the first one", async () => {
    const shared = start(SHARED_CODE, "pipe", "pipe");
    await once(shared.stdout!, "data");
    const [hiding, busy] = [start(HIDING_CODE, "pipe"), start(BUSY_CODE, "ignore")];
    // The pipe breaks when the test ends, so its errors are ignored.
    hiding.stdout!.pipe(shared.stdin!).on("error", () => undefined);
    await new Promise((resolve) => setTimeout(resolve, 500));
    const group = { id: Number(readStatFields("/proc/self/stat")[2]), sharedPids: [shared.pid!] };
    expect(await findMemoryFillingRenderer([hiding.pid!, busy.pid!], group)).not.to.equal(busy.pid);
  });
});
