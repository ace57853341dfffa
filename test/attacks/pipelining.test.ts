/**
 * Tests a client that sends several requests on one connection without waiting for responses. Few of them are processed at once, and the
 * responses keep the order.
 */
import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { expect } from "chai";
import { createHttpEntryPoint } from "../../src/api/health.js";
import { createHttpServer } from "../../src/api/port.js";
import { until } from "../harness/until.js";

const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`;
const post = (path: string, body: string) =>
  `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
const encodeChunkedRequest = (path: string, body: string) =>
  `POST ${path} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`;

async function bodyOf(request: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  return Buffer.concat(parts).toString();
}

describe("pipelined requests", () => {
  const closings: (() => void)[] = [];
  afterEach(() => {
    for (const close of closings.splice(0)) close();
  });

  /** Starts a server that does not respond by itself. The test responds to the requests in `open`. */
  async function listen(): Promise<{
    port: number;
    open: { request: IncomingMessage; response: ServerResponse }[];
    seen: string[];
    connection: () => Socket;
    server: ReturnType<typeof createHttpServer>;
  }> {
    const open: { request: IncomingMessage; response: ServerResponse }[] = [];
    const seen: string[] = [];
    const entryPoint = createHttpEntryPoint({});
    entryPoint.forwardRequestsTo((request, response) => {
      seen.push(request.url!);
      open.push({ request, response });
    });
    const server = createHttpServer(entryPoint);
    let connection: Socket | null = null;
    server.on("connection", (socket) => (connection = socket));
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    closings.push(() => server.close().closeAllConnections());
    return { port: (server.address() as AddressInfo).port, open, seen, connection: () => connection!, server };
  }

  function openSocket(port: number): { socket: Socket; text: () => string } {
    const socket = connect(port, "127.0.0.1");
    closings.push(() => socket.destroy());
    let text = "";
    socket.on("data", (data) => (text += data)).on("error", () => undefined);
    return { socket, text: () => text };
  }

  it("wait in the socket: one of 5,000 is in progress, and no other has been read", async () => {
    const { port, open, seen, connection } = await listen();
    const { socket } = openSocket(port);
    socket.write(Array.from({ length: 5_000 }, (_, n) => get(`/${n}`)).join(""));
    await until(() => seen.length > 0 && connection().isPaused());
    expect(seen).to.deep.equal(["/0"]);
    open.shift()!.response.end();
    await until(() => open.length > 0);
    expect(seen).to.deep.equal(["/0", "/1"]);
  });

  it("each get their response, in order, with bodies of every kind and any splits of the network", async () => {
    const { port, open } = await listen();
    const { socket, text } = openSocket(port);
    const bodies = [
      (n: number) => `body ${n}`,
      (n: number) => `a\r\n\r\nGET /inner${n} HTTP/1.1\r\n\r\n`,
      () => "x".repeat(3_000),
      () => "y\r\n\r\n".repeat(900),
    ];
    const requests = Array.from({ length: 240 }, (_, n) => {
      const path = `/${n}`;
      const body = bodies[n % bodies.length]!(n);
      if (n % 3 === 0) return { path, body: "", bytes: get(path) };
      return { path, body, bytes: (n % 3 === 1 ? post : encodeChunkedRequest)(path, body) };
    });
    const serving = (async () => {
      for (const _ of requests) {
        await until(() => open.length > 0);
        const { request, response } = open.shift()!;
        response.end(`<${request.url} ${(await bodyOf(request)).length}>`);
      }
    })();
    const bytes = requests.map((request) => request.bytes).join("");
    for (let at = 0, step = 1; at < bytes.length; at += step, step = (step * 7 + 3) % 5_003) {
      socket.write(bytes.slice(at, at + step));
      if (step % 5 === 0) await new Promise(setImmediate);
    }
    await serving;
    const answers = () => text().match(/<[^>]*>/g) ?? [];
    await until(() => answers().length === requests.length);
    expect(answers()).to.deep.equal(requests.map(({ path, body }) => `<${path} ${body.length}>`));
  });

  it("are dropped with their connection: none is executed after it was cut", async () => {
    const { port, open, seen } = await listen();
    const { socket } = openSocket(port);
    socket.write(get("/first") + get("/second").repeat(100));
    await until(() => open.length > 0);
    socket.resetAndDestroy();
    open[0]!.response.end("x".repeat(100_000));
    await once(open[0]!.response, "close").catch(() => undefined);
    await new Promise(setImmediate);
    expect(seen).to.deep.equal(["/first"]);
  });

  it("are dropped with their connection if Node has parsed them together with the end of a chunked body", async () => {
    const { port, open, seen } = await listen();
    const { socket } = openSocket(port);
    socket.write(encodeChunkedRequest("/first", "body") + get("/second").repeat(3));
    await until(() => open.length > 0 && open[0]!.request.complete);
    const closed = once(open[0]!.response, "close");
    socket.resetAndDestroy();
    await closed;
    await new Promise(setImmediate);
    expect(seen).to.deep.equal(["/first"]);
  });

  it("detect that a caller has disconnected while the first of them is in progress", async () => {
    const { port, open } = await listen();
    const { socket } = openSocket(port);
    socket.write(get("/first") + get("/second"));
    await until(() => open.length > 0);
    socket.resetAndDestroy();
    await once(open[0]!.response, "close");
  });

  it("leave the bytes after an upgrade to the new protocol", async () => {
    const { port, server } = await listen();
    const got: string[] = [];
    server.on("upgrade", (_request, socket, head) => {
      closings.push(() => socket.destroy());
      socket.unshift(head);
      socket.on("data", (data: Buffer) => got.push(String(data)));
      socket.write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n");
    });
    const { socket } = openSocket(port);
    socket.write("GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\nfirst\r\n\r\nsecond");
    await until(() => got.join("").length === "first\r\n\r\nsecond".length);
    socket.write("third");
    await until(() => got.join("").endsWith("third"));
    expect(got.join("")).to.equal("first\r\n\r\nsecondthird");
  });
});
