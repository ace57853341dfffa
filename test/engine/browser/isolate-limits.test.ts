/** Tests code that a network isolate cannot run. The service runs it in a document or rejects it, and the page survives. */
import { expect } from "chai";
import { createCodeNeedsFinder } from "../../../src/engine/browser/mode.js";
import type { EvaluationMode } from "../../../src/engine/browser/run.js";
import { sampleOf } from "../../harness/samples.js";
import { type ReachableHost, reachableHost } from "./host.js";
import { failureOf, resultOf } from "./support.js";

const modeOf = (body: string): EvaluationMode => createCodeNeedsFinder()(`async function execute() { ${body} }`).mode;

const RUN_ONCE_SAMPLES = [
  "const c = new AbortController(); setTimeout(() => c.abort(), 5); return (await fetch('/', { signal: c.signal })).text()",
  "return fetch('/', { signal: AbortSignal.timeout(5000), headers: new Headers({ a: 'b' }) }).then((r) => r instanceof Response)",
  "for (const id of [1, 2]) await fetch('/' + id); return typeof Blob",
  "return new Response('').body.getReader().read()",
  "const door = { closed: true }; return door.closed && fetch('/')",
];
const MANY = [
  "for (let n = 0; n < 3; n += 1) new EventTarget()",
  "for (const one of []) new Headers()",
  "while (fetch) new AbortController()",
  "do new ReadableStream(); while (fetch)",
  "return [1].map(() => new Blob([]))",
  "const make = () => new FormData(); return make()",
  "function make() { return Response.json(1) } return make()",
  "const Own = EventTarget; return new Own()",
  "class Own extends EventTarget {} return new Own()",
  "return [EventTarget].map((One) => new One())",
];
const CLOSED_STREAM_SAMPLES = [
  "return fetch('/').then((r) => r.body.getReader().closed)",
  "const { closed } = (await fetch('/')).body.getReader(); await closed",
  "return new ReadableStreamDefaultReader((await fetch('/')).body).closed",
];

const UNSUPPORTED_SAMPLES = [
  "return fetch(URL.createObjectURL(new Blob(['x'])))",
  "const { revokeObjectURL } = URL; setTimeout(revokeObjectURL)",
  "return (await fetch('/')).body.getReader({ mode: 'byob' })",
];

describe("code that is too much for a network isolate", () => {
  for (const body of RUN_ONCE_SAMPLES)
    it(`does not include: ${body}`, () => expect(modeOf(body)).to.equal("network-isolate"));
  for (const body of [...MANY, ...CLOSED_STREAM_SAMPLES, ...UNSUPPORTED_SAMPLES])
    it(`includes: ${body}`, () => expect(modeOf(body)).to.equal("document"));
});

/** Harmless code that must run, although it needs many objects or much memory. */
const HEAVY_SAMPLES: [string, string][] = [
  [
    "25,000 streams",
    "const all = []; for (let n = 0; n < 25e3; n += 1) all.push(new ReadableStream()); return all.length",
  ],
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
const COUNTS = [25_000, 100_000, 300_000, 300_000];

const VIEWS =
  "Int8Array Uint8Array Uint8ClampedArray Int16Array Uint16Array Int32Array Uint32Array Float16Array Float32Array " +
  "Float64Array BigInt64Array BigUint64Array DataView";
/** Returns code that streams `chunk` in a response body, reads it as `value`, and returns `seen`, an expression that can use `value`. */
const createChunkReaderCode = (chunk: string, seen: string) =>
  `const own = new ReadableStream({ start(controller) { controller.enqueue(${chunk}); controller.close(); } });
   const { value } = await new Response(own).body.getReader().read();
   return ${seen}`;

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

  for (const [at, [what, body]] of sampleOf([...HEAVY_SAMPLES.entries()], 0, 4)) {
    it(`${what} still work after a request`, async () => {
      expect(await run(`await fetch("${host.url}"); ${body}`)).to.equal(COUNTS[at]);
    });
  }

  for (const view of sampleOf(VIEWS.split(" "), 0, 3)) {
    it(`a chunk of an author's stream is read by its type: ${view}`, async () => {
      const made = `new ${view}(new Uint8Array([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]).buffer, 0, ${view === "DataView" ? 8 : 1})`;
      const seen =
        "[value[Symbol.toStringTag], ...new Uint8Array(value.buffer, value.byteOffset, value.byteLength)].join()";
      const code = createChunkReaderCode(made, seen);
      expect(await run(code, "network-isolate")).to.equal(await run(code, "document"));
    });
  }

  it("a chunk that cannot be passed on is rejected at once", async () => {
    for (const chunk of ["new ReadableStream()", "new EventTarget()", "new Map()", "{}", "() => {}"]) {
      const source = `async function execute() { ${createChunkReaderCode(chunk, "typeof value")} }`;
      const { error, cause } = await failureOf(host.browsers, source, { mode: "network-isolate" });
      expect({ cause, name: error.name }).to.deep.equal({ cause: "script", name: "TypeError" });
    }
  });

  it("closed of a reader settles after a network error, without a read", async () => {
    const code = `const reader = (await fetch("${host.url}/cut")).body.getReader();
                  return reader.closed.then(() => "closed", String)`;
    expect(await run(code)).to.equal("TypeError: network error");
  });
});
