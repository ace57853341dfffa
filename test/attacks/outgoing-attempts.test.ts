/**
 * Tests attempts of code and servers to redirect a request to another host, or to reveal a bound secret. The hosts are local TLS servers.
 * outgoing-origins.test.ts covers the URL itself.
 */
import { once } from "node:events";
import type { IncomingMessage, RequestListener } from "node:http";
import type { ServerHttp2Session } from "node:http2";
import { type AddressInfo, connect, type Socket } from "node:net";
import { expect } from "chai";
import { pino } from "pino";
import { createAddressCheckedConnections } from "../../src/engine/checked-connections.js";
import { isPublicAddress } from "../../src/engine/egress-proxy.js";
import { OutgoingRequestSender } from "../../src/engine/outgoing.js";
import { createSecretScannerCache } from "../../src/engine/secret-scan.js";
import { createBindingCredential } from "../../src/operations/requests/credentials.js";
import { RunRequestSender } from "../../src/operations/requests/run-requests.js";
import { listSecretEncodings } from "../../src/rules/secret-encodings.js";
import { findSecretsInSettingValue } from "../../src/rules/secrets.js";
import { ECHOES } from "../api/echo-forms.js";
import { http2Server, tlsServer, trustLocalhost } from "../harness/localhost-tls.js";
import { runsAll } from "../harness/samples.js";
import { HOSTS, numbers, PATHS, PORTS, SCHEMES, USERS } from "./outgoing-urls.js";

const REDIRECTS = runsAll() ? 500 : 100;
const RESPONSES = runsAll() ? 400 : 100;
const KEY = "__key";
const SECRET = "sk_live_4eC39HqLyjWDarjtT1zdp7dc";
const BINDING = { key: KEY, in: "header", name: "X-Key", format: null, sealed: true } as const;
const NO_OAUTH = { tokenUrl: null, clientId: null, scopes: [], grant: null };

type Answer = [status: number, second: unknown, third: unknown];

describe("attempts to redirect requests, or to get a bound secret", () => {
  const contactedHosts = new Set<string>();
  const closers: (() => void)[] = [];
  let undoTrust: () => void;
  let origin: string;
  let other: string;
  let answer: RequestListener;
  let received: IncomingMessage[] = [];
  let requestsAtOtherHost: IncomingMessage[] = [];
  let printed: string[] = [];

  /** Connects requests for localhost to a local server, and refuses all others. Records the host and port of each request. */
  const sender = new OutgoingRequestSender(async (host, port) => {
    contactedHosts.add(`${host}:${port}`);
    if (host !== "localhost" && host !== "127.0.0.1") throw Object.assign(new Error(), { code: "ECONNREFUSED" });
    const socket = connect(port, "127.0.0.1");
    await once(socket, "connect");
    return socket;
  });

  const scan = () => {
    const secrets = findSecretsInSettingValue(KEY, SECRET);
    const forms = listSecretEncodings(SECRET).map((value) => ({ name: KEY, value, mustMatchWhole: false }));
    return createSecretScannerCache().getScanner("1", "1", [...secrets, ...forms]);
  };
  const known = scan();
  const bindings = {
    async getCredential(_appId: number, _key: string, at: string) {
      if (at !== origin) throw new Error("the binding is for the first origin only");
      return createBindingCredential({ ...BINDING, ...NO_OAUTH, origin }, SECRET, async () => SECRET);
    },
    getScanner: async () => known,
  };

  async function send(options: object, origins = [origin], by = sender) {
    const run = new RunRequestSender({ sender: by, bindings, log: pino({ level: "silent" }) }).beginRun({
      appId: 1,
      environment: "server",
      origins,
      findInUrl: (url) => known.findInUrl(url),
      printLine: ({ text }) => printed.push(text),
      onHostContacted: () => undefined,
      startRequestSpan: () => () => undefined,
    });
    const { head, text } = await run.send(JSON.stringify(options), new AbortController().signal);
    const [status, second, third] = JSON.parse(head) as Answer;
    const all = JSON.stringify([head, text, printed, run.records]);
    return { status, code: status === 0 ? (second as string) : null, third, text, all };
  }

  async function listen(server: ReturnType<typeof tlsServer> | ReturnType<typeof http2Server>): Promise<number> {
    const sockets = new Set<Socket>();
    server.on("connection", (socket: Socket) => sockets.add(socket.on("error", () => undefined)));
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    closers.push(() => {
      server.close();
      for (const socket of sockets) socket.destroy();
    });
    return (server.address() as AddressInfo).port;
  }

  before(async () => {
    undoTrust = trustLocalhost();
    const first = tlsServer((request, response) => {
      received.push(request);
      answer(request, response);
    });
    const second = tlsServer((request, response) => {
      requestsAtOtherHost.push(request);
      response.end("there");
    });
    origin = `https://localhost:${await listen(first)}`;
    other = `https://localhost:${await listen(second)}`;
  });
  beforeEach(() => {
    received = [];
    requestsAtOtherHost = [];
    printed = [];
    contactedHosts.clear();
  });
  after(async () => {
    await sender.close();
    for (const close of closers) close();
    undoTrust();
  });

  const hostOf = (url: string): string => new URL(url).host;

  it(`${REDIRECTS} redirects lead only to the listed origin, with and without a credential`, async () => {
    const [next] = numbers(2);
    const pick = (list: readonly string[]) => list[next!(list.length)]!;
    const { port } = new URL(origin);
    const hosts = [...HOSTS.map((host) => host.replaceAll("api.example.com", "localhost")), hostOf(other)];
    const ports = [...PORTS, `:${port}`, `:${port}`, `:${new URL(other).port}`];
    let refused = 0;
    for (let count = 0; count < REDIRECTS; count += 1) {
      const location = [SCHEMES, USERS, hosts, ports, PATHS]
        .map(pick)
        .join("")
        .replace(/[\0\r\n]/g, "");
      const status = [301, 302, 303, 307, 308][count % 5]!;
      answer = (request, response) =>
        request.url === "/from"
          ? response.writeHead(status, { location: Buffer.from(location).toString("latin1") }).end()
          : response.end("ok");
      const auth = count % 2 === 0 ? { auth: KEY } : {};
      const sent = await send({ url: `${origin}/from`, ...auth });
      if (sent.code !== null) refused += 1;
      expect(sent.code ?? "", location).to.be.oneOf(["", "POLICY"]);
      expect(sent.all, location).to.not.include(SECRET);
    }
    expect([...contactedHosts].filter((host) => host !== hostOf(origin))).to.deep.equal([]);
    expect(requestsAtOtherHost).to.deep.equal([]);
    expect(refused).to.be.above(REDIRECTS / 2);
    expect(received.length).to.be.above(REDIRECTS);
  });

  it("a redirect to another listed origin has no credential and no header of the first request", async () => {
    answer = (_request, response) => response.writeHead(302, { location: `${other}/` }).end();
    for (const options of [{ auth: KEY }, { headers: { authorization: "Bearer of-the-code" } }]) {
      expect((await send({ url: origin, ...options }, [origin, other])).code).to.equal("POLICY");
    }
    await send({ url: origin, headers: { "x-own": "1" } }, [origin, other]);
    expect(requestsAtOtherHost).to.have.length(1);
    expect(requestsAtOtherHost[0]!.headers).to.not.have.any.keys("x-own", "x-key", "authorization");
  });

  it(`${RESPONSES} responses that contain the secret in ${ECHOES.length} encodings give it to no code, log or console`, async () => {
    const [next] = numbers(3);
    for (let count = 0; count < RESPONSES; count += 1) {
      const [title, echo] = ECHOES[count % ECHOES.length]!;
      const { body: written, headers = {} } = echo(SECRET);
      const around = [next!(12), next!(12)].map((length) => " lorem\n\tip".slice(0, length));
      const body = typeof written === "string" && written !== "" ? around[0] + written + around[1] : written;
      const status = [200, 201, 400, 401, 500][next!(5)]!;
      answer = (_request, response) => response.writeHead(status, headers).end(body);
      const responseType = (["text", "bytes", "json"] as const)[next!(3)];
      const { all, text, third } = await send({ url: origin, auth: KEY, responseType });
      const read = third === "bytes" ? Buffer.from(text, "base64").toString("latin1") : text;
      expect(all, title).to.include(`the setting ${KEY}, which was masked`).and.not.include(SECRET);
      expect(read, title).to.not.include(SECRET);
      if (typeof written === "string" && written !== "") expect(read, title).to.not.include(written);
      printed = [];
    }
    expect(received[0]!.headers["x-key"]).to.equal(SECRET);
  });

  it("300 names and values with line breaks add no header and no request", async () => {
    const [next] = numbers(4);
    const pick = <T>(list: readonly T[]): T => list[next!(list.length)]!;
    const ends = [
      "\r\n",
      "\n",
      "\r",
      "\0",
      "\u0085",
      "\u2028",
      "\r\n\r\n",
      "\u010d\u010a",
      "%0d%0a",
      "\\r\\n",
      "\v",
      "\f",
    ];
    const after = ["X-Evil: 1", "Host: evil.example", "GET /evil HTTP/1.1", "Transfer-Encoding: chunked", `${SECRET}`];
    answer = (_request, response) => response.end("ok");
    let sendCount = 0;
    for (let count = 0; count < 300; count += 1) {
      const text = `a${pick(ends)}${pick(after)}`;
      const { code, all } = await send({
        url: origin,
        auth: KEY,
        ...pick([
          { headers: { "x-own": text } },
          { headers: { [text]: "1" } },
          { headers: { "content-type": text }, method: "POST", body: "" },
          { url: `${origin}/${text}` },
          { query: { [text]: text } },
          { method: text },
          { headers: { "x-own": [text] } },
        ]),
      });
      if (code === null) sendCount += 1;
      expect(code ?? "", text).to.be.oneOf(["", "POLICY"]);
      expect(all.replaceAll(JSON.stringify(text).slice(1, -1), ""), text).to.not.include(`X-Key`);
    }
    expect(received).to.have.length(sendCount);
    for (const { headers, url, headersDistinct } of received) {
      expect(headers).to.not.have.property("x-evil");
      expect(headersDistinct["host"]).to.deep.equal([hostOf(origin)]);
      expect(url).to.not.equal("/evil");
    }
    expect(contactedHosts.size).to.be.at.most(1);
  });

  it("an HTTP/2 connection serves only its own origin, whatever its certificate and the server claim", async () => {
    const sessions: ServerHttp2Session[] = [];
    const authorities: (string | undefined)[] = [];
    const server = http2Server((request, response) => {
      authorities.push(request.headers[":authority"] as string | undefined);
      response.setHeader("alt-svc", `h2="${hostOf(other)}"; ma=60, h3="${hostOf(other)}"; persist=1`);
      response.end("ok");
    });
    const port = await listen(server);
    // The certificate is valid for both host names. So HTTP/2 allows a client to use one connection for both (RFC 9113, 9.1.1).
    const [named, numbered] = [`https://localhost:${port}`, `https://127.0.0.1:${port}`];
    server.on("session", (session: ServerHttp2Session) => {
      sessions.push(session);
      session.origin(numbered, other);
    });
    for (let turn = 0; turn < 3; turn += 1) expect((await send({ url: named }, [named])).status).to.equal(200);
    expect(sessions).to.have.length(1);
    expect((await send({ url: numbered }, [named])).code).to.equal("POLICY");
    expect((await send({ url: numbered }, [named, numbered])).status).to.equal(200);
    expect(sessions).to.have.length(2);
    expect(authorities).to.deep.equal([...Array(3).fill(`localhost:${port}`), `127.0.0.1:${port}`]);
    for (let turn = 0; turn < 2; turn += 1) await send({ url: named }, [named]);
    expect(requestsAtOtherHost).to.deep.equal([]);
    expect([...contactedHosts].sort()).to.deep.equal([`127.0.0.1:${port}`, `localhost:${port}`]);
  });

  it("400 addresses of private networks are not connected to, in any notation of a name or URL", async () => {
    const [next] = numbers(5);
    const byte = () => next!(256);
    const v4 = [
      () => `127.${byte()}.${byte()}.${byte()}`,
      () => `10.${byte()}.${byte()}.${byte()}`,
      () => `172.${16 + next!(16)}.${byte()}.${byte()}`,
      () => `192.168.${byte()}.${byte()}`,
      () => `169.254.${byte()}.${byte()}`,
      () => `100.${64 + next!(64)}.${byte()}.${byte()}`,
      () => `0.${byte()}.${byte()}.${byte()}`,
      () => `${224 + next!(32)}.${byte()}.${byte()}.${byte()}`,
    ];
    const hex = (address: string) => {
      const [a, b, c, d] = address.split(".").map(Number) as [number, number, number, number];
      return `${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`;
    };
    const v6 = [
      (address: string) => `::ffff:${hex(address)}`,
      (address: string) => `::${hex(address)}`,
      (address: string) => `64:ff9b::${hex(address)}`,
      (address: string) => `2002:${hex(address)}::1`,
      () => "::1",
      () => `fc${byte().toString(16).padStart(2, "0")}::${(1 + byte()).toString(16)}`,
      () => `fe80::${(1 + byte()).toString(16)}`,
      () => `ff02::${(1 + byte()).toString(16)}`,
    ];
    let resolved: string[] = [];
    const { connect: open } = createAddressCheckedConnections({
      mayReach: isPublicAddress,
      mayUsePort: () => true,
      resolve: async () => resolved.map((address) => ({ address, family: address.includes(":") ? 6 : 4 })),
    });
    const defaultSender = new OutgoingRequestSender(open);
    try {
      for (let count = 0; count < 400; count += 1) {
        const plain = v4[next!(v4.length)]!();
        const address = next!(2) === 0 ? plain : v6[next!(v6.length)]!(plain);
        const literal = address.includes(":") ? `[${address}]` : address;
        // In about half of the attempts, the host name resolves to a public address too.
        resolved = next!(2) === 0 ? [address] : ["93.184.215.14", address];
        const url = next!(2) === 0 ? `https://${literal}` : "https://rebound.example";
        const { code } = await send({ url, auth: undefined }, [new URL(url).origin], defaultSender);
        expect(code, `${url} ${resolved}`).to.equal("POLICY");
      }
    } finally {
      await defaultSender.close();
    }
  });
});
