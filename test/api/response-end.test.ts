import { once } from "node:events";
import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { expect } from "chai";
import { WebSocket, WebSocketServer } from "ws";
import { createResponseEndSignal, getWebsocketClosedSignal } from "../../src/api/response-end.js";

const aborted = (signal: AbortSignal) => signal.aborted || once(signal, "abort");

describe("a response", () => {
  it("ends when the caller of an HTTP request has disconnected, and not before", async () => {
    const arrived = Promise.withResolvers<AbortSignal>();
    const server = createServer((incoming, reply) => arrived.resolve(createResponseEndSignal(incoming, reply)));
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const call = request({ port: (server.address() as AddressInfo).port, host: "127.0.0.1" }).end();
    call.on("error", () => undefined);
    const signal = await arrived.promise;
    expect(signal.aborted).to.equal(false);
    call.destroy();
    await aborted(signal);
    server.close();
  });

  it("ends when its websocket has closed, for all operations on that socket", async () => {
    const server = new WebSocketServer({ port: 0, host: "127.0.0.1" });
    await once(server, "listening");
    const client = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`);
    const [[socket]] = (await Promise.all([once(server, "connection"), once(client, "open")])) as [
      [WebSocket],
      unknown,
    ];
    const signal = getWebsocketClosedSignal(socket);
    expect(getWebsocketClosedSignal(socket)).to.equal(signal);
    expect(signal.aborted).to.equal(false);
    client.terminate();
    await aborted(signal);
    server.close();
  });
});
