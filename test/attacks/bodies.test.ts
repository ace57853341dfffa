/** Tests request bodies that never end, or that arrive by the thousand: how much memory they reserve, and when other requests must wait. */
import { once } from "node:events";
import { type AddressInfo, connect, type Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { expect } from "chai";
import Fastify, { type FastifyInstance } from "fastify";
import { registerBodyParsing } from "../../src/api/bodies.js";
import { createFairTaskQueue } from "../../src/api/fair-task-queue.js";
import { createRequestBodyBudget, createRequestBodyBudgetsBySize } from "../../src/api/request-body-budget.js";
import type { ActionError } from "../../src/errors.js";
import { until } from "../harness/until.js";

const MB = 1_000_000;
/** Path and content type of a request whose route handler reads the body itself. */
const STREAMED_REQUEST: [string, string] = ["/streamed", "application/x-stream"];
const settled = () => new Promise(setImmediate);

describe("the memory for request bodies", () => {
  it("is limited in total and for one address, and released once", async () => {
    const budget = createRequestBodyBudget({ totalBytes: 100, maxBytesPerAddress: 60, maxWaitMs: 1 });
    const release = await budget.reserveBytes("a", 60, null);
    const refusals = await Promise.all(
      [budget.reserveBytes("a", 1, null), budget.reserveBytes("b", 50, null)].map((reservation) =>
        reservation.catch((error: ActionError) => error),
      ),
    );
    expect(
      refusals.map((refusal) => [(refusal as ActionError).status, (refusal as ActionError).details.retryAfter]),
    ).to.deep.equal([
      ["OVERLOADED", 5],
      ["OVERLOADED", 5],
    ]);
    await budget.reserveBytes("b", 40, null);
    release();
    release();
    expect(budget.reservedBytes()).to.equal(40);
  });

  it("is given to addresses in turn, however many bodies each one sends", async () => {
    const budget = createRequestBodyBudget({ totalBytes: 10, maxBytesPerAddress: 10, maxWaitMs: 60_000 });
    const first = await budget.reserveBytes("a", 10, null);
    const order: string[] = [];
    const releases: (() => void)[] = [first];
    for (const address of ["a", "a", "a", "b", "b", "c"]) {
      void budget.reserveBytes(address, 10, null).then((release) => {
        order.push(address);
        releases.push(release);
      });
    }
    for (let turn = 0; turn < 7; turn += 1) {
      releases[turn]!();
      await settled();
    }
    expect(order).to.deep.equal(["a", "b", "c", "a", "b", "a"]);
    expect(budget.reservedBytes()).to.equal(0);
  });

  it("is used at most by half by one app with any number of addresses, so that the next app gets some", async () => {
    const budget = createRequestBodyBudget({ totalBytes: 100, maxBytesPerAddress: 100, maxWaitMs: 1 });
    const fill = async (app: string): Promise<number> => {
      let reservedBytes = 0;
      for (;;) {
        const entered = await budget.reserveBytes(`${app} from ${reservedBytes}`, 1, app).catch(() => null);
        if (!entered) return reservedBytes;
        reservedBytes += 1;
      }
    };
    expect([await fill("1"), await fill("2"), await fill("3")]).to.deep.equal([50, 25, 13]);
  });

  it("lets at most 256 bodies of one address wait", async () => {
    const budget = createRequestBodyBudget({ totalBytes: 10, maxBytesPerAddress: 10, maxWaitMs: 60_000 });
    const release = await budget.reserveBytes("a", 10, null);
    const waiting = Array.from({ length: 300 }, () =>
      budget.reserveBytes("a", 10, null).then(
        (free) => free(),
        (error: ActionError) => error.status,
      ),
    );
    release();
    const refused = (await Promise.all(waiting)).filter((outcome) => outcome === "OVERLOADED");
    expect(refused).to.have.length(44);
  });
});

describe("uploads that stall", () => {
  const apps: FastifyInstance[] = [];
  const sockets: Socket[] = [];
  afterEach(async () => {
    for (const socket of sockets.splice(0)) socket.destroy();
    for (const app of apps.splice(0)) await app.close();
  });

  async function listen(waitMs: number, paceIntervalMs = 60_000): Promise<number> {
    const app = Fastify({ bodyLimit: 2 * MB });
    apps.push(app);
    app.decorateRequest("context");
    app.addHook("onRequest", async (request) => {
      const address = (request.headers["x-address"] as string | undefined) ?? "198.51.100.1";
      request.context = { caller: null, idempotencyKey: null, address };
    });
    app.setErrorHandler((error: ActionError, _request, reply) =>
      reply.code(error.status === "OVERLOADED" ? 503 : 400).send({ status: error.status }),
    );
    const bodyBudgets = createRequestBodyBudgetsBySize({
      totalBytes: 4 * MB,
      maxBytesPerAddress: 2 * MB,
      maxWaitMs: waitMs,
    });
    const appExists = async (id: number) => id === 1 || id === 2;
    registerBodyParsing(app, { bodyBudgets, taskQueue: createFairTaskQueue(), appExists, paceIntervalMs });
    app.post("/streamed", { config: { isStreamed: true } }, async ({ raw }) => {
      let bytes = 0;
      for await (const chunk of raw) {
        bytes += (chunk as Buffer).length;
        // The delay makes the service read a large body more slowly than the client sends it.
        if (bytes > MB) await delay(10);
      }
      return { bytes };
    });
    app.addContentTypeParser("application/x-stream", (_request, _payload, done) => done(null));
    app.post("/apps/:appId", async () => ({}));
    app.post("/", async ({ body }) => ({ got: JSON.stringify(body).length }));
    await app.listen({ port: 0, host: "127.0.0.1" });
    return (app.server.address() as AddressInfo).port;
  }

  /**
   * Announces a body of `bytes` bytes, but sends only `sent`. Returns the connection, and the whole response once the connection has ended.
   */
  function upload(
    port: number,
    bytes: number,
    sent: string,
    [path, type] = ["/", "application/json"],
  ): { socket: Socket; answer: Promise<string> } {
    const socket = connect(port, "127.0.0.1");
    sockets.push(socket);
    let received = "";
    socket.on("data", (data) => (received += data)).on("error", () => undefined);
    socket.write(
      `POST ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: ${type}\r\nContent-Length: ${bytes}\r\n\r\n`,
    );
    socket.write(sent);
    return { socket, answer: once(socket, "close").then(() => received) };
  }

  it("use only the share of one address; further ones are rejected, and small bodies are served", async () => {
    const port = await listen(20);
    const stalled = [1, 2].map(() => upload(port, MB, '{"a":'));
    for (const { socket } of stalled) await once(socket, "connect");
    const late = await Promise.all([1, 2, 3].map(() => upload(port, MB, '{"a":').answer));
    for (const answer of late) {
      expect(answer).to.match(/^HTTP\/1\.1 503 /);
      expect(answer).to.contain("OVERLOADED");
    }
    expect(await upload(port, 7, '{"a":1}').answer).to.match(/^HTTP\/1\.1 200 /);
  });

  it("release their memory to waiting requests when they end", async () => {
    const port = await listen(60_000);
    const stalled = [1, 2].map(() => upload(port, MB, '{"a":'));
    const text = JSON.stringify("x".repeat(MB - 2));
    for (const { socket } of stalled) await once(socket, "connect");
    const waiting = upload(port, MB, text);
    for (const { socket } of stalled) socket.destroy();
    expect(await waiting.answer).to.contain(`"got":${MB}`);
  });

  it("are ended if they are too slow and the route itself reads them", async () => {
    const port = await listen(60_000, 50);
    const trickling = upload(port, MB, "some", STREAMED_REQUEST);
    const sending = setInterval(() => trickling.socket.write("more"), 10);
    // If the service closes the connection while bytes arrive, the operating system may reset it, and the client loses the response.
    const answer = await trickling.answer.catch((error: NodeJS.ErrnoException) => error.code);
    clearInterval(sending);
    expect(answer).to.match(/^HTTP\/1\.1 408 |^ECONNRESET$|^EPIPE$/);
  });

  it("are not ended when the service reads slowly", async () => {
    // The service ends a request that makes no progress for 1 s. A shorter limit could end this one on a busy machine, because the
    // client is in the same process.
    const port = await listen(60_000, 1_000);
    const whole = upload(port, 20 * MB, "x".repeat(20 * MB), STREAMED_REQUEST);
    expect(await whole.answer).to.contain(`"bytes":${20 * MB}`);
  });

  it("to unknown apps or to no app use at most half of the memory together, and leave the other half to existing apps", async () => {
    const port = await listen(20);
    const announce = (path: string, address: string) => {
      const socket = connect(port, "127.0.0.1");
      sockets.push(socket);
      const text = `POST ${path} HTTP/1.1\r\nHost: x\r\nX-Address: ${address}\r\nContent-Type: application/json\r\n`;
      socket.on("error", () => undefined).write(`${text}Content-Length: ${MB}\r\n\r\n{"a":`);
      return once(socket, "data").then(([data]) => String(data));
    };
    const paths = ["/", "/apps/7", "/apps/8", "/apps/made-up", "/apps/01", "/apps/9", "/"];
    const answers: string[] = [];
    for (const [at, path] of paths.entries())
      void announce(path, `198.51.100.${at + 10}`).then((answer) => answers.push(answer));
    // Requests for unknown apps may together reserve half of the 4 MB for bodies. So the service accepts two of these bodies of 1 MB each.
    await until(() => answers.length === paths.length - 2);
    const existing = announce("/apps/1", "198.51.100.9");
    expect(await Promise.race([existing, delay(500, "held")])).to.equal("held");
    expect(answers).to.have.length(paths.length - 2);
    for (const answer of answers) expect(answer).to.match(/^HTTP\/1\.1 503/);
  });

  it("are ended when no more bytes arrive", async () => {
    const port = await listen(60_000, 50);
    expect(await upload(port, MB, '{"a":').answer).to.match(/^HTTP\/1\.1 408 /);
  });
});
