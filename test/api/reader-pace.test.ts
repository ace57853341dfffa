import { once } from "node:events";
import { type AddressInfo, connect } from "node:net";
import { Readable } from "node:stream";
import { setTimeout as delay, setImmediate as turn } from "node:timers/promises";
import { expect } from "chai";
import Fastify, { type FastifyInstance } from "fastify";
import { JsonLineStream } from "../../src/api/lines.js";
import { disconnectSlowClient } from "../../src/api/reader-pace.js";
import { setBackgroundFailureReporter } from "../../src/background.js";
import { until } from "../harness/until.js";

const MB = 1024 * 1024;

describe("the reader of a streamed response", () => {
  let app: FastifyInstance;
  afterEach(() => app.close());

  async function listen(source: () => AsyncGenerator<Buffer>): Promise<number> {
    app = Fastify();
    app.get("/", (_request, reply) => {
      disconnectSlowClient(reply, { ms: 50, bytes: 10 * MB });
      return reply.send(Readable.from(source(), { objectMode: false }));
    });
    await app.listen({ port: 0, host: "127.0.0.1" });
    return (app.server.address() as AddressInfo).port;
  }

  it("is disconnected if it reads nothing while bytes wait", async () => {
    let hasEnded = false;
    const port = await listen(async function* () {
      try {
        for (;;) yield Buffer.alloc(MB);
      } finally {
        hasEnded = true;
      }
    });
    const socket = connect(port, "127.0.0.1", () => socket.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
    socket.on("error", () => undefined).pause();
    await until(() => hasEnded).finally(() => socket.destroy());
  });

  it("is not disconnected while the source is slow", async () => {
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

describe("a response in lines", () => {
  const failures: unknown[] = [];
  before(() => {
    setBackgroundFailureReporter((error) => failures.push(error));
  });
  after(() => {
    setBackgroundFailureReporter((error) => {
      throw error;
    });
  });

  it("reports an error after its first line, but no disconnect of its reader", async () => {
    const broken = new Error("broken");
    const stream = new JsonLineStream(async (send) => {
      await send({ text: "a" });
      throw broken;
    }).createStream();
    const [ended] = await once(stream.resume(), "error");
    await turn();
    expect(ended).to.equal(broken);
    expect(failures).to.deep.equal([broken]);

    const hasEnded = Promise.withResolvers<void>();
    const left = new JsonLineStream(async (send) => {
      try {
        for (;;) await send({ text: "x".repeat(100_000) });
      } finally {
        hasEnded.resolve();
      }
    }).createStream();
    await once(left, "readable");
    left.destroy();
    await hasEnded.promise;
    await turn();
    expect(failures).to.deep.equal([broken]);
  });

  it("waits for its reader without adding a listener for each wait", async () => {
    const counts: number[] = [];
    const stream: Readable = new JsonLineStream(async (send) => {
      for (let line = 0; line < 30; line += 1) {
        await send({ text: "x".repeat(100_000) });
        counts.push(stream.listenerCount("close"), stream.listenerCount("error"));
      }
    }).createStream();
    let bytes = 0;
    for await (const part of stream) bytes += part.length;
    expect(bytes).to.be.above(30 * 100_000);
    expect(counts.slice(-2)).to.deep.equal(counts.slice(2, 4));
  });
});
