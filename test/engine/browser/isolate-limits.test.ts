/** Tests code that a network isolate cannot run. The service runs it in a document or rejects it, and the page survives. */
import { expect } from "chai";
import { createCodeNeedsFinder } from "../../../src/engine/browser/mode.js";
import type { EvaluationMode } from "../../../src/engine/browser/run.js";
import { sampleOf } from "../../harness/samples.js";
import { type ReachableHost, reachableHost } from "./host.js";
import { resultOf } from "./support.js";

const modeOf = (body: string): EvaluationMode => createCodeNeedsFinder()(`async function execute() { ${body} }`).mode;

const RUN_ONCE_SAMPLES = [
  "const c = new AbortController(); setTimeout(() => c.abort(), 5); return (await fetch('/', { signal: c.signal })).text()",
  "return fetch('/', { signal: AbortSignal.timeout(5000), headers: new Headers({ a: 'b' }) }).then((r) => r instanceof Response)",
  "for (const id of [1, 2]) await fetch('/' + id); return typeof Blob",
  "return new Response('').body.getReader().read()",
  "return fetch('/').then((r) => r.body.getReader().closed)",
  "const [first] = (await fetch('/')).body.tee(); return new Response(first).text()",
];
const MANY_OBJECTS_SAMPLES = [
  "for (let n = 0; n < 3; n += 1) new EventTarget()",
  "for (const one of []) new Headers()",
  "while (fetch) new AbortController()",
  "do new Request('/'); while (fetch)",
  "return [1].map(() => new Blob([]))",
  "const make = () => new FormData(); return make()",
  "function make() { return Response.json(1) } return make()",
  "for (let n = 0; n < 3; n += 1) new Event('a')",
  "const Own = EventTarget; return new Own()",
  "class Own extends EventTarget {} return new Own()",
  "return [EventTarget].map((One) => new One())",
];
const UNSUPPORTED_SAMPLES = [
  "return fetch(URL.createObjectURL(new Blob(['x'])))",
  "const { revokeObjectURL } = URL; setTimeout(revokeObjectURL)",
  "return (await fetch('/')).body.getReader({ mode: 'byob' })",
  "return new ReadableStreamDefaultReader((await fetch('/')).body).closed",
];

describe("code that is too much for a network isolate", () => {
  for (const body of RUN_ONCE_SAMPLES)
    it(`does not include: ${body}`, () => expect(modeOf(body)).to.equal("network-isolate"));
  for (const body of [...MANY_OBJECTS_SAMPLES, ...UNSUPPORTED_SAMPLES])
    it(`includes: ${body}`, () => expect(modeOf(body)).to.equal("document"));
});

/** Harmless code that must run, although it needs many objects or much memory. */
const HEAVY_SAMPLES: [string, string][] = [
  [
    "a million event targets with listeners, 100,000 of them held",
    `const all = [];
     for (let n = 0; n < 1e6; n += 1) {
       const one = new EventTarget();
       one.addEventListener("a", () => n);
       if (n % 10 === 0) all.push(one);
     }
     return all.length`,
  ],
  [
    "300,000 AbortControllers with listeners",
    `const all = [];
     for (let n = 0; n < 3e5; n += 1) {
       const one = new AbortController();
       one.signal.addEventListener("abort", () => n);
       all.push(one);
     }
     return all.length`,
  ],
  ["300,000 Headers", "const all = []; for (let n = 0; n < 3e5; n += 1) all.push(new Headers()); return all.length"],
];
/** Expected results of HEAVY_SAMPLES, in the same order. */
const HEAVY_SAMPLE_RESULTS = [100_000, 300_000, 300_000];

describe("in a network isolate", () => {
  let host: ReachableHost;
  before(async () => {
    host = await reachableHost((request, response) => {
      response.setHeader("Access-Control-Allow-Origin", "*");
      if (request.url !== "/cut") return response.end("read");
      response.writeHead(200, { "content-length": "9" });
      return response.write("x", () => response.destroy());
    });
  });
  after(() => host.stop());
  const run = (body: string, mode?: EvaluationMode) =>
    resultOf(host.browsers, `async function execute() { ${body} }`, { mode } as object);

  for (const [at, [title, body]] of sampleOf([...HEAVY_SAMPLES.entries()], 0, 4)) {
    it(`${title} still work after a request`, async () => {
      expect(await run(`await fetch("${host.url}"); ${body}`)).to.equal(HEAVY_SAMPLE_RESULTS[at]);
    });
  }

  it("the parts of a divided stream can be read", async () => {
    const body =
      "const [, second] = new Response(new Response('x').body).body.tee(); return new Response(second).text()";
    expect(await run(body, "network-isolate")).to.equal("x");
  });

  it("closed of a reader settles after a network error, without a read", async () => {
    const code = `const reader = (await fetch("${host.url}/cut")).body.getReader();
                  return reader.closed.then(() => "closed", String)`;
    expect(await run(code)).to.equal("TypeError: network error");
  });
});
