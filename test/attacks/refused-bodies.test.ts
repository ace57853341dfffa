/**
 * Tests requests that the service rejects while their bodies still arrive. The client receives the response, and the connection ends
 * without an error.
 */
import { connect } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { expect } from "chai";
import { longTest, sampleOf } from "../harness/samples.js";
import { startTestService, type TestService } from "../harness/service.js";

const MB = 1024 * 1024;

/** Sends a whole body, whatever the response is, and then a second request. Returns all data of the server, or the connection's error. */
function send(url: string, head: string, body: Buffer): Promise<string> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve) => {
    let text = "";
    const socket = connect(Number(port), hostname);
    socket.on("error", (error: NodeJS.ErrnoException) => resolve(`${error.code}`));
    socket.on("close", () => resolve(text));
    socket.on("data", (data) => {
      text += data;
      if (text.includes('{"status":"LIVE"}')) socket.end();
    });
    socket.write(`${head}\r\n\r\n`);
    const write = async () => {
      for (let at = 0; at < body.length; at += 64 * 1024) {
        if (!socket.write(body.subarray(at, at + 64 * 1024))) await delay(1);
      }
      socket.write("GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n");
    };
    void write();
  });
}

/** Sends a body and reads nothing before the whole body has been sent. Returns all data of the server, or the connection's error. */
function sendSlowly(url: string, head: string, body: Buffer): Promise<string> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve) => {
    let text = "";
    const socket = connect(Number(port), hostname);
    socket.on("error", (error: NodeJS.ErrnoException) => resolve(`${error.code}`));
    socket.on("close", () => resolve(text));
    socket.write(`${head}\r\n\r\n`);
    socket.write(body, () => socket.on("data", (data) => (text += data)));
  });
}

const chunked = (body: Buffer) =>
  Buffer.concat([Buffer.from(`${body.length.toString(16)}\r\n`), body, Buffer.from("\r\n0\r\n\r\n")]);

describe("a request that is rejected before its body has arrived", () => {
  let service: TestService;
  let base: string;
  before(async () => {
    service = await startTestService({ ROLES: "api" });
    base = `/v1/apps/${service.appId}/data-sources`;
    await service.rest("POST", base, { body: { name: "List" } });
  });
  after(() => service.stop());

  const JSON_TYPE = "Content-Type: application/json";
  for (const [title, path, status, headers] of [
    ["one over 1 MB", () => "/v3/apps/1/actions", "413", JSON_TYPE],
    ["one without a credential", () => "/v3/apps/1/actions", "401", JSON_TYPE],
    ["one to no route", () => "/nowhere", "413", JSON_TYPE],
    ["one of another type", () => "/v3/apps/1/actions", "400", "Content-Type: text/plain"],
    [
      "a GraphQL document without a credential",
      () => "/graphql",
      "401",
      `${JSON_TYPE}\r\nAccept: application/graphql-response+json`,
    ],
    ["an import into an unknown data source", () => `${base}/none/import?by=name`, "404", "Content-Type: text/csv"],
    ["an import that fails at its second row", () => `${base}/List/import?by=name`, "400", "Content-Type: text/csv"],
    ["an invalid form", () => "/v1/apps/1/media/files", "413", JSON_TYPE],
  ] as const) {
    for (const sending of ["with its length", "in chunks"]) {
      it(`gets ${status} and leaves the connection to the next request: ${title}, ${sending}`, async () => {
        const size = status === "400" && path() === "/v3/apps/1/actions" ? MB - 10 : 3 * MB;
        const body = Buffer.from(`a,b\n1,2,3\n${"x".repeat(size)}`);
        const token = status === "401" ? "" : `\r\nAuth-Token: ${service.tokens.editor}`;
        const length = sending === "in chunks" ? "Transfer-Encoding: chunked" : `Content-Length: ${body.length}`;
        const head = `POST ${path()} HTTP/1.1\r\nHost: x\r\n${headers}\r\n${length}${token}`;
        const answer = await send(service.url, head, sending === "in chunks" ? chunked(body) : body);
        expect(answer).to.match(new RegExp(`^HTTP/1\\.1 ${status} `));
        expect(answer).to.match(/HTTP\/1\.1 200 OK\r\n[\s\S]*\{"status":"LIVE"\}/);
      });
    }
  }
});

describe("a request that is rejected before its body has arrived, on a connection that closes after it", () => {
  let service: TestService;
  before(async () => {
    service = await startTestService({ ROLES: "api" });
  });
  after(() => service.stop());

  for (const [title, ending] of [
    ["that the client closes", "HTTP/1.1\r\nConnection: close"],
    ["of HTTP/1.0", "HTTP/1.0"],
  ]) {
    it(`gets the response after the whole body, and then the end of the connection: one ${title}`, async () => {
      const body = Buffer.alloc(16 * MB, "x");
      const head = `POST /v3/apps/1/actions ${ending}\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${body.length}`;
      expect(await sendSlowly(service.url, `${head}\r\nAuth-Token: ${service.tokens.editor}`, body)).to.match(
        /^HTTP\/1\.1 413 [\s\S]*the request is larger than 1 MB"}$/,
      );
    });
  }
});

describe("commits and imports", () => {
  let service: TestService;
  let base: string;
  before(async () => {
    service = await startTestService({ ROLES: "api", INTAKE_QUOTA_MB: "0" });
    base = `/v1/apps/${service.appId}/data-sources`;
    const rules = [{ type: ["insert"], allow: "all", enabled: true }];
    await service.rest("POST", base, { body: { name: "List", accessRules: rules } });
  });
  after(() => service.stop());

  const count = async () => {
    const { body } = await service.rest("POST", `${base}/List/query?by=name`, {
      body: { limit: 1, includePagination: true },
    });
    return body.pagination.total;
  };
  const entries = (many: number, size: number) =>
    Array.from({ length: many }, (_, n) => ({ data: { n, text: `"[{,é\\${n}`.padEnd(size, "x") } }));

  longTest("name their own limit: 64 MB, and for visitors 1 MB", async () => {
    const large = JSON.stringify({ entries: entries(3_000, 400) });
    const visitorAnswer = await service.rest("POST", `${base}/List/commit?by=name`, { as: "live", body: large });
    expect([visitorAnswer.http, visitorAnswer.body.error]).to.deep.equal([413, "the request is larger than 1 MB"]);
    const headers = { "content-length": String(65 * MB) };
    const tooLarge = await service.rest("POST", `${base}/List/commit?by=name`, { body: " ".repeat(65 * MB), headers });
    expect([tooLarge.http, tooLarge.body.error]).to.deep.equal([413, "the request is larger than 64 MB"]);
    const json = `[${" ".repeat(65 * MB)}]`;
    const imported = await service.rest("POST", `${base}/List/import?by=name&append=true`, { body: json });
    expect(imported.http).to.be.oneOf([400, 413]);
  });

  // `npm test` sends only "text/plain". This is faster, because the service rejects this type and inserts no entries.
  for (const type of sampleOf(["application/json", "text/plain"], 1, 2)) {
    it(`count the bytes of a chunked body towards the same limits, with the type ${type}`, async () => {
      const head = (token: string) =>
        [
          `POST ${base}/List/commit?by=name HTTP/1.1`,
          `Host: x\r\nContent-Type: ${type}\r\nTransfer-Encoding: chunked${token && `\r\nAuth-Token: ${token}`}`,
        ].join("\r\n");
      const before = await count();
      const body = chunked(Buffer.from(JSON.stringify({ entries: entries(3_000, 400) })));
      for (const token of ["", service.tokens.live]) {
        const answer = await send(service.url, head(token), body);
        expect(answer).to.match(/^HTTP\/1\.1 413 [\s\S]*the request is larger than 1 MB/);
        expect(answer).to.match(/HTTP\/1\.1 200 OK\r\n[\s\S]*\{"status":"LIVE"\}/);
      }
      const small = chunked(Buffer.from(JSON.stringify({ entries: entries(1_000, 400), append: true })));
      const visitor = await send(service.url, head(service.tokens.live), small);
      const editor = await send(service.url, head(service.tokens.editor), body);
      const passes = type === "application/json" ? /^HTTP\/1\.1 200 [\s\S]*"inserted":/ : /^HTTP\/1\.1 400 /;
      expect(visitor).to.match(passes);
      expect(editor).to.match(passes);
      if (type !== "application/json") expect(await count()).to.equal(before);
    });
  }
});
