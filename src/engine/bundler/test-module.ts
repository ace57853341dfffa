/** The module "svc/test": collects tests, runs them one after the other, and mocks hosts and the clock. Runs in the sandbox. */
export const TEST_MODULE = `
const tests = [];
export const test = (name, run) => { tests.push({ name, run }); };
const shown = (value) => JSON.stringify(value) ?? String(value);
const same = (a, b) => {
  if (Object.is(a, b)) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (a instanceof Date || b instanceof Date) return a instanceof Date && b instanceof Date && a.getTime() === b.getTime();
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => Object.hasOwn(b, key) && same(a[key], b[key]));
};
export const equal = (actual, expected) => {
  if (!same(actual, expected)) throw new Error("expected " + shown(expected) + " (got " + shown(actual) + ")");
};
export const ok = (value, message = "expected a true value") => { if (!value) throw new Error(message); };
export const rejects = async (promise, message) => {
  let error = null;
  try { await promise; } catch (caught) { error = caught; }
  if (error === null) throw new Error("expected a rejection");
  if (message !== undefined && !String(error?.message ?? error).includes(message)) throw new Error("expected " + shown(message) + " (got " + shown(String(error?.message ?? error)) + ")");
};
const actions = globalThis.Svc?.App?.V3?.Actions;
const [realFetch, RealDate, realRequest] = [globalThis.fetch, globalThis.Date, actions?.request];
const restore = () => {
  globalThis.fetch = realFetch;
  globalThis.Date = RealDate;
  if (realRequest) actions.request = realRequest;
};
const answerOf = async (answer, request) => {
  const answered = await answer(request);
  return answered instanceof Response ? answered : new Response(JSON.stringify(answered), { headers: { "content-type": "application/json" } });
};
const requested = async (answer, { url, method = "GET", headers, query = {}, body, json, form, responseType = "text" }) => {
  const address = new URL(url);
  for (const [name, value] of Object.entries(query)) address.searchParams.set(name, String(value));
  const sent = json === undefined ? (form === undefined ? body : new URLSearchParams(form)) : JSON.stringify(json);
  const response = await answerOf(answer, new Request(address, { method, headers, body: sent }));
  const bytes = new Uint8Array(await response.arrayBuffer());
  const text = new TextDecoder().decode(bytes);
  const content = { text: () => text, json: () => JSON.parse(text), bytes: () => bytes }[responseType]();
  const { status, ok: isOk } = response;
  return { status, headers: Object.fromEntries(response.headers), body: content, ok: isOk, json: () => JSON.parse(text) };
};
// Data sources, media and messages of the test's app are real. The client library sends the run's token with their requests.
const isOfService = ({ headers }) => headers.has("auth-token");
export const mock = {
  fetch(answer) {
    globalThis.fetch = (...args) => {
      const request = new Request(...args);
      return isOfService(request) ? realFetch(...args) : answerOf(answer, request);
    };
    if (realRequest) actions.request = (options) => requested(answer, options);
  },
  time(date) {
    const now = new RealDate(date).getTime();
    globalThis.Date = class extends RealDate {
      constructor(...args) { super(...(args.length === 0 ? [now] : args)); }
      static now() { return now; }
    };
  },
};
export async function runAll() {
  const results = [];
  for (const [at, { name, run }] of tests.entries()) {
    try { await run(); results.push({ name, passed: true }); }
    catch (error) {
      const text = String(error?.stack ?? error).slice(0, 4000);
      // The service replaces places in the console by those of the author's files.
      console.error("svc/test " + at + "\\n" + text);
      results.push({ name, passed: false, error: text });
    }
    restore();
  }
  return results;
}
`;
