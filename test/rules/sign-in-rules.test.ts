/** Tests rules of sign-ins without a service: waits after failures, return paths, and variables of OpenID providers. */
import { expect } from "chai";
import { readConfig } from "../../src/config.js";
import { toSafeReturnPath } from "../../src/rules/return-path.js";
import {
  getSignInBlockedUntil,
  recordSignInAttempt,
  removeSignInAttempt,
  SIGN_IN_ATTEMPT_STATE_LIFETIME_MS,
  type SignInAttemptState,
} from "../../src/rules/sign-in-wait.js";

const MINUTE_MS = 60_000;
const START_TIME = 1_800_000_000_000;

describe("waits after failed sign-ins", () => {
  const fresh: SignInAttemptState = { failures: [], level: 0, blockedUntil: null };
  const failing = (state: SignInAttemptState, count: number, from: number, everyMs = 0): SignInAttemptState =>
    Array.from({ length: count }, (_, at) => from + at * everyMs).reduce(recordSignInAttempt, state);

  it("start with the tenth failure in ten minutes and double up to an hour", () => {
    expect(getSignInBlockedUntil(failing(fresh, 9, START_TIME), START_TIME)).to.equal(null);
    let state = failing(fresh, 10, START_TIME);
    const waits: number[] = [];
    let now = START_TIME;
    for (let level = 0; level < 9; level += 1) {
      const until = getSignInBlockedUntil(state, now)!;
      waits.push((until - now) / MINUTE_MS);
      now = until;
      expect(getSignInBlockedUntil(state, now)).to.equal(null);
      // If the wait was longer than the window, the earlier failures do not count any more. So the next wait needs more attempts.
      while (getSignInBlockedUntil(state, now) === null) state = recordSignInAttempt(state, now);
    }
    expect(waits).to.deep.equal([1, 2, 4, 8, 16, 32, 60, 60, 60]);
  });

  it("do not start with ten failures over more than ten minutes", () => {
    const state = failing(fresh, 30, START_TIME, 1.2 * MINUTE_MS);
    expect(getSignInBlockedUntil(state, START_TIME + 36 * MINUTE_MS)).to.equal(null);
  });

  it("count a failure for ten minutes", () => {
    const nine = failing(fresh, 9, START_TIME);
    const blockedAt = (now: number) => getSignInBlockedUntil(recordSignInAttempt(nine, now), now) !== null;
    expect([blockedAt(START_TIME + 599_999), blockedAt(START_TIME + 600_000)]).to.deep.equal([true, false]);
    expect(recordSignInAttempt(nine, START_TIME + 600_000).failures).to.deep.equal([START_TIME + 600_000]);
    expect(SIGN_IN_ATTEMPT_STATE_LIFETIME_MS).to.equal(24 * 60 * MINUTE_MS);
  });

  it("stay after a successful attempt that did not start them", () => {
    const ten = failing(fresh, 10, START_TIME, 1);
    const left = removeSignInAttempt(ten, START_TIME + 3);
    expect(left).to.deep.equal({ ...ten, failures: ten.failures.filter((at) => at !== START_TIME + 3) });
    expect(getSignInBlockedUntil(left, START_TIME + 100)).to.equal(START_TIME + 9 + MINUTE_MS);
    expect(removeSignInAttempt(failing(fresh, 2, START_TIME, 1), START_TIME)).to.deep.equal({
      ...fresh,
      failures: [START_TIME + 1],
    });
  });

  it("end with the attempt that started them, if it succeeds", () => {
    const nine = failing(fresh, 9, START_TIME, 1);
    const ten = recordSignInAttempt(nine, START_TIME + 100);
    expect(getSignInBlockedUntil(ten, START_TIME + 100)).to.not.equal(null);
    expect(removeSignInAttempt(ten, START_TIME + 100)).to.deep.equal(nine);
  });
});

describe("paths to return to after a sign-in", () => {
  it("must be on this service", () => {
    for (const path of ["/", "/studio", "/studio?app=1#actions/2", "/a/../b", "/%2f%2fevil.example"]) {
      expect(toSafeReturnPath(path, "/studio"), path).to.equal(path === "/a/../b" ? "/b" : path);
    }
    for (const path of [
      "",
      "studio",
      "//x",
      "/\\x",
      "\\\\x",
      "/\t/x",
      "/\n/x",
      " /x",
      "/x/..//y",
      "/.//y",
      "https://x",
      "http:x",
      "javascript:x",
      "/ä",
      1,
      null,
      ["/x"],
      `/${"x".repeat(2_000)}`,
    ]) {
      expect(toSafeReturnPath(path, "/studio"), String(path)).to.equal("/studio");
    }
  });
});

describe("variables of OpenID providers", () => {
  const FIRST_PROVIDER = { OIDC_ISSUER: "https://id.example", OIDC_CLIENT_ID: "a", OIDC_CLIENT_SECRET: "b" };

  it("describe several providers", () => {
    const { openIdProviders } = readConfig({
      ...FIRST_PROVIDER,
      OIDC_GIT_LAB_ISSUER: "https://gitlab.example",
      OIDC_GIT_LAB_CLIENT_ID: "c",
      OIDC_GIT_LAB_CLIENT_SECRET: "d",
      OIDC_GIT_LAB_ROLES: "a=b=editor, staff = reader",
    });
    expect(openIdProviders.map(({ id }) => id)).to.deep.equal(["oidc", "git_lab"]);
    expect([...openIdProviders[1]!.roles]).to.deep.equal([
      ["a=b", "editor"],
      ["staff", "reader"],
    ]);
  });

  const FAULTS: [Record<string, string>, RegExp][] = [
    [{ OIDC_ISSUER: "https://id.example" }, /OIDC_CLIENT_ID must .*OIDC_CLIENT_SECRET must/],
    [{ OIDC_CLIENT_ID: "a", OIDC_CLIENT_SECRET: "b" }, /OIDC_ISSUER must be set, because OIDC_CLIENT_ID is set/],
    [{ ...FIRST_PROVIDER, OIDC_ISSUER: "http://id.example" }, /OIDC_ISSUER must .* \(got "http:\/\/id\.example"\)/],
    [
      { ...FIRST_PROVIDER, OIDC_ISSUER: "https://user:secret@id.example" },
      /OIDC_ISSUER must .* \(got 30 characters, not shown/,
    ],
    [{ ...FIRST_PROVIDER, OIDC_AUTO_CREATE: "yes" }, /OIDC_AUTO_CREATE must be 0 or 1 \(got "yes"\)/],
    [{ ...FIRST_PROVIDER, OIDC_ROLES: "staff=boss" }, /OIDC_ROLES must .* \(got "staff=boss"\)/],
    [{ ...FIRST_PROVIDER, OIDC_ROLES: "staff" }, /OIDC_ROLES must/],
    [{ ...FIRST_PROVIDER, OIDC_ORGANIZATIONS: "a.example=x" }, /OIDC_ORGANIZATIONS must .* \(got "a\.example=x"\)/],
  ];
  for (const [environment, message] of FAULTS) {
    it(`are rejected: ${JSON.stringify(environment)}`, () => {
      expect(() => readConfig(environment)).to.throw(message);
    });
  }
});
