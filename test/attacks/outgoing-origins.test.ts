/** Generates 2,000 URLs that try to reach hosts outside the allowed origins of an action. The service must open no such connection. */
import { expect } from "chai";
import { pino } from "pino";
import { OutgoingRequestSender } from "../../src/engine/outgoing.js";
import { RunRequestSender } from "../../src/operations/requests/run-requests.js";
import { HOSTS, numbers, PATHS, PORTS, SCHEMES, USERS } from "./outgoing-urls.js";

const ORIGINS = ["https://api.example.com", "https://xn--bcher-kva.example:8443"];
const ALLOWED_HOSTS = new Set(["api.example.com:443", "xn--bcher-kva.example:8443"]);

describe("requests that try to leave the origins of an action", () => {
  const contacted: string[] = [];

  const sender = new OutgoingRequestSender(async (host, port) => {
    contacted.push(`${host}:${port}`);
    throw Object.assign(new Error(), { code: "ECONNREFUSED" });
  });
  const bindings = {
    getCredential: async () => {
      throw new Error("no binding is asked for");
    },
    getScanner: async () => null,
  };
  /** Each request belongs to a separate run, because one run can send at most 100 requests. */
  const send = (options: object) =>
    new RunRequestSender({ sender, bindings, log: pino({ level: "silent" }) })
      .beginRun({
        appId: 1,
        environment: "server",
        origins: ORIGINS,
        findInUrl: async () => null,
        printLine: () => undefined,
        onHostContacted: () => undefined,
        startRequestSpan: () => () => undefined,
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
    expect(contacted.filter((host) => !ALLOWED_HOSTS.has(host))).to.deep.equal([]);
    expect(new Set(contacted)).to.deep.equal(ALLOWED_HOSTS);
    expect([...codes.keys()].sort()).to.deep.equal(["POLICY", "TRANSPORT"]);
    expect(codes.get("TRANSPORT")).to.equal(contacted.length);
  });

  it("are rejected with every header that would change the destination of a request", async () => {
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
