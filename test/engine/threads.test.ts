import { expect } from "chai";
import { createThreadPool } from "../../src/engine/threads.js";

const moduleOf = (body: string) => new URL(`data:text/javascript,${encodeURIComponent(`export const work = ${body}`)}`);

function threadsOf<I, O>(body: string, changes: { timeoutMs?: number; memoryMb?: number } = {}) {
  return createThreadPool<I, O>({ module: moduleOf(body), name: "work", timeoutMs: 60_000, memoryMb: 64, ...changes });
}

describe("worker threads", () => {
  it("return the function's results, in sequence and concurrently", async () => {
    const { call } = threadsOf<number, number>("(x) => x * 2");
    expect(await call(21)).to.deep.equal({ ok: true, value: 42 });
    expect(await call(1)).to.deep.equal({ ok: true, value: 2 });
    const all = await Promise.all([1, 2, 3].map(call));
    expect(all).to.deep.equal([2, 4, 6].map((value) => ({ ok: true, value })));
  });

  it("reject with the function's error, and answer the next call", async () => {
    const { call } = threadsOf<boolean, number>("(fails) => { if (fails) throw new RangeError('mine'); return 1 }");
    const error = await call(true).catch((reason: unknown) => reason);
    expect(error).to.be.instanceOf(RangeError).and.to.have.property("message", "mine");
    expect(await call(false)).to.deep.equal({ ok: true, value: 1 });
  });

  it("end a call that takes too long", async () => {
    const { call } = threadsOf<boolean, number>("(hangs) => { while (hangs); return 1 }", { timeoutMs: 1_000 });
    expect(await call(true)).to.deep.equal({ ok: false, limit: "time" });
  });

  it("end a call that takes too much memory, and nothing else", async () => {
    const { call } = threadsOf<boolean, number>(
      "(floods) => { const all = []; while (floods) all.push([all.length]); return 1 }",
      { memoryMb: 16, timeoutMs: 60_000 },
    );
    expect(await call(true)).to.deep.equal({ ok: false, limit: "memory" });
    expect(await call(false)).to.deep.equal({ ok: true, value: 1 });
  });

  it("see nothing of the process's environment", async () => {
    const { call } = threadsOf<null, number>("() => Object.keys(process.env).length");
    expect(await call(null)).to.deep.equal({ ok: true, value: 0 });
  });
});
