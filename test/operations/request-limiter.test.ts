/** Tests the limits of a caller's requests in progress, by credential and network address. Requests beyond a limit delay no other caller. */
import { expect } from "chai";
import type { ActionError } from "../../src/errors.js";
import { createRequestLimiter } from "../../src/operations/access/request-limiter.js";
import type { Caller } from "../../src/rules/access.js";

const settled = () => new Promise(setImmediate);
const caller = (kind: Caller["kind"], credentialId: number): Caller => ({ kind, credentialId }) as Caller;

describe("requests in progress", () => {
  const limiter = createRequestLimiter({ credential: 3, visitor: 2, address: 4 });
  const present = () => new AbortController().signal;

  /** Starts `times` requests. Returns a function for each request that got a slot; the function ends the request. */
  async function enter(times: number, visitor: Parameters<typeof limiter.acquireSlot>[0], gone = present) {
    const leaves: (() => void)[] = [];
    for (let time = 0; time < times; time += 1) {
      limiter.acquireSlot(visitor, gone).then(
        (leave) => leaves.push(leave),
        () => undefined,
      );
    }
    await settled();
    return leaves;
  }

  async function endAll(leaves: (() => void)[]): Promise<void> {
    while (leaves.length > 0) {
      leaves.shift()!();
      await settled();
    }
  }

  it("are limited for a credential, and another credential's start at once", async () => {
    const api = await enter(10, { caller: caller("api", 1), address: "203.0.113.1" });
    const other = await enter(2, { caller: caller("api", 2), address: "203.0.113.1" });
    expect([api.length, other.length]).to.deep.equal([3, 2]);
    api.shift()!();
    await settled();
    expect(api.length).to.equal(3);
    await endAll(api);
    await endAll(other);
  });

  it("of visitors are limited for the visitor and for the address, separately from requests without a credential", async () => {
    const address = "203.0.113.1";
    const anonymous = await enter(9, { caller: null, address });
    const visitors = [];
    for (const id of [1, 2, 3]) visitors.push(await enter(5, { caller: caller("live", id), address }));
    const elsewhere = await enter(5, { caller: caller("live", 4), address: "203.0.113.2" });
    expect([anonymous, ...visitors, elsewhere].map(({ length }) => length)).to.deep.equal([4, 2, 2, 0, 2]);
    for (const leaves of [anonymous, ...visitors, elsewhere]) await endAll(leaves);
  });

  it("of visitors who share one live token are limited for each address: those of one do not wait for those of another", async () => {
    const shared = caller("live", 5);
    const first = await enter(5, { caller: shared, address: "203.0.113.10" });
    const second = await enter(5, { caller: shared, address: "203.0.113.11" });
    expect([first.length, second.length]).to.deep.equal([2, 2]);
    await endAll(first);
    await endAll(second);
  });

  it("leave the queue when their caller disconnects", async () => {
    const visitor = { caller: caller("live", 9), address: "203.0.113.3" };
    const holding = await enter(2, visitor);
    const gone = new AbortController();
    const waiting = limiter.acquireSlot(visitor, () => gone.signal).catch((error: ActionError) => error.status);
    const next = await enter(1, visitor);
    gone.abort(new Error("gone"));
    expect(await waiting).to.equal("REQUEST_INVALID");
    holding.shift()!();
    await settled();
    expect(next).to.have.length(1);
    const late = limiter.acquireSlot(visitor, () => gone.signal).catch((error: ActionError) => error.status);
    expect(await late).to.equal("REQUEST_INVALID");
    await endAll(holding);
    await endAll(next);
  });
});
