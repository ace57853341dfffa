/** Checks that an author's script URLs cannot add another directive to the content security policy of the page. */
import { expect } from "chai";
import { buildAuthorCodeDocument } from "../../src/api/author-document.js";
import type { PageEnvWithSession } from "../../src/rules/env-script.js";

const POLICY = "content-security-policy";
const NONCE = /'nonce-[^']*'/;
/** Directive that a script URL tries to add to the policy. It controls which sites can embed the page in a frame. */
const ADDED_DIRECTIVE = "frame-ancestors";
const ENV: PageEnvWithSession & { token: string } = {
  appId: 1,
  apiUrl: "https://apps.example",
  environment: "viewer",
  appSettings: {},
  clientTimeoutMs: 1000,
  session: { appId: 1, user: null, environment: "master" },
  token: "x",
};
const CHARACTERS = Array.from({ length: 0x80 }, (_, code) => String.fromCharCode(code));

function policyOf(addresses: readonly string[]): string {
  const dependencies = addresses.map((url) => ({ url }));
  const plain = { title: "x", env: ENV, pageValues: {}, pathPrefix: "", bodyHtml: "", scriptPath: "/client/debug.js" };
  const { headers } = buildAuthorCodeDocument({ ...plain, dependencies });
  return headers[POLICY]!.replace(NONCE, "");
}

describe("the security policy of a page that runs an author's code", () => {
  const hosts = CHARACTERS.flatMap((character) => [
    `x${character}${ADDED_DIRECTIVE}`,
    `${character}${ADDED_DIRECTIVE}`,
    `x${character}`,
    `%${character.charCodeAt(0).toString(16)}${ADDED_DIRECTIVE}`,
  ]);
  const addresses = hosts.map((host) => `https://${host}/a.js`).filter((url) => URL.canParse(url));

  it("is the same if the hosts of its scripts contain characters that no host has", () => {
    const unusualAddresses = addresses.filter((url) => !/^[\w.-]+$/.test(new URL(url).hostname));
    expect(unusualAddresses).to.not.be.empty;
    for (const url of unusualAddresses)
      expect(policyOf([url, "https://evil.example/b.js"]), url).to.equal(policyOf(["https://evil.example/b.js"]));
  });

  it("lists other hosts as sources of scripts, and nowhere else", () => {
    const plain = ["https://a.example/x.js", "https://b_c.example:8443/y.js", "https://[2001:db8::1]/z.js"];
    const origins = plain.map((url) => new URL(url).origin);
    expect(policyOf(plain)).to.equal(policyOf([]).replace("script-src ", `script-src  ${origins.join(" ")}`));
  });
});
