import { once } from "node:events";
import { expect } from "chai";
import { pino } from "pino";
import WebSocket from "ws";
import { createDatabaseNotifications } from "../../src/engine/notifications.js";
import { CREDENTIAL_CHANNEL, Credentials } from "../../src/operations/access/credentials.js";
import { countLockWaits } from "../harness/lock-waits.js";
import { startTestService, type TestService } from "../harness/service.js";
import { until } from "../harness/until.js";

const FOLLOW = "subscription { actionLogAdded(appId: 1) { id } }";
/** Maximum wait for a message, in milliseconds. A busy machine needs far less. */
const MESSAGE_LIMIT_MS = 60_000;

interface Message {
  type: string;
  id?: string;
  // biome-ignore lint/suspicious/noExplicitAny: the type of a frame determines the type of its payload
  payload?: any;
}

describe("the websocket", () => {
  let service: TestService;
  before(async () => {
    service = await startTestService({ ROLES: "api" });
  });
  after(() => service.stop());

  /** Opens a websocket without a GraphQL client, because such a client would hide the messages of the protocol. */
  function open(headers: Record<string, string> = {}, protocol = "graphql-transport-ws") {
    const socket = new WebSocket(`${service.url.replace("http", "ws")}/graphql`, protocol, { headers });
    const messages: Message[] = [];
    socket.on("message", (text) => messages.push(JSON.parse(String(text))));
    const closed = once(socket, "close").then(([code, reason]) => ({ code: Number(code), reason: String(reason) }));
    const next = async (): Promise<Message> => {
      const signal = AbortSignal.timeout(MESSAGE_LIMIT_MS);
      while (messages.length === 0) {
        await once(socket, "message", { signal }).catch((cause: Error) => {
          throw new Error(`the socket received no message within ${MESSAGE_LIMIT_MS} ms`, { cause });
        });
      }
      return messages.shift()!;
    };
    const send = (message: object) => socket.send(JSON.stringify(message));
    const init = async (payload?: object) => {
      if (socket.readyState !== socket.OPEN) await once(socket, "open");
      send({ type: "connection_init", payload });
    };
    return { socket, closed, next, send, init };
  }

  /** Returns a second `Credentials` object. The service has not cached the task tokens that this object issues. */
  function credentialsOfOtherProcess(): Credentials {
    const log = pino({ level: "silent" });
    const notifications = createDatabaseNotifications({
      url: service.databaseUrl,
      channels: [CREDENTIAL_CHANNEL],
      log,
    });
    return new Credentials({ db: service.db, notifications });
  }

  const cookie = () => `auth_token=${service.tokens.editor}`;

  it("rejects a client without a credential, or with an unknown one", async () => {
    for (const payload of [undefined, {}, { authToken: "nonsense" }, { authToken: `svc_live_${"A".repeat(43)}` }]) {
      const { init, closed } = open();
      await init(payload);
      expect(await closed).to.deep.equal({ code: 4403, reason: "Forbidden" });
    }
  });

  it("accepts a token in the connection's parameters or in a header, and the cookie of our own page", async () => {
    const { editor } = service.tokens;
    const credentials: [Record<string, string>, object | undefined][] = [
      [{}, { authToken: editor }],
      [{ "auth-token": editor }, undefined],
      [{ cookie: cookie(), origin: service.url }, undefined],
    ];
    for (const [headers, payload] of credentials) {
      const { init, next, socket, closed } = open(headers);
      await init(payload);
      expect(await next()).to.deep.equal({ type: "connection_ack" });
      socket.close();
      await closed;
    }
  });

  it("ends as soon as its credential is revoked", async () => {
    const made = await service.rest("POST", "/v1/apps/1/tokens", { body: { kind: "api", name: "short-lived" } });
    const { init, next, send, closed } = open();
    await init({ authToken: made.body.token });
    await next();
    send({ id: "1", type: "subscribe", payload: { query: FOLLOW } });
    await service.rest("DELETE", `/v1/apps/1/tokens/${made.body.id}`);
    expect((await closed).code).to.equal(4403);
  });

  it("closes when the run of its task token ends, in any process", async () => {
    const elsewhere = credentialsOfOtherProcess();
    const other = open();
    await other.init({ authToken: service.tokens.editor });
    await other.next();
    for (let run = 0; run < 3; run += 1) {
      const { id, token } = await elsewhere.issue({ kind: "task", appId: 1 });
      const { init, next, closed } = open();
      await init({ authToken: token });
      expect(await next()).to.deep.equal({ type: "connection_ack" });
      await elsewhere.expire(id);
      expect((await closed).code).to.equal(4403);
    }
    other.send({ id: "1", type: "subscribe", payload: { query: "{ __typename }" } });
    expect((await other.next()).id).to.equal("1");
    other.socket.close();
  });

  it("executes no operation after its token has expired, also while the socket is still open", async () => {
    const elsewhere = credentialsOfOtherProcess();
    const { id, token } = await elsewhere.issue({ kind: "task", appId: 1 });
    const { socket, init, next, send, closed } = open();
    await init({ authToken: token });
    await next();
    const received: Message[] = [];
    socket.on("message", (text) => received.push(JSON.parse(String(text))));
    // This statement sends no notification. So the service detects the expired token only at an operation's start or a regular check.
    await service.db.query("UPDATE credential SET expires_at = now() WHERE id = $1", [id]);
    send({ id: "1", type: "subscribe", payload: { query: "{ __typename }" } });
    expect((await closed).code).to.equal(4403);
    expect(received.filter(({ type }) => type !== "error")).to.deep.equal([]);
  });

  it("ends the subscriptions to an app when its editor loses the role, and no others", async () => {
    const body = { firstName: "Lost", lastName: "Right", email: "lost@right.example" };
    const { user, token } = (await service.rest("POST", "/v1/admin/users", { as: "admin", body })).body;
    const change = { body: { userId: user.id } };
    await service.rest("POST", "/v1/apps/1/editors", change);
    // The role on another app keeps the session valid when the person loses the role on app 1.
    const { body: other } = await service.rest("POST", "/v1/admin/apps", { as: "admin", body: { name: "other" } });
    await service.rest("POST", `/v1/apps/${other.app.id}/editors`, { as: "admin", ...change });
    const { init, next, send, socket } = open();
    await init({ authToken: token });
    await next();
    send({ id: "1", type: "subscribe", payload: { query: FOLLOW } });
    send({ id: "2", type: "subscribe", payload: { query: "{ __typename }" } });
    expect(await next()).to.deep.include({ id: "2", type: "next" });
    expect(await next()).to.deep.include({ id: "2", type: "complete" });
    await service.rest("DELETE", "/v1/apps/1/editors", change);
    const { id, type, payload } = await next();
    expect([id, type, payload[0].extensions.status]).to.deep.equal(["1", "error", "FORBIDDEN"]);
    send({ id: "3", type: "subscribe", payload: { query: "{ __typename }" } });
    expect((await next()).id).to.equal("3");
    socket.close();
    const again = open();
    await again.init({ authToken: token });
    await again.next();
    again.send({ id: "1", type: "subscribe", payload: { query: FOLLOW } });
    expect((await again.next()).payload[0].extensions.status).to.equal("FORBIDDEN");
    again.socket.close();
  });

  it("closes with everything else of a visitor's session as soon as the app is unpublished", async () => {
    await service.rest("POST", "/v1/apps/1/publish");
    const page = await service.rest("GET", "/apps/1", { as: null });
    const [token] = /svc_live_[\w-]{49}/.exec(page.body)!;
    const { init, next, closed } = open();
    await init({ authToken: token });
    expect(await next()).to.deep.equal({ type: "connection_ack" });
    await service.rest("POST", "/v1/apps/1/unpublish");
    expect((await service.rest("GET", "/v1/apps", { as: token })).http).to.equal(401);
    expect((await closed).code).to.equal(4403);
  });

  it("gets many concurrent entries, complete and in order", async () => {
    const { socket, init, next, send } = open();
    await init({ authToken: service.tokens.editor });
    await next();
    send({ id: "1", type: "subscribe", payload: { query: "subscription { actionLogAdded(appId: 1) { data } }" } });
    send({ id: "2", type: "subscribe", payload: { query: "{ __typename }" } });
    await next();
    await next();
    await service.db.query(`
      WITH entry AS (
        INSERT INTO execution_log (app_id, task_id, run_id, type, data)
        SELECT 1, 1, 9000000 + n, 'app.task.completed', json_build_object('n', n, 'fill', repeat('é', n * 100))
          FROM generate_series(1, 200) n RETURNING app_id, id, run_id)
      SELECT pg_notify('svc_log', app_id || ':' || id || ':' || run_id) FROM entry ORDER BY id`);
    for (let n = 1; n <= 200; n += 1) {
      const { data } = (await next()).payload.data.actionLogAdded;
      expect(data).to.deep.equal({ n, fill: "é".repeat(n * 100) });
    }
    socket.close();
  });

  it("returns the error of an operation with the status that REST has", async () => {
    const { init, next, send, socket, closed } = open();
    await init({ authToken: service.tokens.live });
    await next();
    send({ id: "1", type: "subscribe", payload: { query: FOLLOW } });
    const { type, payload } = await next();
    expect(type).to.equal("error");
    expect(payload[0].extensions).to.deep.equal({ status: "FORBIDDEN" });
    socket.close();
    await closed;
  });

  it("rejects actionLogAdded for a type that no entry has", async () => {
    const { init, next, send, socket, closed } = open();
    await init({ authToken: service.tokens.editor });
    await next();
    const query = `subscription { actionLogAdded(appId: ${service.appId}, type: "app.task.done") { id } }`;
    send({ id: "1", type: "subscribe", payload: { query } });
    const { type, payload } = await next();
    expect(type).to.equal("error");
    expect(payload[0].extensions).to.deep.equal({ status: "REQUEST_INVALID" });
    socket.close();
    await closed;
  });

  it("returns an error of a document without the values in it", async () => {
    const { init, next, send, socket, closed } = open();
    await init({ authToken: service.tokens.editor });
    await next();
    const query = 'subscription { actionLogAdded(appId: "s3cret-value-99") { id } }';
    send({ id: "1", type: "subscribe", payload: { query } });
    const { type, payload } = await next();
    expect(type).to.equal("error");
    expect(payload[0].extensions).to.deep.equal({ status: "REQUEST_INVALID" });
    expect(JSON.stringify(payload)).to.not.contain("s3cret-value-99");
    socket.close();
    await closed;
  });

  it("carries a hundred subscriptions, and rejects the next one with an explanation", async () => {
    const { init, next, send, socket, closed } = open();
    await init({ authToken: service.tokens.editor });
    await next();
    for (let id = 1; id <= 101; id += 1) send({ id: String(id), type: "subscribe", payload: { query: FOLLOW } });
    const { type, id, payload } = await next();
    expect({ type, id }).to.deep.equal({ type: "error", id: "101" });
    expect(payload[0].extensions.status).to.equal("REQUEST_INVALID");
    expect(payload[0].message).to.contain("at most 100 GraphQL operations in progress");
    socket.close();
    await closed;
  });

  it("counts an operation that the client has completed until its work has ended", async () => {
    const { init, next, send, socket, closed } = open();
    await init({ authToken: service.tokens.editor });
    await next();
    await service.db.transaction(async (manager) => {
      // Each subscription reads this table when it starts, so this lock blocks all of them.
      await manager.query("LOCK TABLE data_source IN ACCESS EXCLUSIVE MODE");
      const query = "subscription { dataSourceChanged(appId: 1, dataSourceId: 1) { __typename } }";
      for (let id = 1; id <= 100; id += 1) send({ id: String(id), type: "subscribe", payload: { query } });
      // Waits until the queries of all subscriptions wait for the lock. This is so when the number of waits no longer changes.
      let waitCounts: number[] = [];
      await until(async () => {
        waitCounts = [...waitCounts, await countLockWaits(manager)].slice(-10);
        return waitCounts.length === 10 && waitCounts[0]! > 0 && new Set(waitCounts).size === 1;
      });
      // The server handles messages in order. So all subscriptions have started when the pong arrives.
      send({ type: "ping" });
      expect((await next()).type).to.equal("pong");
      for (let id = 1; id <= 100; id += 1) send({ id: String(id), type: "complete" });
      send({ id: "more", type: "subscribe", payload: { query: "{ __typename }" } });
      const { type, id, payload } = await next();
      expect({ type, id }).to.deep.equal({ type: "error", id: "more" });
      expect(payload[0].message).to.contain("at most 100 GraphQL operations in progress");
    });
    const answerTo = async (id: string) => {
      send({ id, type: "subscribe", payload: { query: "{ __typename }" } });
      return (await next()).type;
    };
    for (let again = 0; (await answerTo(`again ${again}`)) !== "next"; again += 1) await service.db.query("SELECT 1");
    socket.close();
    await closed;
  });

  it("closes if the client sends much data before its connection_init, while the data still arrives", async () => {
    const { socket, closed } = open();
    await once(socket, "open");
    socket.send("x".repeat(20_000), { fin: false });
    expect((await closed).code).to.equal(1006);
  });

  it("handles large messages one after the other, in their order", async () => {
    const { socket, closed, init, next, send } = open();
    await init({ authToken: service.tokens.editor });
    await next();
    const query = (size: number) => `{ __typename } # ${"x".repeat(size)}`;
    for (const [id, size] of [100_000, 10, 60_000, 10].entries()) {
      send({ id: String(id), type: "subscribe", payload: { query: query(size) } });
    }
    const results: string[] = [];
    while (results.length < 4) {
      const { type, id } = await next();
      if (type === "next") results.push(id!);
    }
    expect(results).to.deep.equal(["0", "1", "2", "3"]);
    socket.close();
    await closed;
  });

  it("closes if the client sends more than 1 MB, or another protocol; other sockets continue", async () => {
    const largeSocket = open();
    await largeSocket.init({ authToken: service.tokens.editor });
    await largeSocket.next();
    largeSocket.send({ id: "1", type: "subscribe", payload: { query: `{ x } # ${"x".repeat(1024 * 1024)}` } });
    expect((await largeSocket.closed).code).to.equal(1009);
    const garbledSocket = open();
    await once(garbledSocket.socket, "open");
    garbledSocket.socket.send("hello");
    expect(await garbledSocket.closed).to.deep.equal({ code: 4400, reason: "Invalid message received" });
    const other = open();
    await other.init({ authToken: service.tokens.editor });
    expect(await other.next()).to.deep.equal({ type: "connection_ack" });
    other.socket.close();
    await other.closed;
  });

  it("stays open if too many documents of its sender wait for their check: only the operations above the limit get an error", async () => {
    const sockets = Array.from({ length: 4 }, () => open());
    for (const { init, next } of sockets) {
      await init({ authToken: service.tokens.editor });
      await next();
    }
    for (const [at, { send }] of sockets.entries()) {
      for (let id = 1; id <= 100; id += 1) {
        const query = `subscription { actionLogAdded(appId: 1) { a${at}b${id}: id } }`;
        send({ id: String(id), type: "subscribe", payload: { query } });
      }
    }
    // The service may read the sockets in any order, so each of them can be the one above the limit.
    const { type, payload } = await Promise.race(sockets.map(({ next }) => next()));
    expect(type).to.equal("error");
    expect(payload[0].extensions).to.include({ status: "RATE_LIMIT_EXCEEDED", retryAfter: 2 });
    expect(payload[0].message).to.contain("at most 256");
    for (const { socket, closed } of sockets) {
      expect(socket.readyState).to.equal(WebSocket.OPEN);
      socket.close();
      await closed;
    }
  });
});
