import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from "node:zlib";

/** Text that follows the secret in a zstd sample. zstd does not compress a short text, so the secret would be readable. */
const VARIED_TEXT = Array.from({ length: 200 }, (_, at) => (at * at * 7_919).toString(36)).join(" ");

/** Encodings by name. Each function returns a response body that contains the secret in this encoding. */
export const ECHOES: [string, (secret: string) => { body: string | Buffer; headers?: Record<string, string> }][] = [
  ["plain", (s) => ({ body: `key=${s}` })],
  ["a JSON string", (s) => ({ body: JSON.stringify({ key: `a "${s}"` }) })],
  ["base64", (s) => ({ body: Buffer.from(s).toString("base64") })],
  ["base64 behind two bytes", (s) => ({ body: Buffer.from(`xy${s}`).toString("base64") })],
  ["base64url", (s) => ({ body: Buffer.from(`?>${s}`).toString("base64url") })],
  ["hex", (s) => ({ body: Buffer.from(s).toString("hex") })],
  ["upper hex", (s) => ({ body: Buffer.from(s).toString("hex").toUpperCase() })],
  ["percent encoding of every byte", (s) => ({ body: Buffer.from(s).toString("hex").replace(/../g, "%$&") })],
  ["JSON escapes", (s) => ({ body: `"${[...s].map((c) => `\\u00${c.charCodeAt(0).toString(16)}`).join("")}"` })],
  ["reversed", (s) => ({ body: [...s].reverse().join("") })],
  ["lower case", (s) => ({ body: s.toLowerCase() })],
  ["upper case", (s) => ({ body: s.toUpperCase() })],
  ["decimal entities", (s) => ({ body: [...s].map((c) => `&#${c.charCodeAt(0)};`).join("") })],
  ["hexadecimal entities", (s) => ({ body: [...s].map((c) => `&#x${c.charCodeAt(0).toString(16)};`).join("") })],
  ["character codes", (s) => ({ body: JSON.stringify([...Buffer.from(s)]) })],
  ["character codes with spaces", (s) => ({ body: [...Buffer.from(s)].join(" ") })],
  ["binary", (s) => ({ body: [...Buffer.from(s)].map((b) => b.toString(2).padStart(8, "0")).join(" ") })],
  [
    "rot13",
    (s) => ({
      body: s.replace(/[a-z]/gi, (c) => String.fromCharCode(c.charCodeAt(0) + (c.toLowerCase() < "n" ? 13 : -13))),
    }),
  ],
  ["quoted-printable", (s) => ({ body: [...Buffer.from(s)].map((b) => `=${b.toString(16).toUpperCase()}`).join("") })],
  ["octal escapes", (s) => ({ body: [...Buffer.from(s)].map((b) => `\\${b.toString(8).padStart(3, "0")}`).join("") })],
  ["hex escapes", (s) => ({ body: [...Buffer.from(s)].map((b) => `\\x${b.toString(16)}`).join("") })],
  ["letters apart", (s) => ({ body: [...s].join("-") })],
  ["line breaks", (s) => ({ body: Buffer.from(s).toString("base64").replace(/.{8}/g, "$&\r\n") })],
  [
    "UTF-16",
    (s) => ({ body: Buffer.from(`x${s}`, "utf16le"), headers: { "content-type": "text/plain; charset=utf-16le" } }),
  ],
  ["UTF-16 without saying so", (s) => ({ body: Buffer.from(s, "utf16le") })],
  ["UTF-16 big endian", (s) => ({ body: Buffer.from(s, "utf16le").swap16() })],
  ["a misleading charset", (s) => ({ body: s, headers: { "content-type": "text/plain; charset=utf-16le" } })],
  ["gzip", (s) => ({ body: gzipSync(s), headers: { "content-encoding": "gzip" } })],
  ["br", (s) => ({ body: brotliCompressSync(s), headers: { "content-encoding": "br" } })],
  ["zstd of base64", (s) => ({ body: zstdCompressSync(btoa(s)), headers: { "content-encoding": "zstd" } })],
  ["gzip without saying so", (s) => ({ body: gzipSync(s) })],
  ["deflate without saying so", (s) => ({ body: deflateSync(s) })],
  ["brotli without saying so", (s) => ({ body: brotliCompressSync(s) })],
  ["raw deflate without saying so", (s) => ({ body: deflateRawSync(s) })],
  ["zstd without saying so", (s) => ({ body: zstdCompressSync(`${s} ${VARIED_TEXT}`) })],
  ["a header", (s) => ({ body: "", headers: { "x-key": `key ${s}` } })],
  ["a header in base64", (s) => ({ body: "", headers: { "x-key": btoa(s) } })],
  ["the name of a header", (s) => ({ body: "", headers: { [`x-${s}`]: "1" } })],
  ["an error page", (s) => ({ body: `<h1>Invalid API key: ${s}</h1>` })],
];
