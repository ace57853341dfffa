/** Tests thousands of messages and sockets from one sender. Each sender has its own limits. */
import { expect } from "chai";
import { SocketOperations, SocketsPerAddressLimiter } from "../../src/api/live/operations.js";
import { SocketMessageRateLimiter } from "../../src/operations/access/message-rate.js";

const HOUR_MS = 3_600_000;

describe("the rate of messages on websockets", () => {
  const rates = { socket: { limit: 3, windowMs: HOUR_MS }, sender: { limit: 5, windowMs: HOUR_MS } };
  const open = () => true;

  it("has separate limits for a socket, a credential and an address", () => {
    const rate = new SocketMessageRateLimiter(rates, () => new Promise(() => undefined));
    const passed = (times: number, socket: string, by: string[]) =>
      Array.from({ length: times }, () => rate.countMessage(socket, by, open)).filter((wait) => wait === null).length;
    expect(passed(10, "1", ["credential 1", "address a"])).to.equal(3);
    expect(passed(10, "2", ["credential 1", "address a"])).to.equal(2);
    expect(passed(10, "3", ["credential 2", "address a"]), "of the same address").to.equal(0);
    expect(passed(10, "4", ["credential 3", "address b"])).to.equal(3);
  });

  it("makes a message wait until it may be handled, or until its socket has closed", async () => {
    let isOpen = true;
    let waits = 0;
    const rate = new SocketMessageRateLimiter(rates, async () => {
      waits += 1;
      if (waits === 4) isOpen = false;
    });
    for (let sent = 0; sent < 3; sent += 1) expect(rate.countMessage("1", ["address a"], () => isOpen)).to.equal(null);
    await rate.countMessage("1", ["address a"], () => isOpen);
    expect(waits).to.equal(4);
  });
});

describe("the operations of a socket", () => {
  it("count from their message until its handling has ended", async () => {
    const operations = new SocketOperations();
    const steps: string[] = [];
    const work = Promise.withResolvers<void>();
    const subscribe = operations.handleMessage(async () => {
      operations.beginOperation().callWhenEnded(() => steps.push("ended"));
      await work.promise;
    });
    await operations.handleMessage(async () => undefined);
    expect([operations.count, steps]).to.deep.equal([1, []]);
    work.resolve();
    await subscribe;
    expect([operations.count, steps]).to.deep.equal([0, ["ended"]]);
  });

  it("no longer count when their handling fails", async () => {
    const operations = new SocketOperations();
    const failed = operations.handleMessage(async () => {
      operations.beginOperation();
      throw new Error("no");
    });
    await failed.catch(() => undefined);
    expect(operations.count).to.equal(0);
  });
});

describe("the sockets of one address", () => {
  const link = (name: string, count: number) => ({ name, operations: { count } });

  it("are limited: a new one closes the oldest idle one, never one with an operation or of another address", () => {
    const closed: string[] = [];
    const limiter = new SocketsPerAddressLimiter<ReturnType<typeof link>>(({ name }) => closed.push(name), {
      sockets: 100,
      idle: 2,
    });
    limiter.addSocket("a", link("busy", 1));
    for (const name of ["first", "second", "third", "fourth"]) limiter.addSocket("a", link(name, 0));
    for (const name of ["x", "y"]) limiter.addSocket("b", link(name, 0));
    expect(closed).to.deep.equal(["first", "second"]);
  });

  it("are limited even if each has an operation: the newest is closed", () => {
    const closed: string[] = [];
    const limiter = new SocketsPerAddressLimiter<ReturnType<typeof link>>(({ name }) => closed.push(name), {
      sockets: 3,
      idle: 2,
    });
    const leaves = ["1", "2", "3"].map((name) => limiter.addSocket("a", link(name, 1)));
    limiter.addSocket("a", link("4", 0));
    expect(closed).to.deep.equal(["4"]);
    leaves[0]!();
    limiter.addSocket("a", link("5", 0));
    expect(closed).to.deep.equal(["4"]);
  });
});
