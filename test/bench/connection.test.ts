/** Tests the HTTP connection of the benchmarks, because its faults would only show as wrong figures. */
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { createServer, type Server, type Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { expect } from "chai";
import { encodePostRequest, openConnection, type PersistentConnection } from "../../bench/harness/connection.js";
import { until } from "../harness/until.js";

describe("the connection of the benchmarks", () => {
  let server: Server;
  let url: URL;
  let other: Socket;
  let received = "";
  let connection: PersistentConnection;

  beforeEach(async () => {
    received = "";
    server = createServer((socket) => {
      other = socket.on("data", (part) => {
        received += part;
      });
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/a/b?c=1`);
    connection = await openConnection(url);
  });

  afterEach(() => {
    connection.end();
    server.close();
  });

  const ask = () => {
    received = "";
    return connection.send(encodePostRequest(url, { "content-type": "application/json" }, '{"ä":1}'));
  };
  const requestArrived = () => until(() => received.endsWith('{"ä":1}'));
  const answered = async (...parts: string[]) => {
    await requestArrived();
    for (const part of parts) {
      await delay(5);
      other.write(part);
    }
  };

  it("sends a valid HTTP request", async () => {
    const answer = ask();
    await answered("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    await answer;
    const head = `POST /a/b?c=1 HTTP/1.1\r\nhost: ${url.host}\r\ncontent-type: application/json\r\ncontent-length: 8`;
    expect(received).to.equal(`${head}\r\n\r\n{"ä":1}`);
  });

  it("reads responses that arrive in parts, one after the other", async () => {
    for (const body of ["first", "the second"]) {
      const answer = ask();
      const head = `HTTP/1.1 200 OK\r\nx: y\r\ncontent-length: ${body.length}\r\n\r\n`;
      await answered(head.slice(0, 20), head.slice(20) + body.slice(0, 2), body.slice(2));
      expect((await answer).endsWith(`\r\n\r\n${body}`)).to.equal(true);
    }
  });

  for (const [title, end] of [
    ["the response has no Content-Length", () => other.write("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")],
    ["the connection was closed", () => other.destroy()],
  ] as const) {
    it(`fails if ${title}`, async () => {
      const answer = ask().then(
        () => "an answer",
        (error: Error) => error.message,
      );
      // Waits until the server has read the request. To destroy a socket with unread bytes would cause another error: a reset.
      await requestArrived();
      end();
      expect(await answer).to.match(new RegExp(`^${title}`));
    });
  }
});
