/** 2,000 generated URLs that try to leave the origins of an action: no connection goes anywhere else. */
import { expect } from "chai";
import { OutgoingSender } from "../../src/engine/outgoing.js";
import { createRequests } from "../../src/operations/requests/run-requests.js";

const ORIGINS = ["https://api.example.com", "https://xn--bcher-kva.example:8443"];
const ALLOWED = new Set(["api.example.com:443", "xn--bcher-kva.example:8443"]);

const SCHEMES = [
  "https://",
  "http://",
  "HTTPS://",
  "https:",
  "https:/",
  "https:\\\\",
  "//",
  "ftp://",
  "wss://",
  "javascript:",
  "https:///",
];
const USERS = ["", "", "", "user@", "user:pass@", "api.example.com@", "api.example.com:443@", "%40@", "a\\@"];
const HOSTS = [
  ...[
    "api.example.com",
    "API.EXAMPLE.COM",
    "api.example.com.",
    "api.example.com..",
    "api。example。com",
    "ａｐｉ.example.com",
  ],
  ...[
    "bücher.example",
    "xn--bcher-kva.example",
    "api.example.com.evil.example",
    "evil.example",
    "api-example.com",
    "example.com",
  ],
  ...[
    "xapi.example.com",
    "127.0.0.1",
    "localhost",
    "[::1]",
    "169.254.169.254",
    "2130706433",
    "0x7f.1",
    "[::ffff:7f00:1]",
  ],
  ...[
    "api.example.com%00.evil.example",
    "api.example.com%2f.evil.example",
    "аpi.example.com",
    "api.exаmple.com",
    "*.example.com",
  ],
  ...[
    "api.example.com\t.evil.example",
    "api\n.example.com",
    "api.example.com#.evil.example",
    "evil.example#api.example.com",
  ],
];
const PORTS = ["", "", ":443", ":0443", ":8443", ":80", ":0", ":65536", ":443x", ":"];
const PATHS = [
  "",
  "/",
  "/@evil.example/",
  "/..//evil.example",
  "\\evil.example",
  "?@evil.example",
  "//evil.example",
  "/%2e%2e/x",
];

/** A repeatable sequence of numbers below `most`. */
function* numbers(seed: number): Generator<(most: number) => number> {
  let state = seed;
  for (;;) {
    yield (most) => {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
      return Math.floor((state / 2 ** 32) * most);
    };
  }
}

describe("requests that try to leave the origins of an action", () => {
  const contacted: string[] = [];

  /** Refuses every connection and keeps where it should have gone. */
  const sender = new OutgoingSender(async (host, port) => {
    contacted.push(`${host}:${port}`);
    throw Object.assign(new Error(), { code: "ECONNREFUSED" });
  });
  const bindings = {
    credentialFor: async () => {
      throw new Error("no binding is asked for");
    },
    scanFor: async () => null,
  };
  /** Of a run of its own: one run may send 100. */
  const send = (options: object) =>
    createRequests({ sender, bindings })
      .begin({
        appId: 1,
        environment: "server",
        origins: ORIGINS,
        findInUrl: async () => null,
        print: () => undefined,
        onHost: () => undefined,
        onHop: () => () => undefined,
      })
      .send(JSON.stringify(options), new AbortController().signal);
  after(() => sender.close());

  it("reach no other host and port, in 2,000 generated URLs", async () => {
    const [next] = numbers(1);
    const pick = (list: readonly string[]) => list[next!(list.length)]!;
    const codes = new Map<string, number>();
    for (let count = 0; count < 2_000; count += 1) {
      const url = [SCHEMES, USERS, HOSTS, PORTS, PATHS].map(pick).join("");
      const { head } = await send({ url });
      const [status, code] = JSON.parse(head) as [number, string];
      expect(status, url).to.equal(0);
      codes.set(code, (codes.get(code) ?? 0) + 1);
    }
    expect(contacted.filter((host) => !ALLOWED.has(host))).to.deep.equal([]);
    expect(new Set(contacted)).to.deep.equal(ALLOWED);
    expect([...codes.keys()].sort()).to.deep.equal(["POLICY", "TRANSPORT"]);
    expect(codes.get("TRANSPORT")).to.equal(contacted.length);
  });

  it("are refused for every header that would change where a request goes", async () => {
    const names = [
      "Host",
      "host",
      ":authority",
      "Proxy-Authorization",
      "Connection",
      "Transfer-Encoding",
      "Upgrade",
      "Forwarded\r\nHost",
    ];
    const before = contacted.length;
    for (const name of names) {
      const options = { url: ORIGINS[0], headers: { [name]: "evil.example" } };
      const { head } = await send(options);
      expect(JSON.parse(head)[1], name).to.equal("POLICY");
    }
    expect(contacted).to.have.length(before);
  });
});
