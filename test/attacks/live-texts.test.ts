import { expect } from "chai";
import { buildSchema, parse } from "graphql";
import { pino } from "pino";
import { SharedSubscriptionResults, type SubscriptionResultReceiver } from "../../src/api/live/shared-results.js";
import { ResponseMemoryLimiter } from "../../src/api/response-memory.js";
import { createAbortableGenerator } from "../../src/operations/records/abortable-generator.js";
import {
  createSubscriptionSource,
  guardSubscriptionSource,
  type SubscriptionSource,
} from "../../src/operations/records/subscription-source.js";

const EVENT = { text: "x".repeat(10_000) };

describe("one event to sockets that each request it with a different document", () => {
  const schema = buildSchema("type Query { none: Int } type Event { text: String } type Subscription { added: Event }");
  const answers = new ResponseMemoryLimiter({
    totalBytes: 100_000,
    maxBytesPerOwner: 50_000,
    maxBytesPerResponse: 40_000,
  });
  const results = new SharedSubscriptionResults(answers, pino({ level: "silent" }));
  let listeners: ((event: object) => void)[] = [];
  let ends: (() => unknown)[] = [];
  afterEach(async () => {
    for (const end of ends) await end();
    [listeners, ends] = [[], []];
    expect(answers.countHeldBytes()).to.equal(0);
  });

  interface Received {
    results: (string | Buffer)[];
    missed: number;
    /** Completes all writes to the socket. */
    send(): void;
  }

  async function follow(fields: string, appId = 1): Promise<Received> {
    const sentCallbacks: (() => void)[] = [];
    const received: Received = {
      results: [],
      missed: 0,
      send: () => sentCallbacks.splice(0).forEach((left) => void left()),
    };
    const contextValue: SubscriptionResultReceiver = {
      socketKey: {},
      queryKey: fields,
      receiveResult(result, left) {
        received.results.push(result);
        if (left) sentCallbacks.push(left);
      },
      onMissedEvent() {
        received.missed += 1;
      },
    };
    const live: SubscriptionSource<object> = createSubscriptionSource(appId, (listener) => {
      listeners.push(listener);
      return () => undefined;
    });
    const source = guardSubscriptionSource(live, { appId, check: () => undefined });
    const document = parse(`subscription { added { ${fields} } }`);
    const events = await results.subscribe({ schema, document, contextValue, rootValue: { added: source } });
    ends.push(() => (events as AsyncGenerator).return(undefined), received.send);
    return received;
  }

  async function emit(event: object = EVENT): Promise<void> {
    const root = { added: event };
    for (const listener of listeners) listener(root);
    await new Promise(setImmediate);
  }

  it("is sent to as many as memory allows; other sockets are closed and reconnect", async () => {
    const sockets = await Promise.all(Array.from({ length: 9 }, (_, at) => follow(`a${at}: text`)));
    const other = await follow("text", 2);
    await emit();
    expect(sockets.filter(({ results }) => results.length === 1)).to.have.length(4);
    expect(sockets.filter(({ missed }) => missed === 1)).to.have.length(5);
    expect([other.results.length, other.missed]).to.deep.equal([1, 0]);
    expect(answers.countHeldBytes()).to.be.within(50_000, 51_000);
  });

  it("is serialized once for all identical documents, and counted until the last socket has sent it", async () => {
    const sockets = await Promise.all(Array.from({ length: 100 }, () => follow("text")));
    await emit();
    expect(new Set(sockets.map(({ results }) => results[0])).size).to.equal(1);
    for (const { send } of sockets.slice(1)) send();
    expect(answers.countHeldBytes()).to.be.within(10_000, 10_200);
    sockets[0]!.send();
    expect(answers.countHeldBytes()).to.equal(0);
  });

  it("is rejected with an explanation if a document requests it under too many names", async () => {
    const names = Array.from({ length: 10 }, (_, at) => `a${at}: text`);
    const [many, single] = [await follow(names.join(" ")), await follow("text")];
    await emit();
    expect(String(many.results[0])).to.contain('"data":null').and.to.contain('"status":"REQUEST_INVALID"');
    expect(String(single.results[0])).to.contain(EVENT.text);
  });

  it("counts nothing if it is short", async () => {
    const sockets = await Promise.all(Array.from({ length: 100 }, (_, at) => follow(`a${at}: text`)));
    await emit({ text: "short" });
    expect(sockets.every(({ results }) => String(results[0]).includes("short"))).to.equal(true);
    expect(answers.countHeldBytes()).to.equal(0);
  });
});

describe("a subscription whose events are for one socket only", () => {
  it("ends its source as soon as it is completed, even if no event arrives", async () => {
    const schema = buildSchema("type Query { none: Int } type Subscription { added: Int }");
    const answers = new ResponseMemoryLimiter({
      totalBytes: 1_000,
      maxBytesPerOwner: 1_000,
      maxBytesPerResponse: 1_000,
    });
    const results = new SharedSubscriptionResults(answers, pino({ level: "silent" }));
    let isOver = false;
    const lines = createAbortableGenerator(async function* (left) {
      yield { added: 1 };
      await new Promise<void>((resolve) => left.addEventListener("abort", () => resolve()));
      isOver = true;
    });
    const source = guardSubscriptionSource(lines, { appId: 1, check: () => undefined });
    const document = parse("subscription { added }");
    const contextValue = { owner: {} };
    const events = (await results.subscribe({
      ...{ schema, document, contextValue, rootValue: { added: source } },
    })) as AsyncGenerator;
    expect(results.count()).to.equal(1);
    expect((await events.next()).value.data.added).to.equal(1);
    const next = events.next();
    await events.return(undefined);
    expect([isOver, (await next).done, results.count()]).to.deep.equal([true, true, 0]);
  });
});
