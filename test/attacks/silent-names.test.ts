import { createSocket } from "node:dgram";
import { once } from "node:events";
import { isIPv6 } from "node:net";
import { expect } from "chai";
import { pino } from "pino";
import { readConfig } from "../../src/config.js";
import { createPublicHostResolver, selectHostResolver, systemHostResolver } from "../../src/engine/public-lookup.js";
import { createBrowserSources } from "../../src/service/browser-sources.js";
import { until } from "../harness/until.js";

const REQUEST_COUNT = 60;
/** Time limit of a lookup in milliseconds. A lookup of a name that does not begin with `silent` should end earlier, even on a busy machine. */
const LIMIT_MS = 60_000;
const ADDRESSES = { A: "203.0.113.9", AAAA: "2001:db8::9" };
const TYPES = { 1: "A", 28: "AAAA" } as const;
const ANSWER_FLAGS = 0x8180;

const bytesOf = (address: string): Buffer =>
  isIPv6(address)
    ? Buffer.from("20010db8000000000000000000000009", "hex")
    : Buffer.from(address.split(".").map(Number));

/** Parses the question of a DNS request: its bytes, the first label of its name, and its type. */
function parseQuestion(request: Buffer) {
  const end = request.indexOf(0, 12) + 5;
  const type = TYPES[request.readUInt16BE(end - 4) as keyof typeof TYPES];
  return {
    question: request.subarray(0, end),
    first: request.toString("latin1", 13, 13 + request[12]!).toLowerCase(),
    type,
  };
}

/**
 * Starts a DNS server. It ignores queries for names that begin with `silent`, queries for A of `no-a`, and queries for AAAA of `no-aaaa`.
 * Its responses have no address for A of `without-a` and AAAA of `without-aaaa`.
 */
async function startNameServer() {
  const socket = createSocket("udp4");
  socket.on("message", (request, { port, address }) => {
    const { question, first, type } = parseQuestion(request);
    if (first.startsWith("silent") || first === `no-${type.toLowerCase()}`) return;
    const head = Buffer.from(question);
    head.writeUInt16BE(ANSWER_FLAGS, 2);
    const isThere = first !== `without-${type.toLowerCase()}`;
    head.writeUInt16BE(isThere ? 1 : 0, 6);
    head.writeUInt32BE(0, 8);
    const data = bytesOf(ADDRESSES[type]);
    const record = Buffer.from([0xc0, 12, 0, question.at(-3)!, 0, 1, 0, 0, 0, 1, 0, data.length]);
    socket.send(isThere ? Buffer.concat([head, record, data]) : head, port, address);
  });
  socket.bind(0, "127.0.0.1");
  await once(socket, "listening");
  return { at: `127.0.0.1:${socket.address().port}`, stop: () => socket.close() };
}

describe("names whose name server never responds", () => {
  let server: Awaited<ReturnType<typeof startNameServer>>;
  before(async () => {
    server = await startNameServer();
  });
  after(() => server.stop());

  const createResolver = (limitMs = LIMIT_MS) => createPublicHostResolver({ servers: [server.at], timeoutMs: limitMs });
  const codeOf = (found: Promise<unknown>) =>
    found.then(
      () => "found",
      ({ code }: NodeJS.ErrnoException) => code,
    );
  const v4 = { address: ADDRESSES.A, family: 4 };
  const v6 = { address: ADDRESSES.AAAA, family: 6 };

  it("delay no other name, and no lookup of the machine itself", async () => {
    const resolveHost = createResolver();
    let answerCount = 0;
    for (let number = 0; number < REQUEST_COUNT; number += 1)
      void codeOf(resolveHost(`silent-${number}.test`)).then(() => {
        answerCount += 1;
      });
    expect(await resolveHost("ready.test")).to.deep.equal([v4, v6]);
    await systemHostResolver("localhost");
    expect(answerCount).to.equal(0);
  });

  it("are given up after a time limit", async () => {
    const resolveHost = createResolver(300);
    const codes = await Promise.all(
      Array.from({ length: REQUEST_COUNT }, (_, number) => codeOf(resolveHost(`silent-${number}.test`))),
    );
    expect(new Set(codes)).to.deep.equal(new Set(["ETIMEOUT"]));
    expect(await until(() => resolveHost("ready.test").catch(() => null))).to.deep.equal([v4, v6]);
  });

  for (const [name, found] of [
    ["without-aaaa", [v4]],
    ["without-a", [v6]],
    ["no-aaaa", [v4]],
    ["no-a", [v6]],
  ] as const) {
    it(`have the addresses of one family if the other is missing: ${name}`, async () => {
      expect(await createResolver()(`${name}.test`)).to.deep.equal(found);
    });
  }

  it("are not looked up if they mean this machine by definition", async () => {
    for (const name of ["localhost", "LOCALHOST.", "any.localhost"])
      expect(await createResolver()(name)).to.deep.equal([{ address: "127.0.0.1", family: 4 }]);
  });

  it("are looked up in this way for runs too, unless runs may request private addresses", async () => {
    for (const privateNetwork of ["", "1"]) {
      const config = readConfig({ ALLOW_PRIVATE_NETWORK: privateNetwork, CHROME_PATH: process.execPath });
      const { egressOptions } = createBrowserSources(config, pino({ level: "silent" }));
      expect(egressOptions.resolve).to.equal(selectHostResolver(privateNetwork === "1"));
      expect(egressOptions.resolve === systemHostResolver).to.equal(privateNetwork === "1");
    }
  });
});
