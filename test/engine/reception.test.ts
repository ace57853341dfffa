/** Tests concurrent uploads. The service reads them in turn, and an upload that sends nothing does not delay others. */
import { createHash } from "node:crypto";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { FairSemaphore } from "../../src/engine/fair-semaphore.js";
import { UploadReceiver } from "../../src/engine/reception.js";

const KB = 1024;

describe("reception of uploads", () => {
  let folder: string;
  before(() => {
    folder = mkdtempSync(join(tmpdir(), "svc-reception-"));
  });
  after(() => rmSync(folder, { recursive: true }));

  it("a sender that stops gives its turn to others, and continues later", async () => {
    const receiver = new UploadReceiver(folder, new FairSemaphore(1, 1));
    const { promise: spoken, resolve: speak } = Promise.withResolvers<void>();
    const { promise: started, resolve: markStarted } = Promise.withResolvers<void>();
    async function* silent(): AsyncGenerator<Buffer> {
      yield Buffer.from("first ");
      markStarted();
      await spoken;
      yield Buffer.from("second");
    }
    async function* quick(): AsyncGenerator<Buffer> {
      yield Buffer.alloc(100 * KB, 7);
    }
    const slow = receiver.receive("slow", silent(), 1_000, "a");
    await started;
    expect((await receiver.receive("quick", quick(), 200 * KB, "b")).bytes).to.equal(100 * KB);
    speak();
    const checksum = createHash("sha256").update("first second").digest("hex");
    expect(await slow).to.include({ bytes: 12, checksum });
  });

  it("a slow sender does not make others wait", async () => {
    const receiver = new UploadReceiver(folder, new FairSemaphore(1, 1));
    let isOver = false;
    const { promise: started, resolve: markStarted } = Promise.withResolvers<void>();
    async function* trickle(): AsyncGenerator<Buffer> {
      while (!isOver) {
        await new Promise((resolve) => setTimeout(resolve, 30));
        markStarted();
        yield Buffer.alloc(1);
      }
    }
    async function* quick(): AsyncGenerator<Buffer> {
      yield Buffer.alloc(100 * KB, 7);
    }
    const slow = receiver.receive("trickle", trickle(), 1_000_000, "a");
    await started;
    expect((await receiver.receive("beside", quick(), 200 * KB, "b")).bytes).to.equal(100 * KB);
    isOver = true;
    expect((await slow).bytes).to.be.greaterThan(0);
  });

  it("only as many are read at once as there are slots, and each gets a turn", async () => {
    const receiver = new UploadReceiver(folder, new FairSemaphore(2, 2));
    const turn = 64;
    const reading = new Map<string, number>();
    const order: string[] = [];
    let most = 0;
    async function* source(name: string): AsyncGenerator<Buffer> {
      for (let at = 0; at < 2 * turn; at += 1) {
        reading.set(name, at);
        const partlyRead = [...reading.values()].filter(
          (partsRead) => partsRead % turn > 0 && partsRead % turn < turn - 1,
        ).length;
        most = Math.max(most, partlyRead);
        if (at % turn === 0) order.push(name);
        yield Buffer.alloc(64 * KB);
      }
    }
    const names = ["a", "b", "c", "d"];
    const all = await Promise.all(names.map((name) => receiver.receive(name, source(name), 10_000 * KB, name)));
    expect(all.map(({ bytes }) => bytes)).to.deep.equal(names.map(() => 2 * turn * 64 * KB));
    expect(most).to.be.at.most(2);
    expect(new Set(order.slice(0, 4)), "all before any has a second turn").to.deep.equal(new Set(names));
  });

  it("an upload that ends early, or is too long, leaves no file and no used slot", async () => {
    const receiver = new UploadReceiver(folder, new FairSemaphore(1, 1));
    async function* broken(): AsyncGenerator<Buffer> {
      yield Buffer.from("x");
      throw new Error("gone");
    }
    async function* long(): AsyncGenerator<Buffer> {
      for (;;) yield Buffer.alloc(KB);
    }
    const refusal = (work: Promise<unknown>) =>
      work.then(
        () => "taken",
        (error: Error) => error.message,
      );
    expect(await refusal(receiver.receive("broken", broken(), 10, 1))).to.equal("gone");
    expect(await refusal(receiver.receive("long", long(), 10 * KB, 1))).to.contain("more than");
    async function* whole(): AsyncGenerator<Buffer> {
      yield Buffer.from("x");
    }
    expect((await receiver.receive("whole", whole(), 10, 1)).bytes).to.equal(1);
    expect(readdirSync(folder).filter((name) => name === "broken" || name === "long")).to.deep.equal([]);
  });
});
