import { expect } from "chai";
import { INTEGRATION_ORIGINS_PER_ACTION_MAX } from "../../src/limits.js";
import { findIntegrationOriginsFault, toStoredIntegrationOrigins } from "../../src/rules/integration-origins.js";

const PUBLIC_NETWORK_ONLY = { allowPrivateNetwork: false };
const PRIVATE = { allowPrivateNetwork: true };
const fault = (origin: unknown, rules = PUBLIC_NETWORK_ONLY) => findIntegrationOriginsFault([origin], "server", rules);

describe("the origins of an action", () => {
  for (const [origin, stored] of [
    ["https://api.stripe.com", "https://api.stripe.com"],
    ["https://api.stripe.com/", "https://api.stripe.com"],
    ["HTTPS://API.Stripe.COM:443", "https://api.stripe.com"],
    ["https://api.stripe.com.", "https://api.stripe.com"],
    ["https://api.stripe.com.:8443/", "https://api.stripe.com:8443"],
    ["https://bücher.example", "https://xn--bcher-kva.example"],
    ["https://ＡＰＩ.example", "https://api.example"],
    ["https://api。example", "https://api.example"],
    ["https://93.184.216.34", "https://93.184.216.34"],
    ["https://0x5db8d822", "https://93.184.216.34"],
    ["https://[2606:2800:0220:0001::1]:443", "https://[2606:2800:220:1::1]"],
  ] as const) {
    it(`store ${origin} as ${stored}`, () => {
      expect(fault(origin)).to.equal(null);
      expect(toStoredIntegrationOrigins([origin])).to.deep.equal([stored]);
    });
  }

  for (const origin of [
    ...["", "api.stripe.com", "https:", "https://", "https:api.stripe.com", "ftp://a.example", "wss://a.example"],
    ...["https://a.example/v1", "https://a.example//", "https:///a.example", "https://a.example/."],
    ...["https://a.example?", "https://a.example?x=1", "https://a.example#x", "https://a.example#"],
    ...["https://u@a.example", "https://u:p@a.example", "https://:@a.example", "https://@a.example"],
    ...["https://*.example", "https://a b.example", "https://a..example", "https://.example", "https://-a.example"],
    ...["https://a.example:0", "https://a.example:65536", "https://a.example:x", "https://a.example\\b", "https://."],
    ...[" https://a.example", "https://a.example\n", "https://a\t.example", `https://${"a".repeat(64)}.example`],
    ...["http://a.example", "http://localhost", "https://localhost", "https://a.localhost.", "https://127.0.0.1"],
    ...[
      "https://2130706433",
      "https://10.1.2.3",
      "https://169.254.169.254",
      "https://[::1]",
      "https://[::ffff:7f00:1]",
    ],
    ...[
      "https://[fd00::1]",
      "https://0.0.0.0",
      null,
      1,
      {},
      ["https://a.example"],
      `https://${"a.".repeat(200)}example`,
    ],
  ]) {
    it(`reject ${JSON.stringify(origin)}`, () => {
      expect(fault(origin)).to.match(/^integrationOrigins\[0\] must be .* \(got /);
    });
  }

  it("have at most 300 characters, and a host of at most 253", () => {
    const ofLength = (length: number) => `https://api.example:${"443".padStart(length - 20, "0")}`;
    expect([ofLength(300).length, fault(ofLength(300))]).to.deep.equal([300, null]);
    expect(fault(ofLength(301))).to.be.a("string");
    const label = "a".repeat(63);
    const hostOf = (last: number) => `https://${label}.${label}.${label}.${"a".repeat(last)}`;
    expect(fault(hostOf(61))).to.equal(null);
    expect(fault(hostOf(62))).to.be.a("string");
  });

  it("need one of the allowed schemes, and an array", () => {
    expect(fault("ftp://a.example")).to.include("must be an https origin");
    expect(fault("ftp://a.example", PRIVATE)).to.include("must be an https or http origin");
    for (const value of ["https://a.example", {}, 1])
      expect(findIntegrationOriginsFault(value, "server", PUBLIC_NETWORK_ONLY)).to.match(
        /^integrationOrigins must be an array/,
      );
  });

  it("may be http and loopback if private networks are allowed, and no other scheme", () => {
    for (const origin of ["http://localhost:8080", "http://127.0.0.1:1", "https://[::1]", "http://api.internal:80"]) {
      expect(fault(origin, PRIVATE), origin).to.equal(null);
    }
    expect(toStoredIntegrationOrigins(["http://LOCALHOST:80"])).to.deep.equal(["http://localhost"]);
    for (const origin of ["ws://localhost", "file:///etc", "http://localhost/x"]) {
      expect(fault(origin, PRIVATE), origin).to.be.a("string");
    }
  });

  it("are at most 20, each stored once, and only for server actions", () => {
    const many = Array.from(
      { length: INTEGRATION_ORIGINS_PER_ACTION_MAX + 1 },
      (_, index) => `https://a${index}.example`,
    );
    expect(findIntegrationOriginsFault(many.slice(1), "server", PUBLIC_NETWORK_ONLY)).to.equal(null);
    expect(findIntegrationOriginsFault(many, "server", PUBLIC_NETWORK_ONLY)).to.include("at most 20");
    expect(toStoredIntegrationOrigins(["https://a.example", "https://A.example:443"])).to.have.length(1);
    expect(findIntegrationOriginsFault(many.slice(1), "client", PUBLIC_NETWORK_ONLY)).to.include(
      'unless environment is "server"',
    );
    expect(findIntegrationOriginsFault([], "client", PUBLIC_NETWORK_ONLY)).to.equal(null);
    expect(findIntegrationOriginsFault(null, "any", PUBLIC_NETWORK_ONLY)).to.equal(null);
    expect(toStoredIntegrationOrigins(null)).to.deep.equal([]);
  });
});
