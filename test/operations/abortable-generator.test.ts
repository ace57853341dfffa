import { expect } from "chai";
import { createAbortableGenerator, endIterableOnAbort } from "../../src/operations/records/abortable-generator.js";

/** Creates a generator that yields 1, then waits until its reader stops reading. */
const abortableNumbers = (received: string[]) =>
  createAbortableGenerator(async function* (left) {
    try {
      yield 1;
      await new Promise<void>((resolve) => left.addEventListener("abort", () => resolve()));
      received.push("left");
    } finally {
      received.push("over");
    }
  });

describe("an iterable that a reader can leave while it waits", () => {
  let received: string[];
  beforeEach(() => {
    received = [];
  });

  it("ends at once when its reader leaves", async () => {
    const reader = abortableNumbers(received);
    expect(await reader.next()).to.deep.equal({ done: false, value: 1 });
    const next = reader.next();
    await reader.return();
    expect(received).to.deep.equal(["left", "over"]);
    expect(await next).to.deep.equal({ done: true, value: undefined });
  });

  it("ends the source from which it is made", async () => {
    const doubled = createAbortableGenerator(async function* (left) {
      for await (const number of endIterableOnAbort(abortableNumbers(received), left)) yield 2 * number;
    });
    expect((await doubled.next()).value).to.equal(2);
    const next = doubled.next();
    await doubled.return();
    expect(received).to.deep.equal(["left", "over"]);
    expect((await next).done).to.equal(true);
  });

  it("ends when a loop is left, and on an error of its reader", async () => {
    for await (const number of abortableNumbers(received)) if (number === 1) break;
    expect(received.splice(0)).to.deep.equal(["over"]);
    const reader = abortableNumbers(received);
    await reader.next();
    const next = reader.next();
    await reader.throw(new Error("enough")).catch(() => {});
    expect((await next).done).to.equal(true);
    expect(received).to.deep.equal(["left", "over"]);
  });
});
