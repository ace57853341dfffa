import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { mock } from "node:test";
import { expect } from "chai";
import { buildSchema } from "graphql";
import { pino } from "pino";
import { WebSocket, WebSocketServer } from "ws";
import { createSocketHandler } from "../../src/api/live/transport.js";
import { until } from "../harness/until.js";

const PING_MS = 100;

describe("pings on a websocket", () => {
  let server: WebSocketServer;
  let paused: PromiseWithResolvers<void>;
  let allowed: PromiseWithResolvers<void>;
  let received: number;

  /** Starts a server that handles no message until `allowed` resolves. The server sends pings when the test advances the mocked timers. */
  beforeEach(async () => {
    mock.timers.enable({ apis: ["setInterval"] });
    received = 0;
    paused = Promise.withResolvers();
    allowed = Promise.withResolvers();
    const open = createSocketHandler(
      { schema: buildSchema("type Query { n: Int }") },
      {
        countMessage() {
          received += 1;
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
    mock.timers.reset();
  });

  async function connect(autoPong: boolean): Promise<WebSocket> {
    const { port } = server.address() as AddressInfo;
    const socket = new WebSocket(`ws://127.0.0.1:${port}`, "graphql-transport-ws", { autoPong });
    await once(socket, "open");
    return socket;
  }

  /** Opens a socket that answers no ping, and waits until the server terminates it after two ping intervals. */
  async function waitForTermination(): Promise<void> {
    const closed = once(await connect(false), "close");
    mock.timers.tick(2 * PING_MS);
    expect((await closed)[0]).to.equal(1006);
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
    const ping = once(socket, "ping");
    mock.timers.tick(PING_MS);
    await ping;
  });

  it("count each message as an answer, because the pong may come after it", async () => {
    allowed.resolve();
    const socket = await connect(false);
    let pings = 0;
    socket.on("ping", () => {
      pings += 1;
      socket.send('{"type":"ping"}');
    });
    for (let ping = 1; ping <= 5; ping += 1) {
      mock.timers.tick(PING_MS);
      await until(() => received === ping || socket.readyState !== WebSocket.OPEN);
    }
    expect([pings, received]).to.deep.equal([5, 5]);
  });
});
