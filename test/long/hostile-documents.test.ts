/**
 * Sends five hundred malicious GraphQL documents over HTTP and the websocket. Each gets its response at once, and none remains in memory.
 */
import { readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { expect } from "chai";
import { type Client, createClient } from "graphql-ws";
import WebSocket from "ws";
import { type ServiceProcess, startProcess } from "../harness/process.js";

const DOCUMENTS_PER_ROUND = 500;
/** Number of rounds, each with new documents, so that a cache of documents would grow. */
const ROUNDS = 3;
const ANSWER_MAX_MS = 100;
const GROWTH_MAX_BYTES = 50 * 1024 * 1024;
/**
 * Time in milliseconds without a decrease after which memory counts as settled. V8 frees old garbage about 16 s after the load has ended.
 */
const SETTLED_MS = 20_000;

const megabytes = (bytes: number): string => (bytes / 2 ** 20).toFixed(1);

const times = (count: number, write: (at: number) => string): string =>
  Array.from({ length: count }, (_, at) => write(at)).join(" ");
const nested = (depth: number, inner: string): string =>
  "{ __schema { types { fields ".repeat(depth) + inner + "} } }".repeat(depth);
/** Returns a selection set and its fragments. Each fragment uses the next one twice. */
const buildFragmentBomb = (count: number): string =>
  `{ __schema { types { ...f0 } } } ${times(count, (at) => `fragment f${at} on __Type { name ${at + 1 < count ? `a: ofType { ...f${at + 1} } b: ofType { ...f${at + 1} }` : ""} }`)}`;

const buildFragmentCycles = (count: number): string =>
  times(count, (at) => `fragment f${at} on Query { __typename ...f${(at + 1) % count} ...f${(at + 7) % count} }`);
/** Builds fields of a document. Many of them have the same response name, so GraphQL compares their selections in pairs. */
const buildClashingFields = (n: number, count: number): string =>
  times(
    count,
    (at) =>
      `c${n}: ofType { ${times(count, (inner) => `d${inner % 3}: ${inner % 2 ? "name" : "kind"} e${at}: name`)} }`,
  );

/** Functions that build one kind of malicious document each. Each call returns another document, so that no cache helps. */
const DOCUMENT_BUILDERS: ((n: number) => { query: string; variables?: object })[] = [
  (n) => ({ query: `{ __schema { types { ${times(900 + (n % 90), (at) => `a${n}x${at}: description`)} } } }` }),
  (n) => ({ query: `{ ${times(4_000, (at) => `a${n}x${at}: __typename`)} }` }),
  (n) => ({ query: `{ ${times(1_600, (at) => `a${n}x${at}: __typename`)} }` }),
  (n) => ({ query: `{ n${n}: __typename ${times(1_000, () => "@include(if: true)")} }` }),
  (n) => ({ query: `query n${n}(${times(800, (at) => `$a${at}: Int`)}) { __typename }` }),
  (n) => ({ query: times(600, (at) => `query q${n}x${at} { __typename }`) }),
  (n) => ({ query: `{ a${n}: actionLogs(appId: 1, options: ${"[".repeat(2_000)}${"]".repeat(2_000)}) { count } }` }),
  (n) => ({ query: `{ a${n}: actionLogs(appId: 1, options: ${"[".repeat(480)}${"]".repeat(480)}) { count } }` }),
  (n) => ({
    query: `{ a${n}: actionLogs(appId: 1, options: { ${times(1_500, (at) => `f${at}: 1`)} }) { count } }`,
  }),
  (n) => ({ query: `{ a${n}: actionLogs(appId: 1, options: [${times(2_400, () => "{}")}]) { count } }` }),
  (n) => ({ query: `{ a${n} ${"{ a ".repeat(1_100)}${"}".repeat(1_100)} }` }),
  (n) => ({ query: `{ n${n}: __typename ${"... { ".repeat(1_200)} __typename ${"}".repeat(1_200)} }` }),
  (n) => ({ query: nested(4, `{ n${n}: name }`) }),
  (n) => ({ query: `query n${n} ${buildFragmentBomb(20 + (n % 12))}` }),
  (n) => ({ query: `query n${n} ${buildFragmentBomb(49)}` }),
  (n) => ({ query: `{ n${n}: __typename ...a } fragment a on Query { ...b } fragment b on Query { ...a }` }),
  (n) => ({ query: `{ n${n}: __typename ...f0 } ${buildFragmentCycles(49)}` }),
  (n) => ({ query: `{ ${times(900, (at) => `x${n}y${at}`)} }` }),
  (n) => ({ query: `{ a${n}: action(appId: 1, id: 1, ${times(1_600, (at) => `b${at}: 1`)}) { id } }` }),
  (n) => ({ query: `{ ${times(90, (at) => `a${n}x${at}: action(appId: $v${at}, id: $w${at}) { id }`)} }` }),
  (n) => ({ query: `{ __schema { types { ${times(400, (at) => `... on T${n}x${at} { name }`)} } } }` }),
  (n) => ({ query: `{ __schema { types { ${buildClashingFields(n, 30)} } } }` }),
  (n) => ({
    query: `{ n${n}: actionLogs(appId: 1, options: { limit: 1000 }) { logs { ${times(30, (at) => `a${at}: id`)} } } }`,
  }),
  (n) => ({
    query: `query ($o: ActionLogsInput) { n${n}: actionLogs(appId: 1, options: $o) { count } }`,
    variables: { o: deep(400) },
  }),
  (n) => ({
    query: `query ($o: ActionLogsInput) { n${n}: actionLogs(appId: 1, options: $o) { count } }`,
    variables: { o: Object.fromEntries(Array.from({ length: 4_000 }, (_, at) => [`f${at}`, at])) },
  }),
  (n) => ({
    query: `mutation ($p: JSON) { n${n}: runAction(appId: 1, nameOrId: "1", payload: $p) { runId } }`,
    variables: { p: deep(1_200) },
  }),
  (n) => ({ query: `query n${n} "${"é".repeat(20_000)}" { __typename }` }),
  (n) => ({ query: `{ n${n}: __typename # ${"x".repeat(25_000)}` }),
  (n) => ({ query: `{ n${n}: ${"a".repeat(25_000)} }` }),
  (n) => ({ query: `${",".repeat(20_000)}{ n${n} ` }),
  (n) => ({ query: `{ n${n}: action(appId: 1, id: ${"9".repeat(5_000)}) { id } }` }),
  (n) => ({ query: `{ n${n}: action(appId: 1, id: "${"\\u00e9".repeat(4_000)}") { id } }` }),
  (n) => ({ query: `subscription { ${times(90, (at) => `a${n}x${at}: actionLogAdded(appId: 1) { id }`)} }` }),
  (n) => ({
    query: `subscription n${n} { ...a } fragment a on Subscription { ${times(90, (at) => `a${at}: actionLogAdded(appId: 1) { id }`)} }`,
  }),
  (n) => ({ query: `${times(300, (at) => `type T${n}x${at} { a: Int }`)} { __typename }` }),
];

function deep(levels: number): object {
  let value: object = {};
  for (let level = 0; level < levels; level += 1) value = { a: value };
  return value;
}

function memoryOf({ pid }: ServiceProcess): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))![1]) * 1024;
}

/** Waits until the memory stops decreasing: it must not fall by a megabyte within SETTLED_MS. Returns the memory in bytes. */
async function waitForSettledMemory(service: ServiceProcess): Promise<number> {
  let least = memoryOf(service);
  let since = performance.now();
  while (performance.now() - since < SETTLED_MS) {
    await delay(500);
    const now = memoryOf(service);
    if (now > least - 1024 * 1024) continue;
    least = now;
    since = performance.now();
  }
  return memoryOf(service);
}

describe("five hundred hostile documents", function () {
  this.timeout(900_000);
  let service: ServiceProcess;
  let url: string;
  let client: Client;
  before(async () => {
    service = startProcess({ ROLES: "api" });
    url = await service.ready();
    client = createClient({
      url: `${url.replace("http", "ws")}/graphql`,
      webSocketImpl: WebSocket,
      connectionParams: { authToken: service.credentials().tokens.editor },
      retryAttempts: 0,
    });
  });
  after(async () => {
    await client.dispose();
    await service.clean();
  });

  async function post(body: object, as: "editor" | "admin"): Promise<{ errors?: unknown }> {
    const headers = { "auth-token": service.credentials().tokens[as], "content-type": "application/json" };
    return (await fetch(`${url}/graphql`, { method: "POST", headers, body: JSON.stringify(body) })).json() as never;
  }
  const sendOverHttp = (body: object) => post(body, "editor").then(({ errors }) => errors);
  const sendOverSocket = (payload: { query: string; variables?: object }) =>
    new Promise<unknown>((resolve) => {
      const over = client.subscribe(payload as never, {
        next: (value) => {
          resolve((value as { errors?: unknown }).errors);
          over();
        },
        error: resolve,
        complete: () => resolve(undefined),
      });
    });

  /** Sends requests of another caller every few milliseconds until `over` returns true. Returns the longest duration. */
  async function measureNeighbour(over: () => boolean): Promise<number> {
    let longest = 0;
    while (!over()) {
      const startedAt = performance.now();
      await post({ query: "{ __typename }" }, "admin");
      longest = Math.max(longest, performance.now() - startedAt);
      await delay(5);
    }
    return longest;
  }

  /**
   * Sends one document of each kind over HTTP, the next one of each kind over the socket, and so on. Returns the sorted durations, and
   * descriptions of the documents that took too long. @param from number of the first document
   */
  async function sendAll(from: number): Promise<{ times: number[]; slow: string[] }> {
    const slow: string[] = [];
    const times: number[] = [];
    for (let n = from; n < from + DOCUMENTS_PER_ROUND; n += 1) {
      const document = DOCUMENT_BUILDERS[n % DOCUMENT_BUILDERS.length]!(n);
      const way = Math.floor(n / DOCUMENT_BUILDERS.length) % 2 === 0 ? sendOverHttp : sendOverSocket;
      const startedAt = performance.now();
      const errors = await way(document);
      const durationMs = performance.now() - startedAt;
      times.push(durationMs);
      expect(errors, document.query.slice(0, 60)).to.be.an("array").and.not.have.length(0);
      if (durationMs > ANSWER_MAX_MS)
        slow.push(`${Math.round(durationMs)} ms by ${way.name}: ${document.query.slice(0, 60)}`);
    }
    return { times: times.sort((a, b) => a - b), slow };
  }

  it(`of one sender each get a response within ${ANSWER_MAX_MS} ms, and so do others; memory grows by less than ${GROWTH_MAX_BYTES / 2 ** 20} MB while they arrive, and stays there`, async () => {
    for (const way of [sendOverHttp, sendOverSocket]) for (const make of DOCUMENT_BUILDERS) await way(make(10_000));
    const before = await waitForSettledMemory(service);
    const grown: number[] = [];
    const slow: string[] = [];
    let longestNeighbourMs = 0;
    for (let round = 0; round < ROUNDS; round += 1) {
      let done = false;
      const beside = measureNeighbour(() => done);
      const sent = await sendAll(round * DOCUMENTS_PER_ROUND).finally(() => {
        done = true;
      });
      longestNeighbourMs = Math.max(longestNeighbourMs, await beside);
      slow.push(...sent.slow);
      grown.push(memoryOf(service) - before);
      process.stdout.write(
        `      p50 ${sent.times[DOCUMENTS_PER_ROUND / 2]!.toFixed(0)} ms, longest ${sent.times.at(-1)!.toFixed(0)} ms, beside them ${longestNeighbourMs.toFixed(0)} ms; ${megabytes(grown.at(-1)!)} MB more than before\n`,
      );
    }
    const left = (await waitForSettledMemory(service)) - before;
    process.stdout.write(`      ${megabytes(left)} MB more once it rests\n`);
    expect(slow).to.deep.equal([]);
    expect(longestNeighbourMs).to.be.below(ANSWER_MAX_MS);
    expect(left).to.be.below(GROWTH_MAX_BYTES);
    expect(Math.max(...grown), "while they come").to.be.below(GROWTH_MAX_BYTES);
  });
});
