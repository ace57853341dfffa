/** Tests the connection to a remote browser. It ends when the remote side has disconnected, and not before. */
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { expect } from "chai";
import { type WebSocket, WebSocketServer } from "ws";
import { openSocketTransport, type SocketTransport } from "../../../src/engine/browser/remote/socket-transport.js";

describe("the socket to a browser", () => {
  let server: WebSocketServer;

  async function open(autoPong: boolean): Promise<{ transport: SocketTransport; far: WebSocket }> {
    server = new WebSocketServer({ port: 0, host: "127.0.0.1", autoPong });
    await once(server, "listening");
    const connected = once(server, "connection");
    const url = `ws://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const transport = await openSocketTransport(url, new AbortController().signal, 20);
    const [far] = await connected;
    return { transport, far };
  }
  afterEach(() => {
    for (const client of server.clients) client.terminate();
    server.close();
  });

  it("closes, and reports it once, if pings are not answered", async () => {
    const { transport } = await open(false);
    let closes = 0;
    transport.onclose = () => {
      closes += 1;
    };
    await transport.closed;
    expect(closes).to.equal(1);
  });

  it("stays open while pings are answered, and knows its remote address", async () => {
    const { transport, far } = await open(true);
    for (let pings = 0; pings < 10; pings += 1) await once(far, "ping");
    const received = new Promise((resolve) => {
      transport.onmessage = resolve;
    });
    far.send("there");
    expect([await received, transport.peer]).to.deep.equal(["there", "127.0.0.1"]);
  });

  it("closes even if the other end does not close it", async () => {
    const { transport, far } = await open(true);
    far.pause();
    transport.close();
    await transport.closed;
    expect(far.readyState).to.equal(far.OPEN);
  });
});
