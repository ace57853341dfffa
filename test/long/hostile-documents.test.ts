/** Five hundred hostile documents, over HTTP and the websocket: each is answered at once, and nothing of them stays in memory. */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect } from "chai";
import type { Client } from "graphql-ws";
import { startTestService, type TestService } from "../harness/service.js";

const COUNT = 500;
const ANSWER_MS = 100;
const GROWTH_BYTES = 50 * 1024 * 1024;

const times = (count: number, write: (at: number) => string): string =>
  Array.from({ length: count }, (_, at) => write(at)).join(" ");
const nested = (depth: number, inner: string): string =>
  "{ __schema { types { fields ".repeat(depth) + inner + "} } }".repeat(depth);
const bomb = (count: number): string =>
  `{ __schema { types { ...f0 } } } ${times(count, (at) => `fragment f${at} on __Type { name ${at + 1 < count ? `a: ofType { ...f${at + 1} } b: ofType { ...f${at + 1} }` : ""} }`)}`;

/** Each is another document whenever it is made, so that none is remembered. */
const KINDS: ((n: number) => { query: string; variables?: object })[] = [
  (n) => ({ query: `{ __schema { types { ${times(900 + n, (at) => `a${n}x${at}: description`)} } } }` }),
  (n) => ({ query: `{ ${times(4_000, (at) => `a${n}x${at}: __typename`)} }` }),
  (n) => ({ query: `{ __typename ${times(1_000 + n, () => "@include(if: true)")} }` }),
  (n) => ({ query: `query (${times(800 + n, (at) => `$a${at}: Int`)}) { __typename }` }),
  (n) => ({ query: times(600 + n, (at) => `query q${n}x${at} { __typename }`) }),
  (n) => ({ query: `{ a${n}: actionLogs(appId: 1, options: ${"[".repeat(2_000)}${"]".repeat(2_000)}) { count } }` }),
  (n) => ({ query: `{ a${n} ${"{ a ".repeat(1_100)}${"}".repeat(1_100)} }` }),
  (n) => ({ query: nested(4, `{ n${n}: name }`) }),
  (n) => ({ query: `${bomb(18 + (n % 12))} query n${n} { __typename }` }),
  (n) => ({ query: `{ n${n}: __typename ...a } fragment a on Query { ...b } fragment b on Query { ...a }` }),
  (n) => ({ query: `{ ${times(900, (at) => `x${n}y${at}`)} }` }),
  (n) => ({
    query: `{ n${n}: actionLogs(appId: 1, options: { limit: 1000 }) { logs { ${times(30, (at) => `a${at}: id`)} } } }`,
  }),
  (n) => ({
    query: `query ($o: ActionLogsInput) { n${n}: actionLogs(appId: 1, options: $o) { count } }`,
    variables: { o: deep(400) },
  }),
  (n) => ({
    query: `query ($p: JSON) { n${n}: runAction(appId: 1, nameOrId: 1, payload: $p) { runId } }`,
    variables: { p: deep(900) },
  }),
  (n) => ({ query: `"${"é".repeat(20_000)}" { n${n}: __typename }` }),
  (n) => ({ query: `{ n${n}: __typename # ${"x".repeat(25_000)}` }),
  (n) => ({ query: `{ n${n}: ${"a".repeat(25_000)} }` }),
  (n) => ({ query: `${" ".repeat(20_000)}{ n${n} ` }),
  (n) => ({ query: `{ n${n}: action(appId: 1, id: ${"9".repeat(5_000)}) { id } }` }),
  (n) => ({ query: `subscription { ${times(90, (at) => `a${n}x${at}: actionLogAdded(appId: 1) { id }`)} }` }),
];

function deep(levels: number): object {
  let value: object = {};
  for (let level = 0; level < levels; level += 1) value = { a: value };
  return value;
}

function held(): number {
  setFlagsFromString("--expose-gc");
  (runInNewContext("gc") as () => void)();
  return process.memoryUsage().rss;
}

describe("five hundred hostile documents", function () {
  this.timeout(300_000);
  let service: TestService;
  let client: Client;
  before(async () => {
    service = await startTestService({ ROLES: "api" });
    client = service.socket();
  });
  after(async () => {
    await client.dispose();
    await service.stop();
  });

  const overHttp = (body: object) =>
    service.rest("POST", "/graphql", { body }).then(({ body: answer }) => answer.errors);
  const overSocket = (payload: { query: string; variables?: object }) =>
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

  it(`are each refused within ${ANSWER_MS} ms of their turn, and memory grows by less than ${GROWTH_BYTES / 2 ** 20} MB`, async () => {
    for (const way of [overHttp, overSocket]) for (const make of KINDS) await way(make(10_000));
    const before = held();
    const slow: string[] = [];
    for (let n = 0; n < COUNT; n += 1) {
      const document = KINDS[n % KINDS.length]!(n);
      const way = Math.floor(n / KINDS.length) % 2 === 0 ? overHttp : overSocket;
      const begun = performance.now();
      const errors = await way(document);
      const took = performance.now() - begun;
      expect(errors, document.query.slice(0, 60)).to.be.an("array").and.not.have.length(0);
      if (took > ANSWER_MS) slow.push(`${Math.round(took)} ms by ${way.name}: ${document.query.slice(0, 60)}`);
    }
    expect(slow).to.deep.equal([]);
    expect(held() - before).to.be.below(GROWTH_BYTES);
  });
});
