import { once } from "node:events";
import { connect } from "node:net";
import { expect } from "chai";
import { ResponseMemoryLimiter } from "../../src/api/response-memory.js";
import { streamResponseParts } from "../../src/api/sliced.js";
import { ActionError } from "../../src/errors.js";
import { JsonText } from "../../src/rules/json-text.js";
import { longTest } from "../harness/samples.js";
import { startTestService, type TestService } from "../harness/service.js";
import { until } from "../harness/until.js";

const ENTRIES = 6;
const MB = 1024 * 1024;

/** JSON text of an array of a million empty objects, about 3 MB long. */
const LARGE_RESULT_JSON = `[${"{},".repeat(1_000_000)}{}]`;

describe("responses that would be too large", () => {
  let service: TestService;
  before(async () => {
    service = await startTestService({ ROLES: "api" });
    const text = `{"taskId":1,"odd":1.50,"result":{"data":${LARGE_RESULT_JSON},"success":true}}`;
    await service.db.query(
      `INSERT INTO execution_log (app_id, task_id, run_id, type, data)
       SELECT 1, 1, n, 'app.task.completed', $1 FROM generate_series(1, ${ENTRIES}) n`,
      [text],
    );
  });
  after(() => service.stop());

  /** Returns the response as text, because it is too long to parse it for each request. */
  async function fetchPage(offset: number, limit: number): Promise<string> {
    const response = await fetch(`${service.url}/v3/apps/1/actions/logs`, {
      method: "POST",
      headers: { "auth-token": service.tokens.api, "content-type": "application/json" },
      body: JSON.stringify({ limit, offset }),
    });
    expect(response.headers.get("content-type")).to.equal("application/json; charset=utf-8");
    return response.text();
  }

  it("have pages of 8 MB, and the next page begins where the last one ended", async () => {
    const ids: string[] = [];
    while (ids.length < ENTRIES) {
      const text = await fetchPage(ids.length, 1_000);
      const found = text.matchAll(/"id":(\d+),"type":"app.task.completed"/g);
      const before = ids.length;
      for (const [, id] of found) ids.push(id!);
      expect(ids.length - before).to.be.within(1, 2);
      expect(text.length).to.be.below(9 * MB);
      expect(text).to.contain(`"status":"LOGS_LISTED","count":${ENTRIES}`);
    }
    expect(ids).to.deep.equal(Array.from({ length: ENTRIES }, (_, at) => String(ENTRIES - at)));
  });

  it("contain the data of each entry unchanged, to the last character", async () => {
    const text = await fetchPage(0, 1);
    expect(text).to.contain(`"data":{"taskId":1,"odd":1.50,"result":{"data":${LARGE_RESULT_JSON},"success":true}}`);
  });

  longTest(
    "are at most 16 MB for a document with any number of fields: the rest is rejected before it is read",
    async () => {
      const fields = Array.from({ length: 60 }, (_, at) => `a${at}: actionLogs(appId: 1) { logs { id data } }`);
      const response = await fetch(`${service.url}/graphql`, {
        method: "POST",
        headers: { "auth-token": service.tokens.api, "content-type": "application/json" },
        body: JSON.stringify({ query: `{ ${fields.join(" ")} }` }),
      });
      const text = await response.text();
      expect(text.length).to.be.below(16 * MB);
      expect(text)
        .to.contain("a response can have at most 16 MB")
        .and.to.contain('"extensions":{"status":"REQUEST_INVALID"}');
    },
  );

  longTest("are at most 16 MB as JSON, with all names under which a value is requested", async () => {
    const names = Array.from({ length: 7 }, (_, at) => `a${at}: data`);
    const query = `{ actionLogs(appId: 1, options: {limit: 1}) { logs { ${names.join(" ")} } } }`;
    const { data, errors } = await service.graphql(query, {}, { as: "api" });
    expect(data).to.equal(null);
    expect(errors![0].message).to.contain("a response can have at most 16 MB");
  });

  longTest("are at most 16 MB also for one entry under any number of names", async () => {
    const names = Array.from({ length: 19 }, (_, at) => `a${at}: data`);
    const query = `{ actionLogs(appId: 1, options: {limit: 2}) { logs { ${names.join(" ")} } } }`;
    const { data, errors } = await service.graphql(query, {}, { as: "api" });
    expect(data).to.equal(null);
    expect(errors![0].extensions).to.deep.equal({ status: "REQUEST_INVALID" });
    const client = service.socket("api");
    const result = await new Promise((resolve) =>
      client.subscribe({ query }, { next: resolve, error: resolve, complete: () => undefined }),
    );
    await client.dispose();
    expect(result).to.deep.equal({ data, errors });
  });

  longTest("are released when the connection ends, also for responses that wait on it", async () => {
    const { port } = new URL(service.url);
    const body = JSON.stringify({ limit: 2 });
    const request =
      `POST /v3/apps/1/actions/logs HTTP/1.1\r\nHost: x\r\nAuth-Token: ${service.tokens.api}\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
    const disconnectClient = async () => {
      const socket = connect(Number(port), "127.0.0.1", () => socket.write(request.repeat(3)));
      const [data] = await once(socket, "data");
      socket.destroy();
      return String(data).slice(9, 12);
    };
    for (let time = 0; time < 3; time += 1) expect(await disconnectClient()).to.equal("200");
    const readHeldBytes = async () =>
      /^svc_answer_bytes (.*)$/m.exec((await service.rest("GET", "/metrics")).body)?.[1];
    await until(async () => (await readHeldBytes()) === "0");
  });

  longTest("have the same limits over the websocket as over HTTP", async () => {
    const query = "{ actionLogs(appId: 1, options: {limit: 1}) { count logs { id type data } } }";
    const httpResult = await service.graphql(query, {}, { as: "api" });
    const client = service.socket("api");
    const socketResult = await new Promise((resolve, reject) =>
      client.subscribe({ query }, { next: resolve, error: reject, complete: () => undefined }),
    );
    await client.dispose();
    // The test compares texts, because chai would compare the million objects one by one.
    const text = JSON.stringify(socketResult);
    expect(text.length).to.be.above(LARGE_RESULT_JSON.length);
    expect(text === JSON.stringify(httpResult)).to.equal(true);
  });
});

describe("lists of actions that would be too large", () => {
  let service: TestService;
  before(async () => {
    service = await startTestService({ ROLES: "api" });
    await service.db.query(
      `INSERT INTO action (app_id, name, code, active, environment, action_version, triggers, dependencies, assets)
       SELECT 1, 'large' || n, repeat('x', 1000000), false, 'server', 'v3', '[]', '[]', '[]' FROM generate_series(1, 18) n`,
    );
  });
  after(() => service.stop());

  longTest("have pages of 8 MB with hasMore, and contain each action once", async () => {
    const seen: number[] = [];
    for (let more = true; more; ) {
      const { body } = await service.rest("GET", `/v3/apps/1/actions?limit=1000&offset=${seen.length}`);
      expect(body.actions.length).to.be.within(1, 8);
      seen.push(...body.actions.map(({ id }: { id: number }) => id));
      more = body.pagination.hasMore;
      expect(body.pagination.total).to.equal(18);
    }
    expect(new Set(seen).size).to.equal(18);
    expect(seen).to.deep.equal(seen.toSorted((a, b) => b - a));
  });

  longTest("are rejected with an explanation if they have no pages", async () => {
    const { http, body } = await service.rest("GET", "/v3/apps/1/actions/export");
    expect([http, body.status]).to.deep.equal([400, "REQUEST_INVALID"]);
    expect(body.error).to.contain("16 MB");
  });
});

describe("a large response in progress", () => {
  const TEXT = "aé😀".repeat(200_000);

  it("arrives completely, in slices that split no character", async () => {
    const slices: Buffer[] = [];
    for await (const slice of streamResponseParts(["[", TEXT, "]"], () => undefined)) slices.push(slice);
    expect(slices.length).to.be.above(5);
    expect(Buffer.concat(slices).toString() === `[${TEXT}]`).to.equal(true);
  });

  it("is ended if it is read too slowly, even if reading never stops", async () => {
    const end = Promise.withResolvers<void>();
    const stream = streamResponseParts([TEXT], end.resolve, 20);
    await once(stream, "readable");
    expect(stream.read(1)).to.have.length(1);
    await end.promise;
    expect(stream.destroyed).to.equal(true);
  });
});

describe("the count of bytes in progress", () => {
  const caller = (appId: number) => ({ appId, personId: null }) as never;
  const statusOf = (work: Promise<void>): Promise<string | null> =>
    work.then(
      () => null,
      (error: ActionError) => error.status,
    );

  it("leaves half of the total to others, whatever one app requests, and releases what has been sent", async () => {
    const answers = new ResponseMemoryLimiter({ totalBytes: 100, maxBytesPerOwner: 50, maxBytesPerResponse: 40 });
    const [first, again, second, third] = [1, 1, 2, 3].map((appId) => answers.openBudget(caller(appId)));
    await first!.reserveBytes(40);
    expect(await statusOf(again!.reserveBytes(20))).to.equal("OVERLOADED");
    expect(await statusOf(second!.reserveBytes(40))).to.equal("OVERLOADED");
    expect(await statusOf(second!.reserveBytes(30))).to.equal(null);
    expect(await statusOf(third!.reserveBytes(15)), "a third app finds room").to.equal(null);
    first!.close();
    expect(await statusOf(again!.reserveBytes(20))).to.equal(null);
    for (const answer of [again, second, third]) answer!.close();
    expect(answers.countHeldBytes()).to.equal(0);
  });

  it("rejects the next part of a response, and undoes no completed part", async () => {
    const answers = new ResponseMemoryLimiter({ totalBytes: 1_000, maxBytesPerOwner: 1_000, maxBytesPerResponse: 40 });
    const answer = answers.openBudget(caller(1));
    const large = new JsonText(`"${"x".repeat(60)}"`);
    const parts = [answer.runPart(async () => large), answer.runPart(async () => "not begun")];
    const [done, refused] = await Promise.allSettled(parts);
    expect(done).to.deep.equal({ status: "fulfilled", value: large });
    expect((refused as PromiseRejectedResult).reason.status).to.equal("REQUEST_INVALID");
  });

  it("leaves out a result that would make the response too large, and keeps those before it", async () => {
    const answers = new ResponseMemoryLimiter({ totalBytes: 1_000, maxBytesPerOwner: 1_000, maxBytesPerResponse: 40 });
    const answer = answers.openBudget(caller(1));
    let done = 0;
    const part = (length: number) =>
      answer.runPart(async () => {
        done += 1;
        return new JsonText("x".repeat(length));
      });
    const settled = await Promise.allSettled([part(20), part(15), part(15)]);
    expect(done).to.equal(3);
    expect(
      settled.map((result) => (result.status === "fulfilled" ? result.value.text.length : result.reason.message)),
    ).to.deep.equal([
      ...[20, 15],
      "a response can have at most 0 MB; the service executed the request, but the response omits the result",
    ]);
    expect(() => answer.checkResponseSize(new JsonText("x".repeat(41)))).to.throw("a response can have at most");
    answer.checkResponseSize(new JsonText("x".repeat(40)));
  });

  it("starts no further part for a disconnected caller, and releases the bytes when the current part has ended", async () => {
    const answers = new ResponseMemoryLimiter({
      totalBytes: 1_000,
      maxBytesPerOwner: 1_000,
      maxBytesPerResponse: 1_000,
    });
    const answer = answers.openBudget(caller(1));
    const reading = Promise.withResolvers<string>();
    let started = 0;
    const part = () =>
      answer.runPart(async () => {
        started += 1;
        await answer.reserveBytes(60);
        return reading.promise;
      });
    const parts = Promise.allSettled([part(), part(), part()]);
    await Promise.resolve();
    answer.close();
    expect(answers.countHeldBytes()).to.equal(60);
    reading.resolve("x".repeat(60));
    expect((await parts).map(({ status }) => status)).to.deep.equal(["fulfilled", "rejected", "rejected"]);
    expect([started, answers.countHeldBytes()]).to.deep.equal([1, 0]);
  });

  it("starts nothing for a disconnected caller, and ends only with its last part", async () => {
    const answers = new ResponseMemoryLimiter({ totalBytes: 100, maxBytesPerOwner: 100, maxBytesPerResponse: 100 });
    const answer = answers.openBudget(caller(1));
    const events: string[] = [];
    answer.callWhenEnded(() => events.push("ended"));
    const work = Promise.withResolvers<void>();
    const part = answer.runPart(() => work.promise).then(() => events.push("part done"));
    answer.close();
    expect(events).to.deep.equal([]);
    work.resolve();
    await part;
    expect(events).to.deep.equal(["ended", "part done"]);
    const late = answers.openBudget(caller(1));
    late.close();
    late.callWhenEnded(() => events.push("ended at once"));
    expect(await statusOf(late.runPart(async () => void events.push("not begun")))).to.equal("REQUEST_INVALID");
    expect(await statusOf(late.reserveBytes(60))).to.equal("REQUEST_INVALID");
    expect(events.slice(2)).to.deep.equal(["ended at once"]);
    expect(answers.countHeldBytes()).to.equal(0);
  });

  it("returns the result of a completed change up to twice the limit, and above that only its success", async () => {
    const answers = new ResponseMemoryLimiter({
      totalBytes: 10 * MB,
      maxBytesPerOwner: 5 * MB,
      maxBytesPerResponse: 5 * MB,
    });
    const run = (appId: number, bytes: number) => {
      const { promise, resolve } = Promise.withResolvers<JsonText>();
      const done = answers.openBudget(caller(appId)).runPart(() => promise);
      return { done, end: () => resolve(new JsonText("x".repeat(bytes))) };
    };
    const runs = [run(1, 4 * MB), run(1, 4 * MB), run(1, 4 * MB), run(1, 100), run(2, 4 * MB)];
    await new Promise(setImmediate);
    for (const { end } of runs) end();
    const settled = await Promise.allSettled(runs.map(({ done }) => done));
    expect(
      settled.map((result) => (result.status === "fulfilled" ? result.value.text.length : result.reason.message)),
    ).to.deep.equal([
      4 * MB,
      4 * MB,
      "the request was executed, but the service has too little memory for its result at present; if the request changed data, do not repeat it, and read the data instead",
      100,
      4 * MB,
    ]);
    expect(answers.countHeldBytes()).to.be.within(12 * MB, 12 * MB + 1_000);
  });
});
