/** Code samples that read each kind of body with each method, before and after the body was read. */
import type { Sample } from "./outcomes.js";

const BODIES: Readonly<Record<string, string>> = {
  none: "new Response()",
  null: "new Response(null)",
  "no text": "new Response('')",
  "a text": "new Response('text ä☃😀')",
  json: 'new Response(\'{"a": [1, -0, 1e400, "\\\\u0000"], "__proto__": 1}\')',
  "broken json": "new Response('{\"a\": tru')",
  "json of nothing": "new Response('  ')",
  "json with a mark": "new Response('\\ufeff{}')",
  bytes: "new Response(new Uint8Array([0, 1, 255, 254]))",
  "invalid utf-8": "new Response(new Uint8Array([97, 255, 98, 0xe2, 0x98]))",
  "a byte order mark": "new Response(new Uint8Array([0xef, 0xbb, 0xbf, 97]))",
  "no content": "new Response(null, { status: 204 })",
  "a blob": "new Response(new Blob(['blob'], { type: 'x/y' }))",
  "a form":
    "(() => { const f = new FormData(); f.append('a', 'ä'); f.append('b', new File(['f'], 'n.txt', { type: 'c/d', lastModified: 1 })); return new Response(f) })()",
  "search parameters": "new Response(new URLSearchParams('a=b&c=d+e'))",
  "a form with a wrong type": "new Response('a=b', { headers: { 'content-type': 'text/html' } })",
  "a form without a boundary": "new Response('a=b', { headers: { 'content-type': 'multipart/form-data' } })",
  "a broken form": "new Response('a=b', { headers: { 'content-type': 'multipart/form-data; boundary=x' } })",
  "a large text": "new Response('0123456789abcdef'.repeat(2048))",
  "an error": "Response.error()",
  "a redirect": "Response.redirect('http://a.example/')",
  "json of ours": "Response.json({ a: [1, undefined, new Date(0)] })",
  "a request": "new Request('http://a.example/', { method: 'POST', body: 'asked' })",
  "a request of nothing": "new Request('http://a.example/')",
};

const STATE_CHANGES: Readonly<Record<string, string>> = {
  fresh: "",
  "read before": "await r.text().catch(() => {});",
  "being read": "r.text().catch(() => {});",
  locked: "r.body?.getReader();",
  "locked and let go": "r.body?.getReader().releaseLock();",
  "half read": "{ const reader = r.body?.getReader(); await reader?.read().catch(() => {}); reader?.releaseLock(); }",
  cancelled: "await r.body?.cancel('why').catch(() => {});",
  "cloned before": "r.clone();",
  "a clone": "const first = r.body; r = r.clone();",
  "with its stream had": "r.body;",
};

const BODY_READS: Readonly<Record<string, string>> = {
  "its text": "r.text()",
  "its json": "r.json()",
  "its bytes": "r.bytes()",
  "its buffer": "r.arrayBuffer()",
  "its blob": "r.blob()",
  "its form": "r.formData()",
  "its clone": "r.clone()",
  "its state": "[r.bodyUsed, r.body?.locked]",
  "its text, its state": "r.text().then((text) => [text, r.bodyUsed, r.body?.locked])",
  "its reader": "r.body?.getReader().read()",
  "itself cancelled": "r.body?.cancel().then((said) => [said, r.bodyUsed])",
};

export const BODY_STATES: readonly Sample[] = Object.entries(BODIES).flatMap(([body, made]) =>
  Object.entries(STATE_CHANGES).flatMap(([state, statement]) =>
    Object.entries(BODY_READS).map(
      ([use, code]): Sample => [
        `${body}, ${state}: ${use}`,
        `{ await undefined; let r = ${made}; ${statement} return outcome(() => ${code}); }`,
      ],
    ),
  ),
);

const TEXT = "new Response('some text')";
const all = (stream: string) =>
  `{ const parts = []; for await (const part of ${stream}) parts.push(part); return parts }`;

export const STREAM_SAMPLES: readonly Sample[] = [
  [
    "a 2 MB text",
    "{ const r = new Response('0123456789abcdef'.repeat(131072)); const c = r.clone(); return [(await r.text()).length, (await c.bytes()).length] }",
  ],
  ["for await", all(`${TEXT}.body`)],
  [
    "for await, left",
    `{ const r = ${TEXT}; for await (const part of r.body) break; return [r.bodyUsed, r.body.locked] }`,
  ],
  [
    "values that prevent a cancel",
    `{ const r = ${TEXT}; for await (const part of r.body.values({ preventCancel: true })) break; return [r.bodyUsed, r.body.locked] }`,
  ],
  ["a blob's stream", all("new Blob(['a', 'b']).stream()")],
  ["a blob's stream of text", all("new Blob(['a', 'ä']).textStream?.() ?? []")],
  ["a response's stream of text", all("new Response('aä').textStream?.() ?? []")],
  ["tee", `{ const [a, b] = ${TEXT}.body.tee(); return Promise.all([a.getReader().read(), b.getReader().read()]) }`],
  [
    "a reader's closed",
    `{ const reader = ${TEXT}.body.getReader(); await reader.read(); await reader.read(); return await reader.closed }`,
  ],
  [
    "two reads at once",
    `{ const reader = ${TEXT}.body.getReader(); return await Promise.all([reader.read(), reader.read()]) }`,
  ],
  [
    "a body that is another's",
    `{ const r = ${TEXT}; const other = new Response(r.body); const text = await other.text(); return [text, r.bodyUsed] }`,
  ],
  [
    "a body that is another's, being read",
    `{ const r = ${TEXT}; const other = new Response(r.body); r.body.getReader(); return await other.text() }`,
  ],
  ["a body of a body in use", `{ const r = ${TEXT}; await r.text(); return new Response(r.body) }`],
  ["a body in use", `{ const r = ${TEXT}; await r.text(); return new Response(r.body).bodyUsed }`],
  [
    "a form goes and comes",
    "{ const f = new FormData(); f.append('a', new Blob(['x'], { type: 'b/c' }), 'n'); f.append('b', 'c'); return await new Response(f).formData() }",
  ],
  [
    "headers changed while gone through",
    "{ const h = new Headers({ a: '1', b: '2' }); const seen = []; for (const [key] of h) { seen.push(key); if (seen.length < 9) h.append('c' + seen.length, 'x'); } return seen }",
  ],
  [
    "headers deleted while gone through",
    "{ const h = new Headers({ a: '1', b: '2', c: '3' }); const seen = []; h.forEach((value, key, all) => { seen.push(value, key, all === h); h.delete('b') }); return seen }",
  ],
  [
    "fields changed while gone through",
    "{ const f = new FormData(); f.append('a', '1'); const seen = []; for (const [key] of f) { seen.push(key); if (seen.length < 9) f.append('c' + seen.length, 'x'); } return seen }",
  ],
  ["a callback that throws", "new Headers({ a: '1' }).forEach(() => { throw new RangeError('own') })"],
  [
    "a callback's this",
    "{ const seen = []; new Headers({ a: '1' }).forEach(function () { 'use strict'; seen.push(this, arguments.length) }, 5); return seen }",
  ],
  [
    "headers combined",
    "{ const h = new Headers([['B', '2'], ['a', '1'], ['b', '3'], ['Set-Cookie', 'x=1'], ['set-cookie', 'y=2']]); return [[...h], [...h.keys()], [...h.values()], h.get('b'), h.getSetCookie(), h.get('set-cookie')] }",
  ],
  [
    "entries of entries",
    "{ const e = new Headers({ a: '1' }).entries(); return [e[Symbol.iterator]() === e, [...e], e.next(), String(e)] }",
  ],
  ["entries are iterators", "new Headers({ a: '1', b: '2' }).keys().map((key) => key + key).toArray()"],
  ["next on another", "new Headers().entries().next.call({})"],
  [
    "values of a form are the same files",
    "{ const file = new File(['x'], 'n'); const f = new FormData(); f.append('a', file); return [f.get('a') === file, f.get('a') === f.get('a')] }",
  ],
  [
    "headers of a response are its own",
    "{ const r = new Response('', { headers: { a: 'b' } }); r.headers.append('a', 'c'); return [r.headers.get('a'), r.clone().headers.get('a')] }",
  ],
  ["headers of an error", "Response.error().headers.append('a', 'b')"],
  ["headers of a redirect", "Response.redirect('http://a.example/').headers.set('a', 'b')"],
  ["forbidden names", "new Headers({ Host: 'a', 'Sec-A': 'b', Cookie: 'c', 'set-cookie': 'd' })"],
  [
    "a file's parts",
    "new File([new Blob(['a']), 'b', new Uint8Array([99])], 'dir/name:x', { type: 'T/X', lastModified: 1.7 })",
  ],
  ["slices of slices", "new Blob(['0123456789']).slice(2, -1).slice(1, 3, 'a/b')"],
  [
    "a large blob",
    "{ const b = new Blob([new Uint8Array(2 ** 21).fill(7)]); const back = await b.arrayBuffer(); return [b.size, back.byteLength, new Uint8Array(back).every((one) => one === 7)] }",
  ],
];
