/** Two secrets, and the encodings of a secret in a URL that the service must find (docs/reference/settings.md). */

export const SECRET = "Canary/äß +value&of=a?setting";
/** A secret with characters that a URL drops or converts, and that JSON escapes. */
export const MULTILINE_SECRET = 'Its first line,\r\n"the\tsecond" \\ and a third';

/** Title of each encoding, and code of an expression that encodes the secret `s` for a URL. */
export const ENCODINGS: [string, string][] = [
  ["plain", "s"],
  ["reversed", "[...s].reverse().join('')"],
  ["URL", "encodeURIComponent(s)"],
  ["URL twice", "encodeURIComponent(encodeURIComponent(s))"],
  ["URL three times", "encodeURIComponent(encodeURIComponent(encodeURIComponent(s)))"],
  ["URL in lower case", "encodeURIComponent(s).replace(/%../g, (code) => code.toLowerCase())"],
  ["encodeURI", "encodeURI(s)"],
  ["a form's", "new URLSearchParams({ s }).toString()"],
  ["every byte escaped", "bytes.map((b) => '%' + b.toString(16).padStart(2, '0')).join('')"],
  ["JSON", "JSON.stringify({ s })"],
  ["JSON, URL", "encodeURIComponent(JSON.stringify({ s }))"],
  ["hex", "bytes.map((b) => b.toString(16).padStart(2, '0')).join('')"],
  ["hex in capitals", "bytes.map((b) => b.toString(16).padStart(2, '0')).join('').toUpperCase()"],
  ["base64", "base64('')"],
  ["base64, shifted by one", "base64('x')"],
  ["base64, shifted by two", "base64('xy')"],
  ["base64, URL", "encodeURIComponent(base64(''))"],
  ["base64url", "base64('').replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')"],
  ["base64url, shifted by one", "base64('x').replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')"],
  ["base64url, shifted by two", "base64('xy').replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')"],
  ["base64 in lines", "base64('').replace(/.{9}/g, '$&\\n')"],
  ["base64 in lines, URL", "encodeURIComponent(base64('').replace(/.{9}/g, '$&\\r\\n'))"],
  ["JSON twice", "JSON.stringify(JSON.stringify({ s }))"],
  ["JSON twice, URL twice", "encodeURIComponent(encodeURIComponent(JSON.stringify(JSON.stringify({ s }))))"],
  ["JSON, URL, JSON, URL", "encodeURIComponent(JSON.stringify(encodeURIComponent(JSON.stringify({ s }))))"],
  [
    "JSON, every character escaped, URL",
    "encodeURIComponent([...s].map((c) => '\\\\u' + c.charCodeAt(0).toString(16).padStart(4, '0')).join(''))",
  ],
  ["reversed, URL", "encodeURIComponent([...s].reverse().join(''))"],
  ["reversed, JSON, URL", "encodeURIComponent(JSON.stringify([...s].reverse().join('')))"],
  ["lines ended by LF", "s.replaceAll('\\r\\n', '\\n')"],
  ["lines ended by LF, URL", "encodeURIComponent(s.replaceAll('\\r\\n', '\\n'))"],
  ["lines ended by CR, URL", "encodeURIComponent(s.replaceAll('\\r\\n', '\\r'))"],
  ["lines ended by LF, JSON", "JSON.stringify(s.replaceAll('\\r\\n', '\\n'))"],
  ["lines joined", "s.replaceAll('\\r\\n', '')"],
  ["lines joined by a space", "s.replaceAll('\\r\\n', ' ')"],
];

export const ALL_TEXTS = `[${ENCODINGS.map(([, expression]) => expression).join(", ")}]`;
