/** Code samples of requests to a host on loopback (HOST) and their responses, of timers, and of unhandled errors. */
import type { Sample } from "./outcomes.js";

const BODIES: Readonly<Record<string, string>> = {
  text: "'text ä'",
  bytes: "new Uint8Array([1, 2, 3])",
  "a view": "new DataView(new ArrayBuffer(2))",
  "a blob": "new Blob(['blob'], { type: 'x/y' })",
  "a blob without a type": "new Blob(['blob'])",
  "a file": "new File(['file'], 'n', { type: 'x/z' })",
  "a form":
    "(() => { const f = new FormData(); f.append('ä', 'b\\n'); f.append('f', new File(['x'], 'n\"m.txt', { type: 'c/d' })); return f })()",
  "search parameters": "new URLSearchParams({ a: 'b c' })",
  "an object": "({})",
  "its own text": "({ toString: () => 'own' })",
  "no text": "''",
  nothing: "null",
};

const REQUEST_OPTIONS: Readonly<Record<string, string>> = {
  PUT: "{ method: 'put', body: 'x' }",
  PATCH: "{ method: 'patch', body: 'x' }",
  DELETE: "{ method: 'DELETE' }",
  HEAD: "{ method: 'HEAD' }",
  TRACE: "{ method: 'TRACE' }",
  CONNECT: "{ method: 'connect' }",
  "an own method": "{ method: 'Own' }",
  "no method": "{ method: 'a b' }",
  "GET with a body": "{ body: 'x' }",
  headers:
    "{ headers: { 'X-Own': 'a', accept: 'b/c', 'User-Agent': 'own', Cookie: 'no', Host: 'no', 'Accept-Language': 'de' } }",
  "headers of pairs": "{ headers: [['X-Own', '1'], ['x-own', '2']] }",
  "headers of headers": "{ headers: new Headers({ 'x-own': '3' }) }",
  "a content type of its own": "{ method: 'POST', body: '{}', headers: { 'Content-Type': 'application/json' } }",
  "no-cors": "{ mode: 'no-cors', headers: { 'x-own': '1' } }",
  "same-origin": "{ mode: 'same-origin' }",
  navigate: "{ mode: 'navigate' }",
  include: "{ credentials: 'include' }",
  omit: "{ credentials: 'omit' }",
  "no-store": "{ cache: 'no-store' }",
  "only-if-cached": "{ cache: 'only-if-cached' }",
  referrer: "{ referrer: 'about:client', referrerPolicy: 'unsafe-url' }",
  "no referrer": "{ referrer: '' }",
  "another's referrer": "{ referrer: 'http://other.example/' }",
  keepalive: "{ keepalive: true, method: 'POST', body: 'x' }",
  priority: "{ priority: 'high' }",
  "no priority": "{ priority: 'none' }",
  "a right integrity": "{ integrity: 'sha256-wrong' }",
  "no window": "{ window: null }",
  "a window": "{ window: 1 }",
  "a stream without duplex": "{ method: 'POST', body: new Response('x').body }",
  "a stream": "{ method: 'POST', duplex: 'half', body: new Response('x').body }",
};

const WAYS =
  "/status/404 /status/500 /status/204 /status/304 /reason /moved /moved/307 /loop /exposed /refused /cut /closed /json /broken /latin1 /image /form /gzip /cookies".split(
    " ",
  );
export const ADDRESSES: readonly string[] = [
  "data:text/plain,a%20b",
  "data:;base64,YWI=",
  "data:,",
  "data:broken",
  "blob:http://a/b",
  "about:blank",
  "file:///etc/passwd",
  "ftp://a/",
  "http://user:pass@127.0.0.1/",
  "http://",
  "http://[",
  "//",
  "javascript:1",
];

export const REQUEST_SAMPLES: readonly Sample[] = [
  ...Object.entries(BODIES).map(
    ([title, body]): Sample => [
      `a body of ${title}`,
      `{ const r = await fetch(HOST + '/echo', { method: 'POST', body: ${body} }); return [r.status, await r.text()] }`,
    ],
  ),
  ...Object.entries(REQUEST_OPTIONS).map(
    ([title, init]): Sample => [
      `asked with ${title}`,
      `{ const r = await fetch(HOST + '/echo', ${init}); return [r.status, r.type, await r.text()] }`,
    ],
  ),
  ...WAYS.map(
    (way): Sample => [
      `the way ${way}`,
      `{ const r = await fetch(HOST + '${way}'); return [r.status, r.statusText, r.redirected, r.url.slice(HOST.length), [...r.headers].filter(([key]) => key !== 'date'), await outcome(() => r.text()), r.bodyUsed] }`,
    ],
  ),
  ...["follow", "error", "manual"].map(
    (mode): Sample => [
      `redirects: ${mode}`,
      `{ const r = await fetch(HOST + '/moved', { redirect: '${mode}' }); return [r.status, r.type, r.redirected, r.url.slice(0, 4), await r.text()] }`,
    ],
  ),
  ...ADDRESSES.map((address): Sample => [`the address ${address}`, `fetch('${address}')`]),
  [
    "a URL",
    "{ const r = await fetch(new URL(HOST + '/echo?a=ä#b')); return [r.url.slice(HOST.length), await r.text()] }",
  ],
  ["what becomes an address", "{ const r = await fetch({ toString: () => HOST + '/echo' }); return await r.text() }"],
  [
    "headers of an answer are immutable",
    "{ const r = await fetch(HOST + '/echo'); return r.headers.append('a', 'b') }",
  ],
  [
    "the parts of an answer",
    "{ const r = await fetch(HOST + '/echo'); return [String(r), r.headers === r.headers, r.body === r.body, r instanceof Response, Object.keys(r)] }",
  ],
  ["json", "{ const r = await fetch(HOST + '/json'); return await r.json() }"],
  ["broken json", "{ const r = await fetch(HOST + '/broken'); return await r.json() }"],
  ["a form", "{ const r = await fetch(HOST + '/form'); return await r.formData() }"],
  ["a blob", "{ const r = await fetch(HOST + '/image'); return await r.blob() }"],
  ["bytes", "{ const r = await fetch(HOST + '/latin1'); return [await r.clone().bytes(), await r.arrayBuffer()] }"],
  [
    "a body cut off, in parts",
    "{ const r = await fetch(HOST + '/cut'); const parts = []; for await (const part of r.body) parts.push(part.length); return parts }",
  ],
  [
    "a body cancelled",
    "{ const r = await fetch(HOST + '/json'); await r.body.cancel(); return [r.bodyUsed, await outcome(() => r.text())] }",
  ],
  [
    "two readings",
    "{ const r = await fetch(HOST + '/json'); return [await r.text(), await outcome(() => r.text()), await outcome(() => r.clone())] }",
  ],
  [
    "a right integrity of data",
    "fetch('data:,x', { integrity: 'sha256-LXEWQrcmsEQBYnyp+6wy9chTD7GQPMTbAiWHF5IaSIE=' })",
  ],
  ["a wrong integrity of data", "fetch('data:,x', { integrity: 'sha256-AAAA' })"],
  ["aborted before, with a reason", "fetch(HOST + '/echo', { signal: AbortSignal.abort('why') })"],
  ["aborted before, without a reason", "fetch(HOST + '/echo', { signal: AbortSignal.abort() })"],
  ["aborted before, as a request", "fetch(new Request(HOST + '/echo', { signal: AbortSignal.abort({ own: 1 }) }))"],
  [
    "aborted on its way",
    "{ const c = new AbortController(); const asked = fetch(HOST + '/never', { signal: c.signal }); setTimeout(() => c.abort(new RangeError('why')), 20); return await asked }",
  ],
  ...["text()", "body.getReader().read()"].map(
    (read): Sample => [
      `aborted while it is read: ${read}`,
      `{ const c = new AbortController(); const r = await fetch(HOST + '/half', { signal: c.signal }); const reader = r.body.getReader(); await reader.read(); reader.releaseLock(); const other = await fetch(HOST + '/half', { signal: c.signal }); const said = other.${read}; setTimeout(() => c.abort('why'), 20); return [await outcome(() => said), await outcome(() => r.body.getReader().read())] }`,
    ],
  ),
  [
    "a request's signal",
    "{ const c = new AbortController(); const r = new Request(HOST + '/echo', { signal: c.signal }); const before = [r.signal === r.signal, r.signal === c.signal, r.signal.aborted]; r.signal.addEventListener('abort', () => note('aborted')); c.abort('why'); return [before, r.signal.aborted, r.signal.reason, r.clone().signal.reason, r.signal instanceof AbortSignal] }",
  ],
  [
    "the signal of a request without one",
    "{ const { signal } = new Request(HOST + '/echo'); return [signal.aborted, signal.reason] }",
  ],
  [
    "many at once",
    "{ const all = await Promise.all([1, 2, 3, 4, 5].map((n) => fetch(HOST + '/echo?' + n))); return all.map((r) => r.url.slice(HOST.length)) }",
  ],
];

export const TIMES: readonly Sample[] = [
  [
    "the order of timers",
    // Longer timers are set before shorter ones only if the sample clears them. So a pause between two statements cannot change the order.
    "{ const long = [setTimeout(() => note('long'), 60000), setTimeout(() => note('long'), '60000')]; for (const ms of [0, -1, NaN, undefined, null, 1, '2', 5]) setTimeout(() => note(ms), ms); await new Promise((r) => setTimeout(r, 9)); long.forEach((id) => clearTimeout(id)); return 1 }",
  ],
  [
    "numbers of timers",
    "{ const first = setTimeout(() => {}); const second = setInterval(() => {}); clearTimeout(first); clearInterval(second); return [second - first, typeof first] }",
  ],
  [
    "what a timer calls",
    "{ setTimeout(function (...all) { note([this === globalThis, all].join()) }, 0, 1, 'two', {}); await new Promise((r) => setTimeout(r, 9)); return 1 }",
  ],
  [
    "buffers for a timer, as the reason of a signal, and thrown",
    "{ const bytes = new Uint8Array(2); const buffer = new ArrayBuffer(2); await new Promise((r) => setTimeout((a, b) => { a[0] = 7; note([a === bytes, b === buffer]); r() }, 0, bytes, buffer)); try { new Headers({ get a() { throw bytes } }) } catch (thrown) { note(thrown === bytes) } const { reason } = AbortSignal.abort(bytes); return [bytes[0], reason === bytes, await new Blob([reason]).text()] }",
  ],
  [
    "a timer cleared by another",
    "{ let id; setTimeout(() => clearInterval(id), 0); id = setTimeout(() => note('no'), 1); await new Promise((r) => setTimeout(r, 9)); return 1 }",
  ],
  [
    "an interval cleared by itself",
    "{ let n = 0; await new Promise((r) => { const id = setInterval(() => { n += 1; if (n === 3) { clearInterval(id); r() } }, 1) }); await new Promise((r) => setTimeout(r, 15)); return n }",
  ],
  [
    "timers in timers",
    "{ await new Promise((r) => { const next = (n) => n === 7 ? r() : setTimeout(() => { note(n); next(n + 1) }); next(0) }); return 1 }",
  ],
  [
    "code of text",
    "{ globalThis.said = 0; setTimeout('said = 5'); await new Promise((r) => setTimeout(r, 9)); const { said } = globalThis; delete globalThis.said; return said }",
  ],
  [
    "a clock",
    "[String(performance), typeof performance.now(), performance.now() >= 0, performance.now() <= performance.now(), Math.abs(Date.now() - performance.timeOrigin - performance.now()) < 1000]",
  ],
  [
    "an event's way",
    "{ const t = new EventTarget(); t.addEventListener('a', (e) => note([e.type, e.target === t, e.isTrusted])); t.addEventListener('a', { handleEvent(e) { e.preventDefault() } }); return [t.dispatchEvent(new Event('a', { cancelable: true })), t.dispatchEvent(new Event('b'))] }",
  ],
  [
    "a listener that throws",
    "{ const t = new EventTarget(); t.addEventListener('a', () => { throw new RangeError('lost') }); t.addEventListener('a', () => note('second')); const said = t.dispatchEvent(new Event('a')); await new Promise((r) => setTimeout(r, 9)); return said }",
  ],
  [
    "classes of events",
    "{ class Own extends Event { own = 1 }; class Target extends EventTarget {}; const t = new Target(); let heard; t.addEventListener('a', (e) => { heard = [e.own, e instanceof Own, e.currentTarget === t] }, { once: true }); t.dispatchEvent(new Own('a')); return heard }",
  ],
  [
    "a listener that a signal takes away",
    "{ const t = new EventTarget(); const c = new AbortController(); t.addEventListener('a', () => note('heard'), { signal: c.signal }); c.abort(); t.dispatchEvent(new Event('a')); return c.signal instanceof EventTarget }",
  ],
  ["odd numbers cleared", "[undefined, null, NaN, -1, 1e9, '1', {}, [], true].map((id) => clearTimeout(id))"],
  [
    "a timer that throws",
    "{ setTimeout(() => { throw new Error('lost') }); await new Promise((r) => setTimeout(r, 9)); return 1 }",
  ],
  [
    "a rejection that nobody handles",
    "{ Promise.reject(new Error('lost')); await new Promise((r) => setTimeout(r, 9)); return 1 }",
  ],
  [
    "a microtask that throws",
    "{ queueMicrotask(() => { throw new Error('lost') }); await new Promise((r) => setTimeout(r, 9)); return 1 }",
  ],
  [
    "microtasks before timers",
    "{ setTimeout(() => note('timer')); queueMicrotask(() => note('microtask')); Promise.resolve().then(() => note('promise')); await new Promise((r) => setTimeout(r, 9)); return 1 }",
  ],
  [
    "an answer after microtasks",
    "{ const asked = new Response('x').text().then(() => note('text')); await undefined; note('awaited'); await asked; return 1 }",
  ],
  [
    "frames of errors",
    "[() => new Headers(1), () => new Response('', { status: 1 }), () => Response.redirect('http://['), () => new Headers().append('a b', ''), () => new Blob(1), () => Headers.prototype.get.call(1)].map((work) => { try { work() } catch (error) { return error.stack.split('\\n').find((line) => line.includes('action.js')) } })",
  ],
  [
    "frames of failed requests",
    "fetch('about:blank').catch((error) => error.stack.split('\\n').find((line) => line.includes('action.js')))",
  ],
  [
    "frames of refused requests",
    "fetch('http://[').catch((error) => error.stack.split('\\n').find((line) => line.includes('action.js')))",
  ],
  [
    "frames of readings",
    "{ const r = new Response('{'); const first = await r.json().catch((error) => error.stack.split('\\n').find((line) => line.includes('action.js'))); return [first, await r.text().catch((error) => error.stack.split('\\n').find((line) => line.includes('action.js')))] }",
  ],
];
