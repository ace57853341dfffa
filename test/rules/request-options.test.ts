/** Tests the options of `request()`: valid values, and each fault with its code and the field's name. */
import { expect } from "chai";
import { OUTGOING_REQUEST_BODY_MAX_BYTES } from "../../src/limits.js";
import { parseRequestOptions, RequestOptionsError } from "../../src/rules/request-options.js";

const URL_TEXT = "https://api.example.com/v1";
const read = (options: object) => parseRequestOptions({ url: URL_TEXT, ...options });
const text = (options: object) => Buffer.from(read(options).body!).toString();

function fault(options: unknown): RequestOptionsError {
  try {
    parseRequestOptions(options);
  } catch (error) {
    expect(error).to.be.instanceOf(RequestOptionsError);
    return error as RequestOptionsError;
  }
  throw new Error(`accepted ${JSON.stringify(options)}`);
}

describe("the options of request()", () => {
  it("have defaults", () => {
    expect({ ...read({}), url: read({}).url.href }).to.deep.equal({
      url: URL_TEXT,
      method: "GET",
      headers: {},
      body: null,
      auth: null,
      timeoutMs: 10_000,
      responseType: "text",
      retry: undefined,
    });
  });

  it("describe query, headers and each kind of body", () => {
    const query = { a: "x y&z", b: [1, true, null], c: undefined, d: null };
    expect(read({ url: `${URL_TEXT}?q=1#f`, query }).url.href).to.equal(`${URL_TEXT}?q=1&a=x+y%26z&b=1&b=true`);
    expect(read({ method: "post", headers: { "X-A": "ä", n: 1 } })).to.deep.include({
      method: "POST",
      headers: { "x-a": "ä", n: "1" },
    });
    expect(text({ method: "POST", json: '{"a":1}' })).to.equal('{"a":1}');
    expect(read({ method: "POST", json: "1" }).headers).to.deep.equal({ "content-type": "application/json" });
    expect(read({ method: "POST", json: "1", headers: { "Content-Type": "a/b" } }).headers).to.deep.equal({
      "content-type": "a/b",
    });
    expect(text({ method: "PUT", form: { a: "1&", b: ["x", "y"] } })).to.equal("a=1%26&b=x&b=y");
    expect(text({ method: "PATCH", body: "grüße" })).to.equal("grüße");
    expect(read({ method: "POST", body: { base64: "AP8=" } }).body).to.deep.equal(Buffer.from([0, 255]));
    expect(read({ retry: { attempts: 3 } }).retry).to.deep.equal({ attempts: 3, on: [429, 502, 503, 504] });
    expect(
      read({ method: "POST", headers: { "Idempotency-Key": "k" }, retry: { attempts: 2, on: [500] } }).retry,
    ).to.deep.equal({ attempts: 2, on: [500] });
  });

  it("normalize the host", () => {
    for (const url of ["https://API.example.com./v1", "https://api.example.com:443/v1", "https:api.example.com/v1"]) {
      expect(read({ url }).url.href).to.equal(URL_TEXT);
    }
  });

  for (const [field, options] of [
    ["options", null],
    ["options", []],
    ["options", "https://api.example.com"],
    ["url", {}],
    ["url", { url: 1 }],
    ["url", { url: "/v1" }],
    ["url", { url: "ftp://api.example.com" }],
    ["url", { url: "https://u:p@api.example.com" }],
    ["url", { url: "https://u@api.example.com" }],
    ["url", { url: "https://*.example.com" }],
    ["url", { url: `${URL_TEXT}?${"a".repeat(9_000)}` }],
    ["url", { query: { a: "ä".repeat(3_000) } }],
    ["methd is not an option; the nearest option is method", { methd: "GET" }],
    ["method", { method: "CONNECT" }],
    ["method", { method: "TRACE" }],
    ["method", { method: "GET / HTTP/1.1\r\nX: y" }],
    ["query", { query: "a=1" }],
    ["query.a", { query: { a: {} } }],
    ["headers", { headers: ["a"] }],
    ["headers", { headers: { "a b": "x" } }],
    ["headers", { headers: { "a\r\nb": "x" } }],
    ["headers", { headers: { ":authority": "x" } }],
    ["headers", { headers: { "": "x" } }],
    ["headers", { headers: Object.fromEntries(Array.from({ length: 101 }, (_, at) => [`h${at}`, "x"])) }],
    ["headers", { headers: { a: "x".repeat(17_000) } }],
    ["headers.a", { headers: { a: "x\r\nHost: evil" } }],
    ["headers.a", { headers: { a: "x\ny" } }],
    ["headers.a", { headers: { a: "x\0" } }],
    ["headers.a", { headers: { a: "\u010a" } }],
    ["headers.a", { headers: { a: ["x"] } }],
    ["headers.A must not be set twice", { headers: { a: "1", A: "2" } }],
    ["a GET request must not have a body", { body: "x" }],
    ["a HEAD request must not have a body", { method: "HEAD", json: "1" }],
    ["options must contain only one of body and json", { method: "POST", body: "x", json: "1" }],
    ["body", { method: "POST", body: 1 }],
    ["json", { method: "POST", json: {} }],
    ["form", { method: "POST", form: "a=1" }],
    ["auth", { auth: 1 }],
    ["timeoutMs", { timeoutMs: 0 }],
    ["timeoutMs", { timeoutMs: 30_001 }],
    ["timeoutMs", { timeoutMs: "10" }],
    ["responseType", { responseType: "xml" }],
    ["retry", { retry: 3 }],
    ["retry.times", { retry: { attempts: 1, times: 2 } }],
    ["retry.attempts", { retry: {} }],
    ["retry.attempts", { retry: { attempts: 6 } }],
    ["retry.on", { retry: { attempts: 2, on: 500 } }],
    ["retry.on[0]", { retry: { attempts: 2, on: ["500"] } }],
    ["retry of POST", { method: "POST", retry: { attempts: 2 } }],
    ...[
      ...["Cookie", "cookie2", "Set-Cookie", "HOST", "Content-Length", "referer", "Auth-token", "auth-token-x"],
      ...["Svc-Run-Id", "Proxy-Authorization", "Connection", "Keep-Alive", "TE", "Trailer", "Transfer-Encoding"],
      ...["Upgrade", "Expect", "HTTP2-Settings"],
    ].map((name) => [`headers.${name}`, { headers: { [name]: "x" } }] as const),
  ] as const) {
    it(`reject ${JSON.stringify(options)?.slice(0, 80)} with POLICY`, () => {
      const isWhole = options === null || typeof options !== "object" || Array.isArray(options);
      const given =
        isWhole || (field === "url" && Object.keys(options).length === 0) ? options : { url: URL_TEXT, ...options };
      const { code, message } = fault(given);
      expect(code).to.equal("POLICY");
      expect(message.startsWith(field), message).to.equal(true);
    });
  }

  it("reject a body of more than 1 MB with LIMIT", () => {
    expect(read({ method: "POST", body: "x".repeat(OUTGOING_REQUEST_BODY_MAX_BYTES) }).body).to.have.length(
      OUTGOING_REQUEST_BODY_MAX_BYTES,
    );
    const long = { url: URL_TEXT, method: "POST", body: "x".repeat(OUTGOING_REQUEST_BODY_MAX_BYTES + 1) };
    expect(fault(long).code).to.equal("LIMIT");
  });
});
