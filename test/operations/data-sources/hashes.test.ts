/** Tests the queue of password hashes: its order and its limits. */
import { expect } from "chai";
import type { ActionError } from "../../../src/errors.js";
import { createHashQueueKey, hashText, matchesHash } from "../../../src/operations/records/hashes.js";
import { longTest } from "../../harness/samples.js";

/** Number of hashes of one client. Other clients' hashes start among the first five, but may end later if the system delays a thread. */
const FLOOD_HASHES = 30;

describe("password hashes", () => {
  const turn = (appId: number, address: string) =>
    createHashQueueKey(appId, { kind: "live", credentialId: 1, address } as never);

  /** Hashes many texts of app 1 and one text of each client in `others`. Checks that the hashes of `others` end in the first half. */
  async function expectFairTurns(addressOfFlood: (n: number) => string, others: [appId: number, address: string][]) {
    const order: string[] = [];
    const startHash = (appId: number, address: string) =>
      hashText("secret", turn(appId, address)).then(() => order.push(`${appId} ${address}`));
    const flood = Array.from({ length: FLOOD_HASHES }, (_, n) => startHash(1, addressOfFlood(n)));
    await Promise.all([...flood, ...others.map(([appId, address]) => startHash(appId, address))]);
    for (const [appId, address] of others)
      expect(order.indexOf(`${appId} ${address}`), `${appId} ${address}`).to.be.within(0, FLOOD_HASHES / 2);
  }

  it("of another app, and of another address of the same app, do not wait for those of a flood from one address", () =>
    expectFairTurns(
      () => "203.0.113.1",
      [
        [1, "203.0.113.2"],
        [2, "203.0.113.1"],
        [3, "203.0.113.1"],
      ],
    ));

  longTest("of another app do not wait for those of a flood from many addresses", () =>
    expectFairTurns(
      (n) => `198.51.100.${n}`,
      [
        [2, "198.51.100.1"],
        [3, "203.0.113.1"],
      ],
    ),
  );

  longTest("are rejected when too many of one address wait, and only those of that address", async () => {
    const outcome = (appId: number, address: string) =>
      hashText("secret", turn(appId, address)).then(
        () => "hashed",
        (error: ActionError) => error.status,
      );
    const flood = Array.from({ length: 80 }, () => outcome(1, "203.0.113.1"));
    const others = await Promise.all([outcome(1, "203.0.113.2"), outcome(2, "203.0.113.1")]);
    expect(others).to.deep.equal(["hashed", "hashed"]);
    const outcomes = await Promise.all(flood);
    expect(outcomes.filter((status) => status === "OVERLOADED")).to.have.length(16);
    expect(outcomes.slice(0, 64)).to.deep.equal(Array(64).fill("hashed"));
  });

  it("match the hashed text and nothing else", async () => {
    const stored = await hashText("secret", turn(1, "203.0.113.1"));
    expect(await matchesHash("secret", stored, turn(1, "203.0.113.1"))).to.equal(true);
    expect(await matchesHash("Secret", stored, turn(1, "203.0.113.1"))).to.equal(false);
    expect(await matchesHash("secret", undefined, turn(1, "203.0.113.1"))).to.equal(false);
  });
});
