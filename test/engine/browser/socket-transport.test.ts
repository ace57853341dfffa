/** Tests the connection to a remote browser. It ends when the remote side has disconnected, and not before. */
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { expect } from "chai";
import { type WebSocket, WebSocketServer } from "ws";
import { openSocketTransport, type SocketTransport } from "../../../src/engine/browser/remote/socket-transport.js";

describe("the socket to a browser", () => {
  let server: WebSocketServer;

  async function open(): Promise<{ transport: SocketTransport; far: WebSocket }> {
    server = new WebSocketServer({ port: 0, host: "127.0.0.1" });
    await once(server, "listening");
    const connected = once(server, "connection");
    const url = `ws://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const transport = await openSocketTransport(url, new AbortController().signal);
    const [far] = await connected;
    return { transport, far };
  }
  afterEach(() => {
    for (const client of server.clients) client.terminate();
    server.close();
  });

  it("reports once that the other end has closed it", async () => {
    const { transport, far } = await open();
    let closes = 0;
    transport.onclose = () => {
      closes += 1;
    };
    far.terminate();
    await transport.ended;
    expect(closes).to.equal(1);
  });

  it("receives messages, and knows its remote address", async () => {
    const { transport, far } = await open();
    const received = new Promise((resolve) => {
      transport.onmessage = resolve;
    });
    far.send("there");
    expect([await received, transport.peer]).to.deep.equal(["there", "127.0.0.1"]);
  });

  it("closes even if the other end does not close it", async () => {
    const { transport, far } = await open();
    far.pause();
    transport.close();
    await transport.ended;
    expect(far.readyState).to.equal(far.OPEN);
  });
});
