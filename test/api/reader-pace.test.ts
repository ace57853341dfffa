/** Readers of streamed responses: a slow reader is disconnected, a slow source is not. */
import { once } from "node:events";
import { type AddressInfo, connect } from "node:net";
import { Readable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import { expect } from "chai";
import Fastify, { type FastifyInstance } from "fastify";
import { endSlowReader } from "../../src/api/reader-pace.js";

const MB = 1024 * 1024;

describe("the reader of a streamed answer", () => {
  let app: FastifyInstance;
  afterEach(() => app.close());

  async function listen(source: () => AsyncGenerator<Buffer>): Promise<number> {
    app = Fastify();
    app.get("/", (_request, reply) => {
      endSlowReader(reply, { ms: 50, bytes: 10 * MB });
      return reply.send(Readable.from(source(), { objectMode: false }));
    });
    await app.listen({ port: 0, host: "127.0.0.1" });
    return (app.server.address() as AddressInfo).port;
  }

  it("is ended when it takes nothing while bytes wait for it", async () => {
    const ended = Promise.withResolvers<void>();
    const port = await listen(async function* () {
      try {
        for (;;) yield Buffer.alloc(MB);
      } finally {
        ended.resolve();
      }
    });
    const socket = connect(port, "127.0.0.1", () => socket.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
    socket.on("error", () => undefined).pause();
    await ended.promise;
    socket.destroy();
  });

  it("is not ended while the source is slow", async () => {
    const port = await listen(async function* () {
      for (let part = 0; part < 5; part += 1) {
        await delay(100);
        yield Buffer.alloc(10, "x");
      }
    });
    let text = "";
    const socket = connect(port, "127.0.0.1", () =>
      socket.write("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"),
    );
    socket.on("data", (data) => (text += data));
    await once(socket, "close");
    expect(text.match(/x{10}/g)).to.have.length(5);
  });
});
