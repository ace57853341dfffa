import { mock } from "node:test";
import { expect } from "chai";
import { CredentialRecheck, type SocketWithToken } from "../../src/api/live/recheck.js";
import type { Credentials } from "../../src/operations/access/credentials.js";
import type { Caller } from "../../src/rules/access.js";

const NOW = Date.UTC(2026, 10, 21);

describe("the tokens of open sockets", () => {
  let expiresAt: Record<string, number | null>;
  let isAway: boolean;
  let resolved: string[];
  let ended: string[];
  const callerOf = (token: string): Caller | null => {
    const end = expiresAt[token];
    if (end === undefined || (end !== null && end <= Date.now())) return null;
    return { credentialId: token.length, ...(end !== null && { expiresAt: end }) } as Caller;
  };
  const create = () =>
    new CredentialRecheck({
      credentials: {
        async resolve(token: string) {
          resolved.push(token);
          if (isAway) throw new Error("away");
          return callerOf(token);
        },
      } as unknown as Credentials,
      onChecked: ({ token, caller }: SocketWithToken) => {
        if (caller === null) ended.push(token!);
      },
    });
  const holder = (token: string): SocketWithToken => ({ token, caller: callerOf(token) });
  const passTime = async (ms: number) => {
    mock.timers.tick(ms);
    for (let turn = 0; turn < 5; turn += 1) await new Promise(setImmediate);
  };

  beforeEach(() => {
    mock.timers.enable({ apis: ["setTimeout", "Date"], now: NOW });
    expiresAt = { long: null, short: NOW + 60_000 };
    isAway = false;
    resolved = [];
    ended = [];
  });
  afterEach(() => mock.timers.reset());

  it("are checked again when they expire, and not before; tokens without an expiry never", async () => {
    const recheck = create();
    for (const token of ["long", "short"]) recheck.add(holder(token));
    await passTime(59_999);
    expect(resolved).to.deep.equal([]);
    await passTime(1);
    expect([resolved, ended]).to.deep.equal([["short"], ["short"]]);
    await passTime(3_600_000);
    expect(resolved).to.deep.equal(["short"]);
  });

  it("are watched until their new expiry if they were extended", async () => {
    const recheck = create();
    recheck.add(holder("short"));
    expiresAt["short"] = NOW + 120_000;
    await passTime(60_000);
    expect(ended).to.deep.equal([]);
    await passTime(60_000);
    expect(ended).to.deep.equal(["short"]);
  });

  it("are no longer watched after their socket has closed", async () => {
    const recheck = create();
    const gone = holder("short");
    recheck.add(gone);
    recheck.remove(gone);
    await passTime(120_000);
    expect(resolved).to.deep.equal([]);
  });

  it("stay valid while the database is not reachable", async () => {
    const recheck = create();
    const longHolder = holder("long");
    recheck.add(longHolder);
    isAway = true;
    expect(await recheck.checkSocket(longHolder)).to.equal(true);
    isAway = false;
    delete expiresAt["long"];
    expect(await recheck.checkSocket(longHolder)).to.equal(false);
    expect(ended).to.deep.equal(["long"]);
  });

  it("are checked once for all sockets of a token", async () => {
    const recheck = create();
    for (const token of ["long", "long", "short"]) recheck.add(holder(token));
    await recheck.checkAll();
    expect(resolved.sort()).to.deep.equal(["long", "short"]);
    resolved = [];
    await recheck.checkCredential("short".length);
    expect(resolved).to.deep.equal(["short"]);
  });
});
