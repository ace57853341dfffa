/** Tests pings on websockets: which sockets the service terminates. */
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { expect } from "chai";
import { buildSchema } from "graphql";
import { pino } from "pino";
import { WebSocket, WebSocketServer } from "ws";
import { createSocketHandler } from "../../src/api/live/transport.js";

const PING_MS = 100;

describe("pings on a websocket", () => {
  let server: WebSocketServer;
  let paused: PromiseWithResolvers<void>;
  let allowed: PromiseWithResolvers<void>;

  /** Starts a server whose rate limiter delays each message until `allowed` resolves. */
  beforeEach(async () => {
    paused = Promise.withResolvers();
    allowed = Promise.withResolvers();
    const open = createSocketHandler(
      { schema: buildSchema("type Query { n: Int }") },
      {
        countMessage() {
          paused.resolve();
          return allowed.promise;
        },
        handleInTurn: async (_link, handle) => handle(),
        countSocket: () => () => undefined,
      },
      pino({ level: "silent" }),
      PING_MS,
    );
    server = new WebSocketServer({ port: 0, host: "127.0.0.1" });
    server.on("connection", (socket, request) => open(socket, request, {}));
    await once(server, "listening");
  });
  afterEach(() => {
    for (const client of server.clients) client.terminate();
    server.close();
  });

  async function connect(autoPong: boolean): Promise<WebSocket> {
    const { port } = server.address() as AddressInfo;
    const socket = new WebSocket(`ws://127.0.0.1:${port}`, "graphql-transport-ws", { autoPong });
    await once(socket, "open");
    return socket;
  }

  /** Opens a socket that answers no ping, and waits until the server has terminated it, which it does after two pings. */
  async function waitForTermination(): Promise<void> {
    const [code] = await once(await connect(false), "close");
    expect(code).to.equal(1006);
  }

  it("close the socket of a peer that does not answer, but not of one whose answers the rate limiter delays", async () => {
    const socket = await connect(true);
    socket.send('{"type":"connection_init"}');
    await paused.promise;
    await waitForTermination();
    await waitForTermination();
    expect(socket.readyState).to.equal(WebSocket.OPEN);
    const message = once(socket, "message");
    allowed.resolve();
    expect(String((await message)[0])).to.equal('{"type":"connection_ack"}');
    await once(socket, "ping");
  });

  it("count each message as an answer, because the pong may come after it", async () => {
    allowed.resolve();
    const socket = await connect(false);
    let pings = 0;
    socket.on("ping", () => {
      pings += 1;
      socket.send('{"type":"ping"}');
    });
    while (pings < 5 && socket.readyState === WebSocket.OPEN) {
      await Promise.race([once(socket, "ping"), once(socket, "close")]);
    }
    expect(pings).to.equal(5);
  });
});
