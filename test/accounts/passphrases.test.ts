/**
 * Tests the validation and storage of passphrases and the session cookie, without a service. Also checks that the tests that
 * security-asvs.md names exist.
 */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { dictionary } from "@zxcvbn-ts/language-common";
import { expect } from "chai";
import { createSessionCookieHeaders } from "../../src/api/session-cookie.js";
import type { ActionError } from "../../src/errors.js";
import { hashText, matchesHash } from "../../src/operations/records/hashes.js";
import { parseNewPassphrase } from "../../src/rules/passphrase.js";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
const QUEUE_KEY = { appId: 0, sender: "test" };

const statusOf = (passphrase: unknown): string | null => {
  try {
    parseNewPassphrase(passphrase);
    return null;
  } catch (error) {
    return (error as ActionError).status;
  }
};

describe("a passphrase", () => {
  it("must have 12 characters, counted as people count them", () => {
    expect(statusOf("elevenchars")).to.equal("PASSPHRASE_TOO_WEAK");
    expect(statusOf("twelve chars")).to.equal(null);
    expect(statusOf("🙂🙃🙂😀😁😂🤣😃😄😅😆")).to.equal("PASSPHRASE_TOO_WEAK");
    expect(statusOf("🙂🙃😇😀😁😂🤣😃😄😅😆😉")).to.equal(null);
  });

  it("must not be in the list of common passphrases", () => {
    const common = [...dictionary["passwords-common"]].filter(({ length }) => length >= 12);
    expect(common.length).to.be.above(200);
    for (const passphrase of common) {
      for (const written of [passphrase, passphrase.toUpperCase()])
        expect(statusOf(written), passphrase).to.equal("PASSPHRASE_TOO_WEAK");
    }
  });

  it("needs no particular kind of character", () => {
    for (const passphrase of [
      "onlylowercaseletters",
      "ONLYUPPERCASELETTERS",
      "83650174926581",
      "spaces and words only",
    ]) {
      expect(statusOf(passphrase), passphrase).to.equal(null);
    }
  });

  it("must be a text of limited length: REQUEST_INVALID, without the passphrase in the message", () => {
    for (const passphrase of [undefined, null, 1, {}, [], "", "x".repeat(1_025), "\ud800 lone surrogate"]) {
      expect(statusOf(passphrase), String(passphrase)).to.equal("REQUEST_INVALID");
    }
  });

  it("accepts every character, and normalizes its encodings", () => {
    const composed = "caf\u00e9 and cr\u00e8me br\u00fbl\u00e9e";
    expect(parseNewPassphrase(composed.normalize("NFD"))).to.equal(parseNewPassphrase(composed));
    expect(statusOf(" \u0000\u0007\t\n control")).to.equal(null);
  });

  it("is stored as an argon2id hash with its own salt", async () => {
    const [first, second] = [
      await hashText("a long passphrase", QUEUE_KEY),
      await hashText("a long passphrase", QUEUE_KEY),
    ];
    expect(first).to.match(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$[\w+/]{22}\$[\w+/]{43}$/);
    expect(first).to.not.equal(second);
  });

  it("counts up to its last character", async () => {
    const long = "x".repeat(1_023);
    const stored = await hashText(`${long}a`, QUEUE_KEY);
    expect([
      await matchesHash(`${long}a`, stored, QUEUE_KEY),
      await matchesHash(`${long}b`, stored, QUEUE_KEY),
    ]).to.deep.equal([true, false]);
  });
});

describe("the session's cookie", () => {
  it("is Secure behind https, HttpOnly and SameSite, and has the path of the service", () => {
    const cookie = createSessionCookieHeaders("https://example.com/actions").createCookieHeader("token", 60);
    expect(cookie).to.equal("auth_token=token; Max-Age=60; Path=/actions; HttpOnly; Secure; SameSite=Lax");
    expect(createSessionCookieHeaders("http://127.0.0.1:4000").createCookieHeader("token", null)).to.not.include(
      "Secure",
    );
  });
});

describe("docs/operate/security-asvs.md", () => {
  const rows = readFileSync(`${ROOT}/docs/operate/security-asvs.md`, "utf8").split("\n");
  const citedTests = rows.flatMap((row) => {
    const found = /`(test\/[\w/.-]+)`: (.+?) \|$/.exec(row);
    return found ? [{ file: found[1]!, title: found[2]! }] : [];
  });

  it("cites tests that exist", () => {
    expect(citedTests.length).to.be.above(40);
    const missing = citedTests.filter(({ file, title }) => !readFileSync(`${ROOT}/${file}`, "utf8").includes(title));
    expect(missing).to.deep.equal([]);
  });

  it("gives each requirement one of three states, and met ones a test", () => {
    const requirements = rows.filter((row) => /^\| \d/.test(row)).map((row) => row.split(" | "));
    for (const [number, , status, reason] of requirements) {
      expect(status, number).to.be.oneOf(["met", "n/a", "not met"]);
      expect(/^`test\//.test(reason!), number).to.equal(status === "met");
    }
  });
});
